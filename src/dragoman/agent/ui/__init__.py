"""What a person or a script sees of the agent."""
