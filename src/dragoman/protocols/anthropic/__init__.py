"""Anthropic's Messages API: https://docs.anthropic.com/en/api/messages (read 2026-11-21)."""

from __future__ import annotations

from dragoman.protocol import Protocol
from dragoman.protocols.anthropic.recognition import RECOGNITION as RECOGNITION


def load() -> Protocol:
    """Load the codec."""
    from dragoman.protocols.anthropic.protocol import PROTOCOL

    return PROTOCOL
