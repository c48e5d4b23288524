"""Validation: what a model can really do, found out by probes, graded by pure functions, kept as proofs."""
