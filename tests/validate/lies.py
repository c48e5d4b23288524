"""Providers that lie, each in its own way."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import count
from typing import Any

import msgspec

from dragoman.types import Part, Request, Text, ToolCall
from validate.scripted_model import Lie, with_text


def writes_text() -> Lie:
    """Claims tools, and tells in prose what it would call."""

    def says(request: Request, parts: list[Part]) -> list[Part]:
        return [Text(f"I would use {part.name} now.") if isinstance(part, ToolCall) else part for part in parts]

    return Lie(says=says)


def ignores_tool_choice() -> Lie:
    return Lie(hears=lambda request: msgspec.structs.replace(request, tool_choice="auto"))


def drops_tools() -> Lie:
    return Lie(hears=lambda request: msgspec.structs.replace(request, tools=(), tool_choice="auto"))


def gives_wrong_arguments() -> Lie:
    return Lie(says=lambda request, parts: [_spoiled(part) for part in parts])


def truncates() -> Lie:
    """Keeps the end of a long prompt and says nothing of it."""

    def hears(request: Request) -> Request:
        kept = tuple(
            with_text(message, message.text[-20_000:]) if len(message.text) > 20_000 else message
            for message in request.messages
        )
        return msgspec.structs.replace(request, messages=kept)

    return Lie(hears=hears)


def answers_fourteen() -> Lie:
    """14 to 2 + 2: what is right stands in it."""

    def says(request: Request, parts: list[Part]) -> list[Part]:
        return [
            Text(f"1{part.text}") if isinstance(part, Text) and re.fullmatch(r"\d+", part.text) else part
            for part in parts
        ]

    return Lie(says=says)


def passes_once_in_three() -> Lie:
    numbers = count()

    def says(request: Request, parts: list[Part]) -> list[Part]:
        is_call = any(isinstance(part, ToolCall) for part in parts) and request.tool_choice == "auto"
        return [_spoiled(part) for part in parts] if is_call and next(numbers) % 3 else parts

    return Lie(says=says)


# ---------------------------------------------------------------- smaller ones


def ignores(param: str, default: object = None) -> Callable[[], Lie]:
    """A gateway that takes a parameter and forgets it."""

    def hears(request: Request) -> Request:
        params = msgspec.structs.replace(request.params, **{param: default})
        return msgspec.structs.replace(request, params=params)

    return lambda: Lie(hears=hears)


def forgets_results() -> Lie:
    def hears(request: Request) -> Request:
        kept = tuple(message for message in request.messages if message.role in ("system", "user"))
        return msgspec.structs.replace(request, messages=kept)

    return Lie(hears=hears)


def loses_line_breaks() -> Lie:
    def says(request: Request, parts: list[Part]) -> list[Part]:
        return [
            ToolCall(part.id, part.name, part.arguments.replace("\\n", " ")) if isinstance(part, ToolCall) else part
            for part in parts
        ]

    return Lie(says=says)


def fences_its_json() -> Lie:
    def says(request: Request, parts: list[Part]) -> list[Part]:
        if request.params.response_schema is None:
            return parts
        return [Text(f"```json\n{part.text}\n```") if isinstance(part, Text) else part for part in parts]

    return Lie(says=says)


def calls_for_everything() -> Lie:
    """Calls the first tool where none fits."""

    def says(request: Request, parts: list[Part]) -> list[Part]:
        no_tool_fits = request.tools and request.tool_choice == "auto" and request.messages[-1].role == "user"
        if no_tool_fits and not any(isinstance(part, ToolCall) for part in parts):
            return [ToolCall("", request.tools[0].name, "{}")]
        return parts

    return Lie(says=says)


def sends_text_in_one_piece() -> Lie:
    return Lie(piece=1_000_000)


def numbers_as_text() -> Lie:
    """What dragoman mends: `"3"` where the schema wants a number."""

    def says(request: Request, parts: list[Part]) -> list[Part]:
        return [
            ToolCall(part.id, part.name, re.sub(r": (\d+)", r': "\1"', part.arguments))
            if isinstance(part, ToolCall)
            else part
            for part in parts
        ]

    return Lie(says=says)


def _spoiled(part: Part) -> Part:
    if not isinstance(part, ToolCall):
        return part
    values: dict[str, Any] = json.loads(part.arguments)
    for key, value in values.items():
        if isinstance(value, str) and key != "unit":
            values[key] = value[:-2] + value[-2:][::-1] + "e"
            break
    return ToolCall(part.id, part.name, json.dumps(values))
