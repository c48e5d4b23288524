"""Read the head of a call or of an argument: names, keys, types, attributes.

None of it contains markup or a line break. If it seems to, the text was broken off there and went on as something else,
so that what follows is no part of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from typing import Final

from dragoman.codec.patterns import rare_pattern
from dragoman.stages.json_schema import ToolSchema
from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import MORE, Action, Cursor, NotACall
from dragoman.stages.rescue.quoted import Begun

#: Characters of a head.
_LONGEST: Final = 400
#: Characters behind the head of a call, up to the end of its first argument, where words stand before that.
_MOST_WORDS: Final = 400
_MARKUP: Final = rare_pattern(r"[<>\r\n]")
_ATTRIBUTE: Final = rare_pattern(r"(?<![\w-])([\w-]++)\s*+=\s*+(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'“”‘’«»=/]++))")
_REST: Final = rare_pattern(r"[^<>\r\n]+")
_NAME: Final = rare_pattern(r"[^\s<>{}]+")
TYPES: Final = frozenset({"string", "number", "integer", "boolean", "array", "object", "null", "any"})
#: Attributes that give no argument, in whichever family a model writes them: DeepSeek's `string`
#: (DeepSeek-V4-Pro/encoding/README.md), Kimi K3's `type` (Kimi-K3.jinja; both read 2026-11-22).
_HARMLESS: Final = {"string": frozenset({"true", "false"}), "type": TYPES}
_ID: Final = rare_pattern(r"[\w.:-]{0,80}+\Z")
#: Attributes of a call's own tag that say which call it is, and what they hold.
_LABELS: Final = {
    "id": _ID,
    "call_id": _ID,
    "tool_call_id": _ID,
    "index": rare_pattern(r"\d{1,4}+\Z"),
    "type": rare_pattern(r"(?:function|tool|tool_call|tool_use|function_call)\Z"),
}


def begun(tools: Tools, written: str) -> Generator[Action, None, str]:
    """Return the tool that a call names; without one it is no call."""
    name = tools.called(written)
    if name is None:
        raise NotACall
    yield Begun(name)
    return name


def bare_name(cursor: Cursor) -> Generator[Action, None, str]:
    """Read a name that stands bare between tags, tokens and brackets."""
    return cursor.word(_NAME)


def named(cursor: Cursor, tools: Tools, name: re.Pattern[str] = _NAME) -> Generator[Action, None, str]:
    """Return the offered tool whose bare name comes next; without one it is no call."""
    return (yield from begun(tools, (yield from cursor.word(name))))


def plain(text: str) -> str:
    """Return a name, key or type without surrounding white space; "" if it is invalid."""
    bare = text.strip()
    return "" if _MARKUP.search(bare) else bare


def head_until(cursor: Cursor, *ends: str) -> Generator[Action, None, tuple[str, str]]:
    """Read text up to the first of these. Return it and which one; ("…", "") if the text ends first.

    More than `_LONGEST` characters are no call, in however many pieces they come; then nothing is skipped.
    """
    longest = max(map(len, ends))
    while True:
        head = cursor.rest()[: _LONGEST + longest]
        places = [(place, -len(end), end) for end in ends if 0 <= (place := head.find(end)) <= _LONGEST]
        if places:
            place, _, cursor.marker = min(places)
            cursor.skip(place + len(cursor.marker))
            return head[:place], cursor.marker
        if len(head) == _LONGEST + longest:
            raise NotACall
        if cursor.ended:
            cursor.skip(len(head))
            return head, ""
        yield MORE


def plain_until(cursor: Cursor, end: str) -> Generator[Action, None, str]:
    """Return a name, key or type up to its end; "" if it is invalid, or the text ends first."""
    text, closed = yield from head_until(cursor, end)
    return plain(text) if closed else ""


def attributes(cursor: Cursor, stop: str = ">") -> Generator[Action, None, dict[str, str]]:
    """Return the attributes up to the end of a tag, and under "" any other text.

    Return none if the tag does not end, contains markup, or repeats an attribute.
    """
    return attributes_of((yield from plain_until(cursor, stop)))


def tool_of(
    cursor: Cursor, tools: Tools, key: str, stop: str = ">"
) -> Generator[Action, None, tuple[str, dict[str, str]]]:
    """Return the offered tool that an attribute of a tag names, and all its attributes."""
    head, closed = yield from head_until(cursor, stop)
    told = attributes_of(plain(head)) if closed else {}
    if not told:  # markup in it, or it is cut: a call that cannot be read
        name = yield from begun(tools, attributes_of(_MARKUP.split(head)[0]).get(key, ""))
        yield Begun(name, is_body=True)
        raise NotACall
    return (yield from begun(tools, told.get(key, ""))), told


def attributes_of(head: str) -> dict[str, str]:
    """Return the attributes of a tag's head, as `attributes` does."""
    found = _ATTRIBUTE.findall(head)
    told = {key: double or single or bare for key, double, single, bare in found}
    if len(told) < len(found):
        return {}
    rest = _ATTRIBUTE.sub("", head).strip()
    return told | {"": rest} if rest else told


