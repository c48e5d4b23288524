"""Answers whose bytes pass as they came: client and target speak one protocol."""
