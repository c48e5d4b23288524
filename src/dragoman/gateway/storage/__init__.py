"""What outlives a request, in SQLite files of the state folder."""
