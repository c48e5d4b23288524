"""Tools that take free text as functions of one argument, for servers that know functions only."""

from __future__ import annotations

from typing import Final

import msgspec

from dragoman import _json
from dragoman._json import Json
from dragoman.codec.json_fields import read_fields
from dragoman.offering.restoring import FREE_TEXT
from dragoman.types import Message, Part, ProtocolName, Tool, ToolCall

SCHEMA: Final = _json.raw({"type": "object", "properties": {FREE_TEXT: {"type": "string"}}, "required": [FREE_TEXT]})
_DEPTH: Final = 3
_FORMAT: Final = "format"


def described(tool: Tool) -> str:
    """Return a tool's description, with the grammar of its text."""
    values = [_json.decode(bytes(raw)) for raw in (tool.native.fields.values() if tool.native is not None else ())]
    grammar = next(filter(None, (_definition(value, 0) for value in values)), "")
    said = f"{FREE_TEXT} is free text, with nothing around it."
    if grammar:
        said += f" It must have this grammar:\n{grammar}"
    return f"{tool.description}\n\n{said}" if tool.description else said


def unsaid_of(tool: Tool) -> list[str]:
    """Return the names of what a tool says beside its format."""
    found: list[str] = []
    for key, raw in (tool.native.fields if tool.native is not None else {}).items():
        inner = read_fields(raw) if key == tool.kind else None
        found += [key] if inner is None else [f"{key}.{name}" for name in inner if name != _FORMAT]
    return [name for name in found if name != _FORMAT]


def _definition(value: Json, depth: int) -> str:
    if not isinstance(value, dict) or depth > _DEPTH:
        return ""
    found = value.get("definition")
    if isinstance(found, str):
        return found
    return next(filter(None, (_definition(inner, depth + 1) for inner in value.values())), "")


def with_functions(message: Message, target: ProtocolName) -> Message:
    """Return a turn with calls of functions in place of those that take free text."""
    if all(type(part) is not ToolCall or part.kind == "function" for part in message.parts):
        return message
    return msgspec.structs.replace(message, parts=tuple([_as_function(part, target) for part in message.parts]))


def _as_function(part: Part, target: ProtocolName) -> Part:
    if type(part) is not ToolCall or part.kind == "function":
        return part
    arguments = _json.to_text({FREE_TEXT: part.arguments})
    native = part.native if part.native is not None and part.native.protocol != target else None
    return msgspec.structs.replace(part, kind="function", arguments=arguments, native=native)
