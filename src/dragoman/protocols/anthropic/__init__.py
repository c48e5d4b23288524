"""Anthropic's Messages API (`anthropic-messages`)."""
