"""Counters: how much of each account is leased to which holder."""
