"""Arguments that stand between tags, written as JSON: strings live, other types whole."""

from __future__ import annotations

from collections.abc import Generator

from dragoman import _json
from dragoman._json import Malformed
from dragoman.stages.rescue.cursor import MORE, Action, Cursor, Piece, Tools


def value_until(
    cursor: Cursor, tools: Tools, name: str, key: str, stops: tuple[str, ...], *, trim: bool = True
) -> Generator[Action, None, str]:
    """The value of argument `key` up to one of the closing tags; gives which ("" when the text ended first).

    A value that the schema takes as a string leaves live; another one is read as JSON when it is, else as a string,
    and the arguments stage judges it. `trim`: one line end after the opening and before the closing tag is markup.
    """
    shape = tools.shape(name, key)
    if shape.types is None or not shape.takes_live("string"):
        text, stop = yield from cursor.until(*stops)
        if stop:
            yield Piece(_as_json(text, trim, is_typed=shape.types is not None or shape.is_decided))
        return stop
    return (yield from live_string(cursor, stops, trim=trim))


def _as_json(text: str, trim: bool, *, is_typed: bool) -> str:
    bare = text.strip()
    if not isinstance(_json.decode(bare), Malformed) and (is_typed or bare[:1] in ("{", "[")):
        return bare
    if is_typed:
        return _json.encode_text(bare).decode()
    return _json.encode_text(_trimmed(text) if trim else text).decode()


def _trimmed(text: str) -> str:
    return text.removeprefix("\n").removesuffix("\n")


def json_until(cursor: Cursor, stops: tuple[str, ...]) -> Generator[Action, None, str]:
    """A value that its tag calls JSON; what is neither JSON nor almost is a string. Gives the closing tag."""
    text, stop = yield from cursor.until(*stops)
    if stop:
        bare = text.strip()
        yield Piece(bare if bare[:1] in ("{", "[") else _as_json(text, False, is_typed=True))
    return stop


def live_string(cursor: Cursor, stops: tuple[str, ...], *, trim: bool) -> Generator[Action, None, str]:
    """The text up to one of the closing tags as a JSON string, while it comes; gives which."""
    yield Piece('"')
    longest = max(map(len, stops))
    if trim and (yield from cursor.peek()) == "\n":
        cursor.skip(1)
    while True:
        rest = cursor.rest()
        places = [(rest.find(stop), stop) for stop in stops if stop in rest]
        if places:
            place, stop = min(places)
            text = rest[:place]
            cursor.skip(place + len(stop))
            yield Piece(_escaped(text.removesuffix("\n") if trim else text) + '"')
            return stop
        if cursor.ended:
            cursor.skip(len(rest))
            yield Piece(_escaped(rest))
            return ""
        sure = len(rest) - longest
        if sure > 0:  # a line end before the closing tag may be markup: it waits with what may be the tag
            text = rest[:sure].rstrip("\n") if trim else rest[:sure]
            if text:
                cursor.skip(len(text))
                yield Piece(_escaped(text))
        yield MORE


def _escaped(text: str) -> str:
    return _json.encode_text(text).decode()[1:-1]
