"""The HTTP server: connections, heads, the way out, and what clients may take of it."""
