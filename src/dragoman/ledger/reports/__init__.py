"""What a ledger tells: sums, rows, files for other programs, and whether all of it agrees."""
