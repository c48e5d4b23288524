"""An answer while it comes."""
