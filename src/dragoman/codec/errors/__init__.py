"""Interpret a provider's error."""
