"""Decide which target is asked, and which one follows when it fails. No I/O."""
