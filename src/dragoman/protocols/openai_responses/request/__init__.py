"""Requests: the client's are parsed, ours are rendered."""
