"""Recognise OpenAI Chat Completions. It has few marks, because the other protocols are compared with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dragoman.protocol.recognition import PLAIN_HELLO, Recognition


def _is_answer(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("choices"), list) or str(value.get("object")).startswith("chat.completion")


def _is_error(value: Mapping[str, Any]) -> bool:
    error = value.get("error")
    return isinstance(error, dict) and "message" in error


def _tool_entry(tool: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return tool if isinstance(tool.get("function") or tool.get("custom"), Mapping) else None


RECOGNITION: Final = Recognition(
    short_name="openai",
    messages_field="messages",
    hello=PLAIN_HELLO,
    is_answer=_is_answer,
    is_error=_is_error,
    tool_entry=_tool_entry,
    error_paths=("",),  # what most clients of a path that nobody serves can read
    has_embeddings=True,
)
