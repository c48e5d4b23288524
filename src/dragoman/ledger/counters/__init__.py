"""How much of each account is leased to whom."""
