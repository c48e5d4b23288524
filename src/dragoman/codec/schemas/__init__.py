"""JSON Schema of draft 2020-12: read from older drafts, its references moved or written out, its parts joined."""
