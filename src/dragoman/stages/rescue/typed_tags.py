"""Calls whose arguments stand in tags with their keys and, in some families, their types."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from typing import Final, TypeAlias, final

import msgspec

from dragoman.gathered import GatheredText
from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import MORE, Action, Close, Cursor, NotACall, Open, Parser, Piece
from dragoman.stages.rescue.heads import attributes, is_call_read, is_read, tool_of, words_before
from dragoman.stages.rescue.json_calls import named_call
from dragoman.stages.rescue.quoted import Begun, names_place
from dragoman.stages.rescue.xml_values import (
    SECTION,
    SECTION_END,
    block_until,
    json_until,
    live_string,
    member,
    section_until,
    value_until,
)

#: Why a call whose markup does not go on is refused.
BROKEN: Final = "its tags hold more than is read, do not close each other, or give an argument twice"
#: Why a call whose value holds another call's markup is refused, with all that stands behind it.
NESTED: Final = "a value holds the markup of a call, so that its end and its own call's have two readings"

#: Characters at either end of a value in which marks of a section stand.
_AROUND: Final = 16
#: Reads the head of an argument up to its value: the key ("" when it has none) and the type ("" when none is told).
Head: TypeAlias = Callable[[Cursor], Generator[Action, None, tuple[str, str]]]


@final
class Tags(msgspec.Struct, frozen=True):
    """How a family writes the arguments of a call.

    Attributes:
        openers: begin an argument.
        head: reads on to its value.
        closers: end that.
        ends: what ends the call, the closing tags around it too.
        has_sections: a value may stand in `<![CDATA[…]]>`, or in lines of its own.
        calls: what begins a call: behind one in a value the rest of the answer is refused with the call, even if it is
            one of the `ends` too.
    """

    openers: tuple[str, ...]
    head: Head
    closers: tuple[str, ...]
    ends: tuple[str, ...]
    has_sections: bool = False
    calls: tuple[str, ...] = ()


def tagged_call(
    cursor: Cursor, tools: Tools, name: str, tags: Tags, *, is_head_read: bool = True
) -> Generator[Action, None, bool]:
    """Parse the call of a known tool from its first argument on. Return whether it was complete.

    It needs a closing tag. A value that contains markup of its own family has two readings, and so has a repeated
    argument: the call is refused, and what follows up to its end belongs to it. Everything that follows does if the
    value contains the beginning of a call.
    """
    cursor.stops = tags.ends
    mark = yield from first_tag(
        cursor, name, tags.openers, tags.closers, tags.ends, calls=tags.calls, is_head_read=is_head_read
    )
    if mark is None:
        return False
    keys: list[str] = []
    while mark in tags.openers:
        key, kind = yield from tags.head(cursor)
        if not key or key in keys:
            break
        yield member(key, keys)
        stop = yield from _value(cursor, tools, name, key, kind, tags)
        if stop in tags.calls or stop == SECTION:
            yield from refused_to_the_end(cursor, stop)
            return False
        if stop in tags.ends:
            yield Close("", BROKEN)
            return False
        if stop not in tags.closers:
            break
        mark = yield from cursor.closing(*tags.openers, *tags.ends)
    is_whole = mark in tags.ends
    if is_whole:
        yield Piece("}" if keys else "{}")
        yield Close(mark)
    else:
        yield from refused(cursor, tags.ends if mark else ())  # what is no tag of it may be the answer's
    return is_whole


def first_tag(
    cursor: Cursor,
    name: str,
    openers: tuple[str, ...],
    closers: tuple[str, ...],
    ends: tuple[str, ...],
    *,
    calls: tuple[str, ...] = (),
    is_head_read: bool = True,
) -> Generator[Action, None, str | None]:
    """Open a call and return its first tag.

    None: it was refused, because its head has more than is read, or words stand before an argument. Words alone are no
    call.
    """
    yield Begun(name)
    mark = yield from cursor.closing(*openers, *ends)
    has_words = not mark and bool(cursor.rest())
    if (has_words or mark in openers) and names_place((yield from cursor.peek(2))):
        raise NotACall
    if has_words and not (yield from words_before(cursor, openers, closers, (*ends, *calls))):
        raise NotACall
    if is_head_read and not has_words:
        yield Open(name, in_tags=True)
        return mark
    yield from refused_head(cursor, name, () if mark in ends else ends)
    return None


def empty_call(name: str, *, is_head_read: bool) -> Parser:
    """Parse a call that its opening tag ends."""
    yield Open(name, in_tags=True)
    yield Piece("{}")
    yield Close(">", "" if is_head_read else BROKEN)


def refused_head(cursor: Cursor, name: str, ends: tuple[str, ...]) -> Parser:
    """Refuse a call with unknown text before its first value, up to its end. What follows is none of it."""
    yield Open(name)
    yield from refused(cursor, ends)


def refused(cursor: Cursor, ends: tuple[str, ...]) -> Parser:
    """Refuse the open call, which is cut or unreadable: what follows up to one of its ends is skipped with it."""
    is_cut = cursor.ended and not cursor.rest()
    if ends and not is_cut:
        yield from cursor.until(*ends)
    yield Close("", "" if is_cut else BROKEN)


def refused_to_the_end(cursor: Cursor, beginning: str = "") -> Parser:
    """Refuse the open call, which has a value in which a call begins, so that their ends cannot be told.

    What follows may be part of the value, so no call is taken out of it: it is skipped with the call. `beginning`: the
    part of the inner call that was read.
    """
    passed = GatheredText([beginning])
    while True:
        rest = cursor.rest()
        passed.add(rest)
        cursor.skip(len(rest))
        if cursor.ended:
            break
        yield MORE
    yield Close("", NESTED, passed=passed.text())


def _value(cursor: Cursor, tools: Tools, name: str, key: str, kind: str, tags: Tags) -> Generator[Action, None, str]:
    """Read the value of an argument whose tag may give its type: JSON unless that is "string" or "any".

    Without a type the schema decides. Return what ended the value.
    """
    if tags.has_sections and (yield from cursor.closing(SECTION)):
        return (yield from section_until(cursor, tools.shape(name, key), tools.schema(name), tags.closers))
    stops = (*tags.closers, *tags.openers, *tags.ends, *tags.calls)
    if not kind and tags.has_sections:
        return (yield from _unsectioned(block_until(cursor, tools, name, key, stops)))
    if not kind:
        return (yield from value_until(cursor, tools, name, key, stops, trim=False))
    if kind in ("string", "any"):
        return (yield from live_string(cursor, stops, trim=False))
    return (yield from json_until(cursor, stops))


def _unsectioned(values: Generator[Action, None, str]) -> Generator[Action, None, str]:
    """Yield a value without a section as it comes. Return what ended it.

    "": a piece of a section's marks shows that it was meant to stand in one.
    """
    head = tail = ""
    while True:
        try:
            action = next(values)
        except StopIteration as end:
            is_torn = SECTION[3:] in head or tail.rstrip('"').endswith(SECTION_END)
            return "" if is_torn else end.value
        if isinstance(action, Piece):
            head, tail = (head + action.text)[:_AROUND], (tail + action.text)[-_AROUND:]
        yield action


@functools.lru_cache(maxsize=256)
def spellings(prefix: str, *words: str) -> tuple[str, ...]:
    """Return tags with a prefix, with and without a space behind it."""
    return tuple(f"{prefix}{gap}{word}" for gap in ("", " ") for word in words)


def invoke_in(cursor: Cursor, tools: Tools, prefix: str, blocks: tuple[str, ...]) -> Parser:
    """Parse the call from behind `<{prefix}invoke` on: arguments in tags with `string="true"` or `"false"`, or one JSON
    object.

    `blocks`: the words of the tags around it.
    """
    name, told = yield from tool_of(cursor, tools, "name")
    is_empty = told.get("") == "/"  # the tag ends its element
    told = {key: value for key, value in told.items() if key or not is_empty}
    is_head_read = is_call_read(told, tools.schema(name), "name")
    if is_empty:
        return (yield from empty_call(name, is_head_read=is_head_read))
    ends = spellings(f"</{prefix}", "invoke>", "inv>", *(f"{block}>" for block in blocks))  # small quants cut it
    yield from cursor.space()
    if (yield from cursor.peek()) == "{":
        if not is_head_read:
            return (yield from refused_head(cursor, name, ends))
        cursor.stops = ends
        yield from named_call(cursor, name)
        yield from cursor.closing(*ends)
        return
    tags = Tags(
        spellings(f"<{prefix}", "parameter"),
        _string_head,
        spellings(f"</{prefix}", "parameter>"),
        ends,
        calls=spellings(f"<{prefix}", "invoke"),
    )
    yield from tagged_call(cursor, tools, name, tags, is_head_read=is_head_read)


def _string_head(cursor: Cursor) -> Generator[Action, None, tuple[str, str]]:
    found = yield from attributes(cursor)
    kind = {"true": "string", "false": "json"}.get(found.get("string", ""), "")
    return found.get("name", "") if is_read(found, "name") else "", kind


def name_head(cursor: Cursor) -> Generator[Action, None, tuple[str, str]]:
    """Read the head of an argument whose only attribute is its name."""
    found = yield from attributes(cursor)
    return found.get("name", "") if is_read(found, "name") else "", ""
