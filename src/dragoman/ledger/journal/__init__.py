"""A worker's journal: records that are written before anything is sent, and that the shipper reads."""
