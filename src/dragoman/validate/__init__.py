"""Validation: find out what a model can really do with probes, grade the answers with pure functions, keep proofs."""
