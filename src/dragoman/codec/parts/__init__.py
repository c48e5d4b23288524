"""Assemble the parts of an answer: texts, thinking, calls and their arguments."""
