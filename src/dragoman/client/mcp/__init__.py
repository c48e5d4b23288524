"""Servers of the Model Context Protocol: connect, list tools, read results."""
