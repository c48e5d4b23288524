"""Calls whose arguments stand in tags: `<invoke name="…"><parameter name="…">…` and `<arg_key>…<arg_value>…`."""

from __future__ import annotations

import re
from collections.abc import Generator
from functools import partial
from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Action, Close, Cursor, NotACall, Parser, Piece
from dragoman.stages.rescue.heads import attributes, begun, head_rest, head_until, is_read, plain
from dragoman.stages.rescue.json_calls import named_call
from dragoman.stages.rescue.typed_tags import BROKEN, empty_call, first_tag, refused, refused_head, refused_to_the_end
from dragoman.stages.rescue.xml_values import block_until, leaf, member, value_until

_QUOTED: Final = re.compile(r"[^\"'<>\n]+")
#: Hunyuan's, behind a name.
_SEPARATOR: Final = "<tool_sep"
_BARE: Final = re.compile(r"[^\s\"'<>/]+")


def named_head(cursor: Cursor, tools: Tools) -> Generator[Action, None, tuple[str, bool, bool]]:
    """Read the offered tool that an attribute names, with or without quotation marks; then as `head_rest`, to the end
    of the tag.
    """
    quote = yield from cursor.take('"', "'")
    written = yield from cursor.word(_QUOTED if quote else _BARE)
    if quote:
        yield from cursor.expect(quote)
    name = yield from begun(tools, written)
    return name, *(yield from head_rest(cursor, tools.schema(name)))


def invoke_calls(cursor: Cursor, tools: Tools, *, prefix: str = "", ends: tuple[str, ...]) -> Parser:
    """Read calls from behind the first `<invoke name=` up to one of the tags that end them all, or the last call."""
    while (yield from invoke_call(cursor, tools, prefix=prefix, ends=ends)):
        if (yield from cursor.closing(f"<{prefix}invoke name=", *ends)) in ("", *ends):
            return


def invoke_call(
    cursor: Cursor, tools: Tools, *, prefix: str, ends: tuple[str, ...], trims: bool = True
) -> Generator[Action, None, bool]:
    """Read one call from behind `<invoke name=` on. Return whether its end was read. `trims`: a value may stand in
    lines of its own.
    """
    name, is_head_read, is_empty = yield from named_head(cursor, tools)
    if is_empty:
        yield from empty_call(name, is_head_read=is_head_read)
        return True
    closers = (f"</{prefix}parameter>", f"</{prefix}param>")
    parameters, end = (f"<{prefix}parameter", f"<{prefix}param "), f"</{prefix}invoke>"
    yield from cursor.space()
    if (yield from cursor.peek()) == "{":  # DeepSeek V3.2 without its prefix
        if not is_head_read:
            yield from refused_head(cursor, name, (end, *ends))
            return True
        yield from named_call(cursor, name)
        yield from cursor.closing(end)
        return True
    #: Qwen's calls close their arguments with the tag that has no prefix.
    nested = (f"<{prefix}invoke name=", *(() if prefix else ("<function=", "<parameter=")))
    mark = yield from first_tag(
        cursor, name, parameters, closers, (end, *ends), calls=nested, is_head_read=is_head_read
    )
    if mark is None:
        return True
    keys: list[str] = []
    while mark in parameters:
        parameter = mark.rstrip()
        told = yield from attributes(cursor)
        key = told.get("name", "") if is_read(told, "name") else ""
        if not key or key in keys:  # broken off, or two readings
            yield from refused(cursor, (end, *ends))
            return False
        yield member(key, keys)
        stops = (f"{parameter.replace('<', '</')}>", f"{parameter} ", *nested)
        read = block_until if trims else partial(value_until, trim=False)
        stop = yield from read(cursor, tools, name, key, stops)
        if stop in stops[1:]:
            yield from refused_to_the_end(cursor, stop) if stop in nested else refused(cursor, (end, *ends))
            return False
        if not stop:
            break
        mark = yield from cursor.closing(*parameters, end, *ends)
    is_whole = mark == end or mark in ends
    if is_whole:
        yield Piece("}" if keys else "{}")
    yield Close(mark if is_whole else "")
    return is_whole


def argument_pairs(
    cursor: Cursor, tools: Tools, name: str, *, prefix: str = "", suffix: str = "", ends: tuple[str, ...]
) -> Parser:
    """Read the call of a known tool from behind its name up to one of its closing tags.

    Each argument is `<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>`; some families add a prefix and a suffix to
    the tags.
    """
    key_tag, value_tag = f"{prefix}arg_key{suffix}>", f"{prefix}arg_value{suffix}>"
    if not (yield from cursor.space()) and not (yield from cursor.peek()):  # the name may be cut
        raise NotACall
    calls = (*(end.replace("</", "<") for end in ends), _SEPARATOR)
    mark = yield from first_tag(cursor, name, (f"<{key_tag}",), (f"</{value_tag}",), ends, calls=calls)
    if mark is None:
        return
    keys: list[str] = []
    while mark == f"<{key_tag}":
        written, closed = yield from head_until(cursor, f"</{key_tag}", f"</{value_tag}", f"<{key_tag}")
        if closed == f"</{value_tag}":
            mark = yield from _joined_pair(cursor, tools, name, written, keys, (f"<{key_tag}", *ends))
            continue
        key = plain(written) if closed == f"</{key_tag}" else ""
        stops: tuple[str, ...] = (f"</{value_tag}", f"<{key_tag}", f"<{value_tag}")
        if key and key not in keys and not (yield from cursor.closing(f"<{value_tag}")):
            stops = (*stops[:2], value_tag, *ends)  # GLM 4.7 leaves out what begins the value, now and then
            first = (yield from cursor.peek(len(value_tag) + 8)).lstrip("< \t\r\n")
            is_torn = first.startswith(value_tag[:-1])  # what begins the value lost its brackets
            if not first or is_torn or not tools.schema(name).has_member(key):
                key = ""
            yield from cursor.take("\n", "\r\n")  # the line between the tags, as GLM 4.5 writes them
        if not key or key in keys:
            yield from refused(cursor, ends)
            return
        yield member(key, keys)
        stop = yield from value_until(cursor, tools, name, key, stops, trim=False)
        if stop in stops[2:]:
            yield Close("", BROKEN)
            return
        if stop == f"<{key_tag}":
            yield from refused_to_the_end(cursor, stop)
            return
        if not stop:
            break
        mark = yield from cursor.closing(f"<{key_tag}", *ends)
    is_whole = mark in ends
    if is_whole:
        yield Piece("}" if keys else "{}")
    yield Close(mark if is_whole else "")


def _joined_pair(
    cursor: Cursor, tools: Tools, name: str, written: str, keys: list[str], marks: tuple[str, ...]
) -> Generator[Action, None, str]:
    """Read GLM 5.3 Flash's `<arg_key>KEY=VALUE</arg_value>`, the key one of the schema's. Return the tag behind it."""
    key, joint, value = written.partition("=")
    if not joint or key.strip() in keys or not tools.schema(name).has_member(key.strip()):
        return ""
    yield member(key.strip(), keys)
    yield Piece(leaf(value, tools.shape(name, key.strip()), tools.schema(name)))
    return (yield from cursor.closing(*marks))
