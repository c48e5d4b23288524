"""Recognise Anthropic's Messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dragoman.protocol.recognition import PLAIN_HELLO, Recognition

_EVENTS: Final = frozenset(
    {
        "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
        "message_stop",
    }
)  # fmt: skip
_BLOCKS: Final = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "document"})


def _is_answer(value: Mapping[str, Any]) -> bool:
    kind = value.get("type")
    return isinstance(kind, str) and (kind in _EVENTS or (kind == "message" and isinstance(value.get("content"), list)))


def _is_error(value: Mapping[str, Any]) -> bool:
    return value.get("type") == "error" and isinstance(value.get("error"), dict)


def _is_message(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    for part in content if isinstance(content, list | tuple) else ():
        kind = part.get("type") if isinstance(part, Mapping) else None
        if isinstance(kind, str) and (kind in _BLOCKS or (kind == "image" and "source" in part)):
            return True
    return False


def _tool_entry(tool: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return tool if "input_schema" in tool else None


def _plain_tool_entry(tool: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return a tool as the Model Context Protocol lists it: the same fields, except the schema's name."""
    if "inputSchema" not in tool:
        return None
    kept = {key: tool[key] for key in ("name", "description") if key in tool}
    return {**kept, "input_schema": tool["inputSchema"]}


RECOGNITION: Final = Recognition(
    short_name="anthropic",
    messages_field="messages",
    hello=PLAIN_HELLO,
    is_answer=_is_answer,
    is_error=_is_error,
    is_message=_is_message,
    tool_entry=_tool_entry,
    plain_tool_entry=_plain_tool_entry,
    client_headers=("anthropic-version",),
    error_paths=("/v1/messages",),
)
