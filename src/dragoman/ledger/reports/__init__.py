"""Reports of a ledger: sums, rows, exports, and a consistency check."""
