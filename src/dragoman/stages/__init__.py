"""Stages transform events between a decoder and its reader. `response_stages` has their order."""
