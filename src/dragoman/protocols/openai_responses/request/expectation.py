"""Settings of a Responses request without which its answer would look odd: calls of tools that a search has found."""

from __future__ import annotations

from collections.abc import Iterable

from dragoman._json import Json, Raw
from dragoman.codec.json_fields import Fields, read, read_items
from dragoman.protocol import NOTHING_EXPECTED, Expectation
from dragoman.protocols.openai_responses.wire import NAME
from dragoman.types import Opaque, Request

#: Items of the input that bring tools (https://platform.openai.com/docs/guides/tools-tool-search, read 2026-11-22).
_BRINGING = ("additional_tools", "tool_search_output")
_MARKS = tuple(kind.encode() for kind in _BRINGING)
_DEPTH = 4


def expect(fields: Fields) -> Expectation:
    """As `ExpectAnswer`, for the fields of a body."""
    given = fields.get("input", Raw(b""))
    if not any(mark in memoryview(given).tobytes() for mark in _MARKS):
        return NOTHING_EXPECTED
    return _expect(read_items(given) or ())


def expect_of(request: Request) -> Expectation:
    """As `expect` for a request that is sent in this protocol."""
    return _expect(
        part.raw
        for message in request.messages
        for part in message.parts
        if type(part) is Opaque and part.protocol == NAME
    )


def _expect(items: Iterable[Raw]) -> Expectation:
    found: set[str] = set()
    for raw in items:
        data = bytes(raw)
        item = read(raw) if any(mark in data for mark in _MARKS) else None
        if isinstance(item, dict) and item.get("type") in _BRINGING:
            found.update(_names(item.get("tools"), 0))
    return Expectation(tools=frozenset(found)) if found else NOTHING_EXPECTED


def _names(tools: Json, depth: int) -> Iterable[str]:
    for tool in tools if isinstance(tools, list) and depth < _DEPTH else ():
        if isinstance(tool, dict):
            if isinstance(tool.get("name"), str):
                yield tool["name"]
            yield from _names(tool.get("tools"), depth + 1)
