"""This machine's copy of the keys and quotas that stand in a PostgreSQL, so that requests wait for no database."""
