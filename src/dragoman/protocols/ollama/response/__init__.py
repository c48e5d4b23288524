"""Responses: the server's are decoded, ours are encoded."""
