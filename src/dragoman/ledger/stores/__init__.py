"""The stores: where the ledger keeps its rows."""
