"""An answer as it arrives."""
