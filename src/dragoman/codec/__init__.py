"""Shared code of the five protocols for reading and writing: bodies, parts, calls, argument text, error bodies."""
