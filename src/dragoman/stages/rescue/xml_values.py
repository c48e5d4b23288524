"""Convert arguments between tags to JSON: strings live, other types whole."""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Final

from dragoman import _json
from dragoman._json import Malformed
from dragoman.stages.json_schema import Judge, Shape, ToolSchema, is_of
from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import MORE, Action, Cursor, NotACall, Piece
from dragoman.stages.rescue.quoted import first_of, names_place

#: What begins text in which nothing is markup (XML 1.0, 2.7).
SECTION: Final = "<![CDATA["
SECTION_END: Final = "]]>"
_NULL: Final = re.compile(r"\s{0,8}null\s{0,8}")
_NULL_BEGUN: Final = re.compile(r"\s{0,8}(?:n(?:ul?)?)?")


def member(key: str, keys: list[str]) -> Piece:
    """Return what precedes the value of an argument, and note its key. A placeholder of a template is no key."""
    if names_place(key):
        raise NotACall
    lead = ", " if keys else "{"
    keys.append(key)
    return Piece(f"{lead}{_json.quoted(key)}: ")


def value_until(
    cursor: Cursor, tools: Tools, name: str, key: str, stops: tuple[str, ...], *, trim: bool = True
) -> Generator[Action, None, str]:
    """Read the value of argument `key` up to one of the closing tags. Return which ("" if the text ended first).

    A value that the schema takes as a string leaves live. Another one is read as JSON if it is, else as a string, and
    the arguments stage judges it. `trim`: one line end after the opening and before the closing tag is markup; that one
    may be the first character of a stop.
    """
    shape = tools.shape(name, key)
    if not shape.is_text:
        text, stop = yield from cursor.until(*stops)
        if stop:
            text += "\n" if stop[0] == "\n" else ""
            yield Piece(leaf(_trimmed(text) if trim else text, shape, tools.schema(name)))
        return stop
    if is_nullable(shape) and (stop := (yield from null_until(cursor, stops))):
        yield Piece("null")
        return stop
    return (yield from live_string(cursor, stops, trim=trim))


def block_until(
    cursor: Cursor, tools: Tools, name: str, key: str, stops: tuple[str, ...]
) -> Generator[Action, None, str]:
    """As `value_until`, of a family whose template writes no line ends in the tags of a value.

    A model that writes one behind the opening tag and one before the closing tag puts the value in lines of its own:
    both are markup. Alone, either is of the value.
    """
    if not (yield from line_end(cursor)):
        return (yield from value_until(cursor, tools, name, key, stops, trim=False))
    text, stop = yield from cursor.until(*stops)
    if stop:
        text = _trimmed(text) if text.endswith("\n") else text
        yield Piece(leaf(text, tools.shape(name, key), tools.schema(name)))
    return stop


def is_nullable(shape: Shape) -> bool:
    """Return whether a value may be a text or null, which servers and chat templates write in the same way."""
    return shape.is_text and shape.types is not None and "null" in shape.types


def null_until(cursor: Cursor, stops: tuple[str, ...]) -> Generator[Action, None, str]:
    """Skip a value that is nothing but `null` and white space, and its closing tag. Return that, or "" if there is a
    text.
    """
    while True:
        rest = cursor.rest()
        null = _NULL.match(rest)
        if null is None:
            is_sure = _NULL_BEGUN.fullmatch(rest) is None
        else:
            end = null.end() - rest.startswith("\n", null.end() - 1)  # it may be of the tag
            found, is_sure = first_of(rest[end:], (*stops, *(f"\n{stop}" for stop in stops)))
            if found and (is_sure or cursor.ended):
                cursor.skip(end + len(found))
                cursor.marker = found if found in stops else found[1:]
                return cursor.marker
        if is_sure or cursor.ended:
            return ""
        yield MORE


def leaf(text: str, shape: Shape, schema: ToolSchema) -> str:
    """Return a text of tags as the JSON value that the schema takes; nothing between the tags of a list or object is
    empty.
    """
    types = shape.types
    if types is not None and shape.is_text:
        return "null" if text.strip() == "null" and "null" in types else _json.quoted(text)
    if types is not None and not text.strip() and "string" not in types and not types.isdisjoint(("array", "object")):
        return "[]" if "array" in types else "{}"
    return _as_json(text, shape, schema)


