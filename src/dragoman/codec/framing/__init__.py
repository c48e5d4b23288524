"""Where a body's frames begin and end: event streams, lines, documents, arrays."""
