"""The admin API: keys, quotas, spend, corrections, the audit."""
