"""Sessions as files of JSON lines."""
