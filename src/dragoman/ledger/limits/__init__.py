"""Limits: quotas, their accounts, and the leases that workers hold."""
