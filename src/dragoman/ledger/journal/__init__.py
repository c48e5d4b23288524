"""A worker's journal: its records, written before anything is sent, and read by the shipper."""
