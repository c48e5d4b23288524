"""Exchanges with a provider, kept without their secrets in the form of our corpus, and played again."""
