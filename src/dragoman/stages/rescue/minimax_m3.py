"""MiniMax M3: each tag behind `]<]minimax[>[`, and arguments in tags of their own names:
`]<]minimax[>[<tool_call>]<]minimax[>[<invoke name="NAME">]<]minimax[>[<KEY>value]<]minimax[>[</KEY>…`."""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Final

from dragoman import _json
from dragoman.stages.rescue.argument_tags import quoted_name
from dragoman.stages.rescue.cursor import Action, Close, Cursor, Family, NotACall, Open, Parser, Piece, Tools
from dragoman.stages.rescue.xml_values import value_until

_MARK: Final = "]<]minimax[>["
_KEY: Final = re.compile(r"[^\s<>/]+")


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    if opener.endswith("<tool_call>"):
        yield from cursor.space()
        yield from cursor.expect(f"{_MARK}<invoke name=", "<invoke name=")
    while (yield from _call(cursor, tools)):
        if not (yield from cursor.closing(f"{_MARK}<")):
            return
        if (yield from cursor.take("/tool_call>")) or cursor.ended:
            return
        yield from cursor.expect("invoke name=")


def _call(cursor: Cursor, tools: Tools) -> Generator[Action, None, bool]:
    """One call; gives whether it was whole."""
    name = yield from quoted_name(cursor, tools)
    yield from cursor.expect(">")
    if not (yield from cursor.closing(f"{_MARK}<")) and cursor.rest():
        raise NotACall
    yield Open(name)
    keys: list[str] = []
    while not (yield from cursor.take("/invoke>", "/tool_call>")):
        key = yield from cursor.word(_KEY)
        if not key or not (yield from cursor.take(">")):
            yield Close(is_cut=True)
            return False
        yield Piece(f"{', ' if keys else '{'}{_json.encode_text(key).decode()}: ")
        keys.append(key)
        closed = yield from value_until(cursor, tools, name, key, (f"{_MARK}</{key}>", f"</{key}>"), trim=False)
        if not closed:
            yield Close(is_cut=True)
            return False
        if not (yield from cursor.closing(f"{_MARK}<")):
            if not tools.has_required(name, keys):
                yield Close(is_cut=True)
                return False
            break
    yield Piece("}" if keys else "{}")
    yield Close()
    return True


FAMILY = Family(
    name="minimax-m3",
    openers=(f"{_MARK}<tool_call>", f"{_MARK}<invoke name="),
    parse=_parse,
    source="https://github.com/ml-explore/mlx-lm/issues/1416",
)
