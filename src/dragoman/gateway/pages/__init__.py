"""The gateway's paths beside chat requests."""
