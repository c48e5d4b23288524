"""The providers and their models, as data."""
