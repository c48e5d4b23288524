"""The wire languages that dragoman speaks: one folder each, one line each."""

from __future__ import annotations

from typing import Final

from dragoman.contract import Protocol
from dragoman.protocols import anthropic, gemini, ollama, openai_chat, openai_responses

PROTOCOLS: Final[dict[str, Protocol]] = {
    protocol.name: protocol
    for protocol in (
        ollama.PROTOCOL,
        openai_chat.PROTOCOL,
        anthropic.PROTOCOL,
        openai_responses.PROTOCOL,
        gemini.PROTOCOL,
    )
}
