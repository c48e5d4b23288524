"""Gemini's generateContent (`gemini-generate`): chunks of parts as events or as an array, whole calls, signatures."""

from __future__ import annotations

from dragoman.protocol import Protocol
from dragoman.protocols.gemini.recognition import RECOGNITION as RECOGNITION


def load() -> Protocol:
    """Load the codec."""
    from dragoman.protocols.gemini.protocol import PROTOCOL

    return PROTOCOL
