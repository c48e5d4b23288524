"""Ollama's native protocol (`ollama-chat`): lines of JSON, whole calls with object arguments."""

from __future__ import annotations

from dragoman.protocol import Protocol
from dragoman.protocols.ollama.recognition import RECOGNITION as RECOGNITION


def load() -> Protocol:
    """Load the codec."""
    from dragoman.protocols.ollama.protocol import PROTOCOL

    return PROTOCOL
