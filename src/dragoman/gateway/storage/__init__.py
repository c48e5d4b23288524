"""Data that outlives a request, in SQLite files of the state folder."""
