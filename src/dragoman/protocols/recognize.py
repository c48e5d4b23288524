"""Which of the five protocols a response body is written in, told from its bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from dragoman import _json
from dragoman.codec.framing.body import BodyReader, TooLarge
from dragoman.types import ProtocolName

_CHUNK: Final = 65_536
#: Frames that are looked at: keep-alives and what is no protocol's own may come first.
_MOST_FRAMES: Final = 64
#: Names that people use for a protocol.
SHORT_NAMES: Final[dict[str, ProtocolName]] = {
    "ollama": "ollama-chat",
    "openai": "openai-chat",
    "responses": "openai-responses",
    "anthropic": "anthropic-messages",
    "gemini": "gemini-generate",
}
_ANTHROPIC_EVENTS: Final = frozenset(
    {
        "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
        "message_stop",
    }
)  # fmt: skip


def recognize(body: bytes) -> ProtocolName | None:
    """The protocol of a body, streamed or whole; None when nothing in its first frames is any protocol's own."""
    reader = BodyReader(lambda code, where, seen: None)
    for position, document in enumerate(_documents(reader, body)):
        found = _protocol_of(document)
        if found is not None or position == _MOST_FRAMES:
            return found
    return None


def _documents(reader: BodyReader, body: bytes) -> Iterator[Any]:
    try:
        for begin in range(0, len(body), _CHUNK):
            for data, _ in reader.feed(body[begin : begin + _CHUNK]):
                yield _json.decode(data)
        for data, _ in reader.close():
            yield _json.decode(data)
    except TooLarge:
        return


def _protocol_of(value: Any) -> ProtocolName | None:
    """By the keys that only one protocol has at the top of a document."""
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict):
        return None
    kind, kind_of_object = value.get("type"), value.get("object")
    if kind in _ANTHROPIC_EVENTS or (kind == "message" and isinstance(value.get("content"), list)):
        return "anthropic-messages"
    if kind_of_object == "response" or (isinstance(kind, str) and kind.startswith("response.")):
        return "openai-responses"
    if isinstance(value.get("choices"), list) or str(kind_of_object).startswith("chat.completion"):
        return "openai-chat"
    if isinstance(value.get("candidates"), list) or "usageMetadata" in value or "promptFeedback" in value:
        return "gemini-generate"
    if isinstance(value.get("done"), bool) or (isinstance(value.get("message"), dict) and "created_at" in value):
        return "ollama-chat"
    return _protocol_of_error(value)


def _protocol_of_error(value: dict[str, Any]) -> ProtocolName | None:
    error = value.get("error")
    if isinstance(error, str):
        return "ollama-chat"
    if not isinstance(error, dict):
        return None
    if value.get("type") == "error":
        return "anthropic-messages"
    if isinstance(error.get("code"), int) and isinstance(error.get("status"), str):
        return "gemini-generate"
    return "openai-chat" if "message" in error else None
