"""What may be spent: quotas, their accounts, and the leases that workers hold of them."""
