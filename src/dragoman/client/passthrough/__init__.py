"""Pass an answer's bytes through unchanged: client and target speak one protocol."""
