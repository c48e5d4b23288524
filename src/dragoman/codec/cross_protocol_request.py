"""Translate a request to another protocol, and name the fields that this one cannot express.

Every `render_request` goes through here, so that nothing a client asks for is lost silently: what a parser did not
model stands in `native` records and opaque parts. Fields with another name are renamed, what a reader understands as
text becomes text, and the rest is named.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import Final, final

import msgspec

from dragoman._json import Json
from dragoman.codec.counterparts import (
    DETAIL,
    OF_FUNCTION,
    OF_MARKED_PART,
    OF_PART,
    OF_TOOL,
    Counterpart,
    as_text,
    kind_of,
    kinds_of,
    of_body,
    take,
)
from dragoman.codec.json_fields import Fields, read_fields, read_items
from dragoman.deviations import clip, part_path
from dragoman.events import Deviation
from dragoman.protocol import PLAIN, UNKNOWN_MODEL, Dialect, ModelLimits, Rendered, RenderRequest
from dragoman.types import Media, Message, Native, Opaque, Part, ProtocolName, Request, Text, ToolCall, ToolResult

#: Types of texts that are not called so.
_TEXTS: Final = frozenset({"application/json", "application/xml", "application/yaml", "application/x-yaml"})
_NOTHING: Final = frozenset({b"null", b"[]", b"{}", b'""'})
#: Fields that say what holds without them.
_DEFAULTS: Final = frozenset({
    ("store", b"false"), ("background", b"false"), ("logprobs", b"false"), ("service_tier", b'"auto"'),
    ("truncation", b'"disabled"'), ("verbosity", b'"medium"'), ("n", b"1"), ("candidateCount", b"1"),
})  # fmt: skip
#: How deep the path of a field is told.
_DEPTH: Final = 4
_TOOLS: Final = "tools"
#: What the text of a result says whole.
_SAID_AS_TEXT: Final = "ToolResult.response"


def crossing(protocol: ProtocolName, render: RenderRequest) -> RenderRequest:
    """Wrap a protocol's `render` so that requests are translated, with a note for each field that it cannot express."""

    def render_request(request: Request, *, dialect: Dialect = PLAIN, limits: ModelLimits = UNKNOWN_MODEL) -> Rendered:
        if _is_at_home(request, protocol):
            return render(request, dialect=dialect, limits=limits)
        crossed = Crossed(protocol, is_vendor=dialect.supports_vendor_fields, has_marks=dialect.supports_cache_control)
        rendered = render(crossed.take(request), dialect=dialect, limits=limits)
        lost = crossed.deviations()
        return msgspec.structs.replace(rendered, deviations=(*rendered.deviations, *lost)) if lost else rendered

    return render_request


def _is_at_home(request: Request, protocol: ProtocolName) -> bool:
    """Return whether nothing in it is native to another protocol, as in most requests."""
    if request.native is not None and request.native.protocol != protocol:
        return False
    for tool in request.tools:
        if tool.native is not None and tool.native.protocol != protocol:
            return False
    for message in request.messages:
        if message.native is not None and message.native.protocol != protocol:
            return False
        for part in message.parts:
            if type(part) is Text:  # as most are
                native = part.native
            elif type(part) is Opaque:
                if part.protocol != protocol:
                    return False
                continue
            else:
                native = part.native
                if type(part) is ToolResult and not _are_at_home(part.parts, protocol):
                    return False
            if native is not None and native.protocol != protocol:
                return False
    return True


def _are_at_home(parts: Iterable[Text | Media | Opaque], protocol: ProtocolName) -> bool:
    for part in parts:
        source = part if type(part) is Opaque else part.native
        if source is not None and source.protocol != protocol:
            return False
    return True


def is_left_empty(message: Message, rendered: dict[str, Json]) -> bool:
    """Return whether nothing of a model's turn can be expressed, so that it is not sent.

    The model never said an empty turn, and some servers refuse it.
    """
    if message.role != "assistant" or rendered.keys() != {"role", "content"} or rendered["content"]:
        return False
    return any(type(part) is not Text for part in message.parts)


def is_text(mime: str | None) -> bool:
    """Return whether a document of a type is a text, such as Markdown or CSV."""
    kind = (mime or "").partition(";")[0].strip().lower()
    return kind.startswith("text/") or kind in _TEXTS


def plain_text(mime: str | None, data: str | None) -> str | None:
    """Return the words of a document that is a text; None for other documents, and for other bytes than UTF-8."""
    if data is None or not is_text(mime):
        return None
    try:
        return base64.b64decode(data, validate=True).decode()
    except ValueError:
        return None


def said_whole(parts: Iterable[Part]) -> str:
    """Return texts that a protocol says as one: each on lines of its own, as chat templates write them."""
    texts = [part.text for part in parts if isinstance(part, Text) and part.text]
    return texts[0] if len(texts) == 1 else "\n".join(texts)


