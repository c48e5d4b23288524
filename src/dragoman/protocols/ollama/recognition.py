"""Recognise Ollama's protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dragoman.protocol.recognition import Recognition

#: Fields of a message that only Ollama has.
_OWN_FIELDS: Final = frozenset({"images", "tool_name", "thinking"})


def _is_answer(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("done"), bool) or (isinstance(value.get("message"), dict) and "created_at" in value)


def _is_error(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("error"), str)


def _is_message(message: Mapping[str, Any]) -> bool:
    return not _OWN_FIELDS.isdisjoint(message) or _has_object_arguments(message)


def _has_object_arguments(message: Mapping[str, Any]) -> bool:
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list | tuple) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping) and isinstance(function.get("arguments"), Mapping):
            return True
    return False


RECOGNITION: Final = Recognition(
    short_name="ollama",
    messages_field="messages",
    hello=(),
    is_answer=_is_answer,
    is_error=_is_error,
    is_message=_is_message,
    error_paths=("/api/",),
    has_embeddings=True,
)
