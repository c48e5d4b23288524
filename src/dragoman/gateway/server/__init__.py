"""The HTTP server: connections, heads, response writers, and limits of clients."""
