"""Find the frames of a body: event streams, lines, documents, arrays."""
