"""Ollama's native protocol (`/api/chat`): lines of JSON, whole calls with object arguments."""
