"""Read what users pass: conversations in any protocol's form, and Python functions as tools."""
