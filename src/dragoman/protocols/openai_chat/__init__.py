"""OpenAI Chat Completions (`openai-chat`): https://platform.openai.com/docs/api-reference/chat (read 2026-11-21)."""

from __future__ import annotations

from dragoman.protocol import Protocol
from dragoman.protocols.openai_chat.recognition import RECOGNITION as RECOGNITION


def load() -> Protocol:
    """Load the codec."""
    from dragoman.protocols.openai_chat.protocol import PROTOCOL

    return PROTOCOL
