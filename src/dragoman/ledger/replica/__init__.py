"""This machine's copy of PostgreSQL's keys and quotas, so that no request waits for the database."""
