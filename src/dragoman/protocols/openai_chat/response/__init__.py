"""Decode the server's responses and encode our own."""
