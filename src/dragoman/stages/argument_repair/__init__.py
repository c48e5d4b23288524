"""Repair argument text and coerce it to the tool's schema."""