@final
class Crossed:
    """One request translated into `protocol`. `is_vendor`: the target is the vendor's own host, which knows all its
    fields; others refuse some. `has_marks`: the target knows `cache_control` in parts.

    A field that stands in many messages is named once, with its first place and its count.
    """

    __slots__ = ("_found", "_is_vendor", "_of_answer", "_of_part", "_protocol", "_said")

    def __init__(self, protocol: ProtocolName, *, is_vendor: bool, has_marks: bool = False) -> None:
        self._protocol = protocol
        self._is_vendor = is_vendor
        self._of_part = (*(OF_PART if is_vendor else ()), *(OF_MARKED_PART if has_marks else ()))
        self._of_answer = tuple([each for each in self._of_part if protocol not in each.of_clients])
        self._found: dict[str, tuple[str, str, int]] = {}  # path without numbers → first path, protocol, how often
        self._said: list[Deviation] = []

    def take(self, request: Request) -> Request:
        """Return the request in the protocol's form."""
        native = self._native(request.native, "", "", of_body(self._protocol, is_vendor=self._is_vendor))
        messages = list(request.messages)
        for place, message in enumerate(messages):
            own = message.native
            if own is not None:
                own = self._native(own, "messages[].", f"{part_path((place,))}.")
            known = self._of_answer if message.role == "assistant" else self._of_part
            parts = self._parts(message.parts, (place,), known)
            if parts is not message.parts or own is not message.native:
                messages[place] = msgspec.structs.replace(message, parts=parts, native=own)
        tools = list(request.tools)
        for place, tool in enumerate(request.tools):
            if tool.native is None:
                continue
            known = OF_TOOL if tool.kind == "custom" else OF_FUNCTION if self._is_vendor else ()
            own = self._native(tool.native, "tools[].", f"tools[{place}].", known)
            if own is not tool.native:
                tools[place] = msgspec.structs.replace(tool, native=own)
        return msgspec.structs.replace(request, messages=tuple(messages), tools=tuple(tools), native=native)

    def deviations(self) -> list[Deviation]:
        """Return what was changed, and what was lost."""
        for where, protocol, count in self._found.values():
            often = f", {count} times" if count > 1 else ""
            self._said.append(Deviation("untranslated", clip(where), f"{protocol}'s own{often}", "note"))
        return self._said

    def _parts(self, parts: tuple[Part, ...], at: tuple[int, ...], known: tuple[Counterpart, ...]) -> tuple[Part, ...]:
        changed: list[Part] | None = None
        for number, part in enumerate(parts):
            if type(part) is not Opaque and part.native is None and type(part) is not ToolResult:
                continue
            taken = self._part(part, (*at, number), known)
            if taken is not part:
                changed = changed or list(parts)
                changed[number] = taken
        return parts if changed is None else tuple(changed)

    def _part(self, part: Part, at: tuple[int, ...], known: tuple[Counterpart, ...]) -> Part:
        if type(part) is Opaque:
            return part if part.protocol == self._protocol else self._opaque(part, at)
        if type(part) is ToolResult:
            inner = self._parts(part.parts, at, known)
            if inner is not part.parts:
                part = msgspec.structs.replace(part, parts=inner)
        if part.native is None:
            return part
        where = f"{part_path(at)}."
        # a call has no place for what marks a content
        of_part = known if type(part) is not ToolCall else OF_PART if self._is_vendor else ()
        if type(part) is Media and part.kind != "image":
            of_part = tuple([each for each in of_part if each is not DETAIL])
        native = self._native(part.native, f"{type(part).__name__}.", where, of_part)
        return part if native is part.native else msgspec.structs.replace(part, native=native)

    def _opaque(self, part: Opaque, at: tuple[int, ...]) -> Part:
        read = as_text(part.raw, part.protocol)
        if read is None:
            for kind in kinds_of(part.raw):
                self._add(f"parts[].<{kind}>", f"{part_path(at)}.<{kind}>", part.protocol)
            return part
        kind, text, unsaid = read
        where = f"{part_path(at)}.<{kind}>"
        self._said.append(Deviation("changed", where, "said as text", "note"))
        for name in unsaid:
            self._add(f"parts[].<{kind}>.{name}", f"{where}.{name}", part.protocol)
        return text

    def _native(
        self, native: Native | None, shape: str, where: str, known: tuple[Counterpart, ...] = ()
    ) -> Native | None:
        """Return a record in the protocol's form; its own record, or one without a counterpart, unchanged."""
        if native is None or native.protocol == self._protocol:
            return native
        said, rest = take(native.fields, native.protocol, self._protocol, known)
        for path in paths(rest, _DEPTH):
            if not (shape + path).startswith(_SAID_AS_TEXT):
                self._add(shape + path, where + path, native.protocol)
        return Native(self._protocol, said) if said else native

    def _add(self, shape: str, where: str, protocol: str) -> None:
        known = self._found.get(shape)
        self._found[shape] = (where, protocol, 1) if known is None else (known[0], protocol, known[2] + 1)


def paths(fields: Fields, depth: int) -> Iterator[str]:
    """Yield the path of each field that says something."""
    for key, value in fields.items():
        text = bytes(value) if len(value) <= 12 else b""
        if text in _NOTHING or (key, text) in _DEFAULTS:
            continue
        if key == _TOOLS and (items := read_items(value)) is not None:
            yield from (f"{_TOOLS}.{kind_of(item)}" for item in items)
            continue
        inner = read_fields(value) if depth > 1 and bytes(memoryview(value)[:1]) == b"{" else None
        if inner:
            yield from (f"{key}.{path}" for path in paths(inner, depth - 1))
        else:
            yield key
