"""What users give: conversations in any protocol's form, and Python functions as tools."""
