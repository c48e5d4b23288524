"""Thinking that models write into their text between tags."""
