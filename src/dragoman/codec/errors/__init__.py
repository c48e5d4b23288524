"""What a provider's error says, and what it means."""
