"""The ledger: one row for each physical request that a provider may bill, written before it is sent.

A worker writes into its own journal (`journal`); the shipper (`shipper`) reads all journals, makes rows of their
records (`merging`) and puts them into the store (`stores`). No request waits for the store.
"""
