"""Recognise OpenAI Responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dragoman.protocol.recognition import Recognition

_PARTS: Final = frozenset({"input_text", "output_text", "input_image", "input_file"})


def _is_answer(value: Mapping[str, Any]) -> bool:
    kind = value.get("type")
    return value.get("object") == "response" or (isinstance(kind, str) and kind.startswith("response."))


def _is_message(message: Mapping[str, Any]) -> bool:
    """Return whether it is an item that is no message, or a message with this protocol's parts."""
    kind = message.get("type")
    if isinstance(kind, str) and kind != "message":
        return True
    content = message.get("content")
    for part in content if isinstance(content, list | tuple) else ():
        part_kind = part.get("type") if isinstance(part, Mapping) else None
        if isinstance(part_kind, str) and part_kind in _PARTS:
            return True
    return False


def _plain_tool_entry(tool: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return {"type": "function", **tool}


RECOGNITION: Final = Recognition(
    short_name="responses",
    messages_field="input",
    hello="hello",
    is_answer=_is_answer,
    is_message=_is_message,
    plain_tool_entry=_plain_tool_entry,
    error_paths=("/v1/responses",),
)
