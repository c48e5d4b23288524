"""What the five protocols share when they read and write: bodies, parts, calls, argument text, error bodies."""
