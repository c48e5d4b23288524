"""What stands behind a call that its own brackets closed."""
