"""Runs: the turns of a model and the tools between, until the answer fits."""
