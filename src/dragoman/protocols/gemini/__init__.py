"""Gemini's generateContent: event streams or JSON arrays of chunks, whole calls, signatures on parts."""
