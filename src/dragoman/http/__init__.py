"""HTTP requests: connections, pools, timeouts, and which addresses may be dialled."""
