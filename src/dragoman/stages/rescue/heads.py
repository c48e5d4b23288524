"""What stands in the head of a call or of an argument: names, keys, types, attributes.

None of it holds markup or a line break. Where it seems to, the text was broken off there and went on as something else,
so that what follows is no part of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import Final

from dragoman.stages.json_schema import ToolSchema
from dragoman.stages.rescue.cursor import MORE, Action, Cursor, NotACall, Tools
from dragoman.stages.rescue.quoted import Begun

#: Characters of a head.
_LONGEST: Final = 400
#: Characters behind the head of a call, up to the end of its first argument, where words stand before that.
_MOST_WORDS: Final = 400
_MARKUP: Final = re.compile(r"[<>\r\n]")
_ATTRIBUTE: Final = re.compile(r"(?<![\w-])([\w-]++)\s*+=\s*+(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'“”‘’«»=/]++))")
_REST: Final = re.compile(r"[^<>\r\n]+")
TYPES: Final = frozenset({"string", "number", "integer", "boolean", "array", "object", "null", "any"})
#: Attributes that give no argument, in whichever family a model writes them: DeepSeek's `string`
#: (DeepSeek-V4-Pro/encoding/README.md), Kimi K3's `type` (Kimi-K3.jinja; both read 2026-11-22).
_HARMLESS: Final = {"string": frozenset({"true", "false"}), "type": TYPES}
_ID: Final = re.compile(r"[\w.:-]{0,80}+\Z")
#: Attributes of a call's own tag that say which call it is, and what they hold.
_LABELS: Final = {
    "id": _ID,
    "call_id": _ID,
    "tool_call_id": _ID,
    "index": re.compile(r"\d{1,4}+\Z"),
    "type": re.compile(r"(?:function|tool|tool_call|tool_use|function_call)\Z"),
}


def begun(tools: Tools, written: str) -> Generator[Action, None, str]:
    """The offered tool that a call names; without one it is no call."""
    name = tools.offered(written)
    if name is None:
        raise NotACall
    yield Begun(name)
    return name


def plain(text: str) -> str:
    """A name, key or type without the white space around it; "" when it can be none."""
    bare = text.strip()
    return "" if _MARKUP.search(bare) else bare


def head_until(cursor: Cursor, *ends: str) -> Generator[Action, None, tuple[str, str]]:
    """Text up to the first of these, and which; ("…", "") when the text ends first. More than `_LONGEST` characters are
    no call, in however many pieces they come; then nothing is passed over."""
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
    """A name, key or type up to its end; "" when it can be none, or the text ends first."""
    text, closed = yield from head_until(cursor, end)
    return plain(text) if closed else ""


def attributes(cursor: Cursor, stop: str = ">") -> Generator[Action, None, dict[str, str]]:
    """The attributes up to the end of a tag, and under "" what is none; nothing when it does not end, holds markup, or
    tells one of them twice."""
    return attributes_of((yield from plain_until(cursor, stop)))


def tool_of(
    cursor: Cursor, tools: Tools, key: str, stop: str = ">"
) -> Generator[Action, None, tuple[str, dict[str, str]]]:
    """The offered tool that an attribute of a tag names, and all its attributes."""
    head, closed = yield from head_until(cursor, stop)
    told = attributes_of(plain(head)) if closed else {}
    if not told:  # markup in it, or it is cut: a call that cannot be read
        name = yield from begun(tools, attributes_of(_MARKUP.split(head)[0]).get(key, ""))
        yield Begun(name, is_body=True)
        raise NotACall
    return (yield from begun(tools, told.get(key, ""))), told


def attributes_of(head: str) -> dict[str, str]:
    """The same of the head of a tag."""
    found = _ATTRIBUTE.findall(head)
    told = {key: double or single or bare for key, double, single, bare in found}
    if len(told) < len(found):
        return {}
    rest = _ATTRIBUTE.sub("", head).strip()
    return told | {"": rest} if rest else told


def is_read(told: dict[str, str], *known: str) -> bool:
    """Whether the attributes of a tag are all known, or harmless: another one may be an argument."""
    return all(key in known or value in _HARMLESS.get(key, ()) for key, value in told.items())


def is_call_read(told: dict[str, str], schema: ToolSchema, *known: str) -> bool:
    """The same of a call's own tag: what says which call it is counts for an argument where the tool has one of that
    name."""
    labels = {key for key, value in told.items() if key in _LABELS and _LABELS[key].match(value)}
    return is_read(told, *known, *(key for key in labels if not schema.has_member(key)))


def words_before(
    cursor: Cursor, openers: tuple[str, ...], closers: tuple[str, ...], ends: tuple[str, ...]
) -> Generator[Action, None, bool]:
    """Whether words come next, and behind them an argument as in a call: another tag of it follows at once what closes
    the argument. Where an end or a brace comes first, or much else, none does. Nothing is passed over."""
    while True:
        rest = cursor.rest()[:_MOST_WORDS]
        places = [(rest.find(one), one in openers) for one in (*openers, *ends, "{") if one in rest]
        place, is_argument = min(places, default=(0, True))
        closed = [at + len(one) for one in closers for at in range(place, len(rest)) if rest.startswith(one, at)]
        is_closed = bool(places) and any(rest[at:].lstrip().startswith((*openers, *ends)) for at in closed)
        if is_closed or not is_argument or cursor.ended or len(rest) == _MOST_WORDS:
            return is_closed and is_argument
        yield MORE


def first_told(head: str, is_known: Callable[[str], object] = lambda _: False) -> tuple[str, dict[str, str]]:
    """What a head tells first, with its quotation marks or without, and the attributes behind it. `is_known`: whether
    there is such a name, white space in it perhaps."""
    bare = head.strip()
    whole = bare.strip("\"'")
    if is_known(whole):
        return whole, {}
    end = bare.find(bare[0], 1) if bare[:1] in ('"', "'") else -1
    first, rest = (bare[:end], bare[end + 1 :]) if end > 0 else (*bare.split(None, 1), "", "")[:2]
    return first.strip("\"'"), _told(rest)


def head_rest(cursor: Cursor, schema: ToolSchema) -> Generator[Action, None, tuple[bool, bool]]:
    """From behind a tool's name to the end of its tag: whether no argument is told there, and whether the tag ends its
    element."""
    rest = yield from cursor.word(_REST)
    yield from cursor.expect(">")
    bare = rest.strip()
    return is_call_read(_told(bare.removesuffix("/")), schema), bare.endswith("/")


def _told(rest: str) -> dict[str, str]:
    """The attributes behind a name, and under "" what is none, or tells one of them twice."""
    return attributes_of(rest) or ({"": rest} if rest.strip() else {})