def _as_json(text: str, shape: Shape, schema: ToolSchema) -> str:
    """Return a text of tags as a JSON value.

    If the schema takes a text among others, another value is read only if the schema takes it as it is: `{"a": 1}` is
    the content of a file whose type is "text or null", and `[1]` a text if that or a list of texts is asked for.
    """
    is_typed = shape.types is not None or shape.is_decided
    bare = text.strip()
    value = _json.decode(bare)
    if shape.kinds is not None and "string" in shape.kinds:
        judge = Judge(schema, len(bare))
        if type(value) not in (Malformed, str) and is_of(value, shape.kinds) and judge.fits(value, shape.schema):
            return bare
        return _json.quoted(bare if shape.is_listed else text)
    if not isinstance(value, Malformed) and (is_typed or bare[:1] in ("{", "[")):
        return bare
    return _json.quoted(bare if is_typed else text)


def _trimmed(text: str) -> str:
    end = "\r\n" if text.startswith("\r\n") else "\n"
    return text.removeprefix(end).removesuffix(end)


def line_end(cursor: Cursor) -> Generator[Action, None, str]:
    """Return the next line end, Windows' too, or ""."""
    first = yield from cursor.peek()
    if first == "\r":
        first = yield from cursor.peek(2)
    return first if first in ("\n", "\r\n") else ""


def json_until(cursor: Cursor, stops: tuple[str, ...]) -> Generator[Action, None, str]:
    """Read a value that its tag declares as JSON; what is not even almost JSON is a string. Return the closing tag."""
    text, stop = yield from cursor.until(*stops)
    if stop:
        bare = text.strip()
        is_json = bare[:1] in ("{", "[") or not isinstance(_json.decode(bare), Malformed)
        yield Piece(bare if is_json else _json.quoted(bare))
    return stop


def section_until(
    cursor: Cursor, shape: Shape, schema: ToolSchema, stops: tuple[str, ...]
) -> Generator[Action, None, str]:
    """Read a value from behind `<![CDATA[` up to `]]>` and one of the closing tags. Return which.

    `]]>` before anything else is text, and before another section nothing. A section inside it without its own end
    returns `SECTION`.
    """
    pieces: list[str] = []
    while True:
        text, end = yield from cursor.until(SECTION_END)
        pieces.append(text)
        if not end:
            return ""
        if stop := (yield from cursor.closing(*stops)):
            text = "".join(pieces)
            if text.count(SECTION) > text.count(end):  # a section in it that nothing else ends: two readings
                return SECTION
            yield Piece(leaf(text, shape, schema))
            return stop
        if not (yield from cursor.take(SECTION)):
            pieces.append(end)


def live_string(cursor: Cursor, stops: tuple[str, ...], *, trim: bool) -> Generator[Action, None, str]:
    """Yield the text up to one of the closing tags as a JSON string. Return which."""
    yield Piece('"')
    longest = max(map(len, stops))
    begun = (yield from line_end(cursor)) if trim else ""
    cursor.skip(len(begun))
    end = begun or "\n"
    while True:
        rest = cursor.rest()
        places = [(rest.find(stop), stop) for stop in stops if stop in rest]
        if places:
            place, stop = min(places)
            text = rest[: place + (stop[0] == "\n")]
            cursor.skip(place + len(stop))
            cursor.marker = stop
            yield Piece(escaped(text.removesuffix(end) if trim else text) + '"')
            return stop
        if cursor.ended:
            cursor.skip(len(rest))
            yield Piece(escaped(rest))
            return ""
        sure = len(rest) - longest
        if sure > 0:  # a line end before the closing tag may be markup: it waits with what may be the tag
            text = rest[:sure].rstrip(end) if trim else rest[:sure]
            if text:
                cursor.skip(len(text))
                yield Piece(escaped(text))
        yield MORE


def escaped(text: str) -> str:
    """Return a text as it stands within a JSON string."""
    return _json.quoted(text)[1:-1]
