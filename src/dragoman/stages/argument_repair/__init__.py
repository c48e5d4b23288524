"""Argument text repaired and coerced to the tool's schema."""