def is_read(told: dict[str, str], *known: str) -> bool:
    """Return whether the attributes of a tag are all known, or harmless: another one may be an argument."""
    return all(key in known or value in _HARMLESS.get(key, ()) for key, value in told.items())


def is_call_read(told: dict[str, str], schema: ToolSchema, *known: str) -> bool:
    """As `is_read` for a call's own tag: an attribute that identifies the call counts as an argument if the tool has
    one of its name.
    """
    labels = {key for key, value in told.items() if key in _LABELS and _LABELS[key].match(value)}
    return is_read(told, *known, *(key for key in labels if not schema.has_member(key)))


def words_before(
    cursor: Cursor, openers: tuple[str, ...], closers: tuple[str, ...], ends: tuple[str, ...]
) -> Generator[Action, None, bool]:
    """Return whether words come next, and behind them an argument as in a call.

    What closes the argument must be followed at once by another tag of the call. An end or a brace before it, or much
    other text, means that there is none. Nothing is skipped.
    """
    while not cursor.names_other:
        rest = cursor.rest()[:_MOST_WORDS]
        places = [(rest.find(one), one in openers) for one in (*openers, *ends, "{") if one in rest]
        place, is_argument = min(places, default=(0, True))
        closed = (at for one in closers for at in _behind(one, rest, place))
        is_closed = bool(places) and any(rest[at:].lstrip().startswith((*openers, *ends)) for at in closed)
        if is_closed or not is_argument or cursor.ended or len(rest) == _MOST_WORDS:
            return is_closed and is_argument
        yield MORE
    return False


def _behind(mark: str, text: str, start: int) -> Iterator[int]:
    """Yield the places right behind each mark from a place on."""
    while (at := text.find(mark, start)) >= 0:
        yield at + len(mark)
        start = at + 1


def first_told(head: str, is_known: Callable[[str], object] = lambda _: False) -> tuple[str, dict[str, str]]:
    """Return the first value of a head, with or without quotation marks, and the attributes behind it.

    `is_known`: whether there is such a name, possibly with white space in it.
    """
    bare = head.strip()
    whole = bare.strip("\"'")
    if is_known(whole):
        return whole, {}
    end = bare.find(bare[0], 1) if bare[:1] in ('"', "'") else -1
    first, rest = (bare[:end], bare[end + 1 :]) if end > 0 else (*bare.split(None, 1), "", "")[:2]
    return first.strip("\"'"), _told(rest)


def head_rest(cursor: Cursor, schema: ToolSchema) -> Generator[Action, None, tuple[bool, bool]]:
    """Read from behind a tool's name to the end of its tag. Return whether it has no argument, and whether the tag ends
    its element.
    """
    rest = yield from cursor.word(_REST)
    yield from cursor.expect(">")
    bare = rest.strip()
    return is_call_read(_told(bare.removesuffix("/")), schema), bare.endswith("/")


def _told(rest: str) -> dict[str, str]:
    """Return the attributes behind a name, and under "" any other text, or a repeated one."""
    return attributes_of(rest) or ({"": rest} if rest.strip() else {})
