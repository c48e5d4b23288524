"""What of a request only its own protocol knows, when the request is written in another one: it is named as lost.

Every `render_request` goes through here, so that nothing a client asks for is lost without a word: what a parser did
not model stands in `native` records and opaque parts, and those of another protocol are what no renderer writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from dragoman._json import Raw
from dragoman.contract import PLAIN, UNKNOWN_MODEL, Dialect, ModelLimits, Rendered, RenderRequest
from dragoman.deviations import clip, part_path
from dragoman.events import Deviation
from dragoman.fields import Fields, read_fields, read_items, read_text
from dragoman.types import Native, Opaque, Part, ProtocolName, Request, ToolResult

_NOTHING: Final = frozenset({b"null", b"[]", b"{}", b'""'})
#: Fields that say what holds without them.
_DEFAULTS: Final = frozenset({
    ("store", b"false"), ("background", b"false"), ("logprobs", b"false"), ("service_tier", b'"auto"'),
    ("truncation", b'"disabled"'), ("verbosity", b'"medium"'), ("n", b"1"), ("candidateCount", b"1"),
})  # fmt: skip
#: How deep the path of a field is told.
_DEPTH: Final = 4
_TOOLS: Final = "tools"


def crossing(protocol: ProtocolName, render: RenderRequest) -> RenderRequest:
    """`render`, the protocol's own, with a note for each field of a request that it has no place for."""

    def render_request(request: Request, *, dialect: Dialect = PLAIN, limits: ModelLimits = UNKNOWN_MODEL) -> Rendered:
        rendered = render(request, dialect=dialect, limits=limits)
        lost = untranslated(request, protocol)
        if not lost:
            return rendered
        return msgspec.structs.replace(rendered, deviations=(*rendered.deviations, *lost))

    return render_request


def untranslated(request: Request, protocol: ProtocolName) -> list[Deviation]:
    """A note for each field that only another protocol than `protocol` knows.

    A field that stands in many messages is named once, with its first place and how often it was there.
    """
    if (request.native is None or request.native.protocol == protocol) and _is_plain(request):
        return []
    found: dict[str, tuple[str, str, int]] = {}  # path without numbers → first path, protocol, how often
    if request.native is not None and request.native.protocol != protocol:
        _note(found, request.native, "", "")
    for place, message in enumerate(request.messages):
        if message.native is not None and message.native.protocol != protocol:
            _note(found, message.native, "messages[].", f"{part_path((place,))}.")
        for number, part in enumerate(message.parts):
            if type(part) is Opaque or part.native is not None or type(part) is ToolResult:
                _note_part(found, part, (place, number), protocol)
    for place, tool in enumerate(request.tools):
        if tool.native is not None and tool.native.protocol != protocol:
            _note(found, tool.native, "tools[].", f"tools[{place}].")
    return [_deviation(*each) for each in found.values()] if found else []


def _is_plain(request: Request) -> bool:
    """Whether nothing in the messages and tools is native to a protocol. Most requests are so: a quick look."""
    for message in request.messages:
        if message.native is not None:
            return False
        for part in message.parts:
            if type(part) is Opaque or part.native is not None:
                return False
            if type(part) is ToolResult:
                for inner in part.parts:
                    if type(inner) is Opaque or inner.native is not None:
                        return False
    return all(tool.native is None for tool in request.tools)


def _deviation(where: str, protocol: str, count: int) -> Deviation:
    often = f", {count} times" if count > 1 else ""
    return Deviation("untranslated", clip(where), f"only {protocol} has it{often}", "note")


def _note_part(found: dict[str, tuple[str, str, int]], part: Part, at: tuple[int, ...], protocol: ProtocolName) -> None:
    """The fields of a part, and of the parts in a result."""
    if type(part) is Opaque:
        if part.protocol != protocol:
            kind = kind_of(part.raw)
            _add(found, f"parts[].<{kind}>", f"{part_path(at)}.<{kind}>", part.protocol)
        return
    if part.native is not None and part.native.protocol != protocol:
        _note(found, part.native, f"{type(part).__name__}.", f"{part_path(at)}.")
    if type(part) is ToolResult:
        for number, inner in enumerate(part.parts):
            _note_part(found, inner, (*at, number), protocol)


def _note(found: dict[str, tuple[str, str, int]], native: Native, shape: str, where: str) -> None:
    for path in paths(native.fields, _DEPTH):
        _add(found, shape + path, where + path, native.protocol)


def _add(found: dict[str, tuple[str, str, int]], shape: str, where: str, protocol: str) -> None:
    known = found.get(shape)
    found[shape] = (where, protocol, 1) if known is None else (known[0], protocol, known[2] + 1)


def paths(fields: Fields, depth: int) -> Iterator[str]:
    """The path of each field that says something."""
    for key, value in fields.items():
        text = bytes(value) if len(value) <= 12 else b""
        if text in _NOTHING or (key, text) in _DEFAULTS:
            continue
        if key == _TOOLS:
            yield from (f"{_TOOLS}.{kind_of(item)}" for item in read_items(value) or ())
            continue
        inner = read_fields(value) if depth > 1 and bytes(memoryview(value)[:1]) == b"{" else None
        if inner:
            yield from (f"{key}.{path}" for path in paths(inner, depth - 1))
        else:
            yield key


def kind_of(part: Raw) -> str:
    """What a part or a tool is called: its type, else its first field."""
    fields = read_fields(part) or {}
    return clip(read_text(fields.get("type")) or next(iter(fields), "part"))
