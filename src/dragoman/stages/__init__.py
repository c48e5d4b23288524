"""Stages: events → events, between a decoder and whoever reads. `response_stages` has their order."""
