"""Calls written as JSON objects: `{"name": …, "arguments": {…}}` under each of the keys in use."""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Final

from dragoman import _json
from dragoman._json import Malformed
from dragoman.stages.rescue.cursor import Action, Close, Cursor, NotACall, Open, Parser, Piece, Tools

_NAME_KEYS: Final = frozenset({"name", "tool_name", "function", "tool", "recipient_name", "function_name"})
_ARGUMENT_KEYS: Final = frozenset({"arguments", "parameters", "args", "input", "tool_input", "action_input", "kwargs"})
_ID_KEYS: Final = frozenset({"id", "tool_call_id", "call_id"})
#: Keys that may stand before the name.
_OTHER_KEYS: Final = frozenset({"type", "index", "status", "thought", "thoughts", "reasoning"})
_ALL_KEYS: Final = _NAME_KEYS | _ARGUMENT_KEYS | _ID_KEYS | _OTHER_KEYS
_KEY: Final = re.compile(r"[\w.-]+")


def call_object(cursor: Cursor, tools: Tools) -> Parser:
    """One call object from behind its brace on: live once its name is known, else held until it is."""
    name, call_id, held = "", "", ""
    opened = is_closed = False
    while True:
        yield from cursor.space()
        if (yield from cursor.take("}")):
            is_closed = True
            break
        key = yield from _key(cursor)
        if not key:
            if not opened and not (name and cursor.ended):
                raise NotACall
            break
        yield from cursor.space()
        first = yield from cursor.peek()
        if key in _ARGUMENT_KEYS and name:
            if not opened:
                if first == "{" and not (yield from cursor.object_begins()):
                    raise NotACall
                yield Open(name, call_id)
                opened = True
            whole = yield from cursor.json_pieces()
            if not whole:
                yield Close(is_cut=True)
                return
        elif key in _NAME_KEYS and first == "{":  # {"function": {"name": …, "arguments": …}}
            cursor.skip(1)
            yield from call_object(cursor, tools)
            opened = True
            name = ""
        else:
            if not name and key not in _ALL_KEYS:
                raise NotACall
            value = yield from cursor.json()
            if key in _NAME_KEYS and not name:
                name = _name(value, tools)
            elif key in _ARGUMENT_KEYS:
                held = value
            elif key in _ID_KEYS:
                call_id = value.strip('"')
            if cursor.ended and not cursor.rest() and not name:
                raise NotACall
        yield from cursor.space()
        yield from cursor.take(",")
        if cursor.ended and not cursor.rest():
            break
    if not name and not opened:
        raise NotACall
    if name and not opened:
        yield Open(name, call_id)
        if held:
            yield Piece(held)
    if name:  # a brace that is missing behind whole arguments takes nothing from them
        yield Close(is_cut=not (is_closed or opened or held))


def named_call(cursor: Cursor, name: str, call_id: str = "") -> Parser:
    """The call of a known tool whose arguments follow as a JSON object, live from its first key on."""
    if not (yield from cursor.object_begins()):
        raise NotACall
    yield Open(name, call_id)
    whole = bool(cursor.rest()) and (yield from cursor.json_pieces())
    yield Close(is_cut=not whole)


def _key(cursor: Cursor) -> Generator[Action, None, str]:
    quote = yield from cursor.take('"', "'")
    key = yield from cursor.word(_KEY, 64)
    if quote:
        yield from cursor.take(quote)
    yield from cursor.space()
    colon = yield from cursor.take(":")
    return key if colon else ""


def _name(value: str, tools: Tools) -> str:
    decoded = _json.decode(value)
    if isinstance(decoded, Malformed) and value[:1] == "'" == value[-1:]:
        decoded = value[1:-1]
    offered = tools.offered(decoded) if isinstance(decoded, str) else None
    if offered is None:
        raise NotACall
    return offered


def call_objects(cursor: Cursor, tools: Tools) -> Parser:
    """One call object, a list of them, or several in a row."""
    yield from cursor.space()
    listed = yield from cursor.take("[")
    count, opened_by = 0, ""
    while True:
        if opened_by != "{":
            yield from cursor.space()
            if not (yield from cursor.take("{")):
                break
        yield from call_object(cursor, tools)
        count += 1
        opened_by = yield from cursor.closing(",", ";", "{")
        if not opened_by:
            break
    if listed:
        yield from cursor.closing("]")
    if not count:
        raise NotACall
