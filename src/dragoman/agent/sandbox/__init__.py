"""The sandbox for the agent's commands, and the files that are restored after a command."""
