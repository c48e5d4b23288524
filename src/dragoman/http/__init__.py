"""Requests over HTTP: connections, pools, time limits, and which addresses may be dialled."""
