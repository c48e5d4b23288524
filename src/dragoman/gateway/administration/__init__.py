"""The API of the admin listener: keys, quotas, what was spent, corrections, the audit."""
