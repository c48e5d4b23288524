"""DeepSeek V3.2 and V4: `<｜DSML｜tool_calls><｜DSML｜invoke name="NAME"><｜DSML｜parameter name="KEY" string="true">…
</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜tool_calls>` (`function_calls` in V3.2), with ASCII pipes too. A value is
text as it stands, or JSON where `string="false"`."""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Final

from dragoman import _json
from dragoman.stages.rescue.cursor import Action, Close, Cursor, Family, NotACall, Open, Parser, Piece, Tools
from dragoman.stages.rescue.xml_values import json_until, live_string, value_until

_ATTRIBUTE: Final = re.compile(r"\b(name|string)\s*=\s*[\"']([^\"']*)[\"']")
_HEAD_LIMIT: Final = 400


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    """One call; the next one has a marker of its own."""
    pipe = "｜" if "｜" in opener else "|"
    if not opener.endswith("invoke"):
        yield from cursor.space()
        yield from cursor.expect(f"<{pipe}DSML{pipe}invoke")
    attributes = yield from _attributes(cursor)
    name = tools.offered(attributes.get("name", ""))
    if name is None:
        raise NotACall
    yield Open(name)
    yield Close(is_cut=not (yield from _arguments(cursor, tools, name, f"{pipe}DSML{pipe}")))
    yield from cursor.closing(*(f"</{pipe}DSML{pipe}{tag}>" for tag in ("tool_calls", "function_calls")))


def _attributes(cursor: Cursor) -> Generator[Action, None, dict[str, str]]:
    head, _ = yield from cursor.until(">", limit=_HEAD_LIMIT)
    return dict(_ATTRIBUTE.findall(head))


def _arguments(cursor: Cursor, tools: Tools, name: str, prefix: str) -> Generator[Action, None, bool]:
    """The parameters up to the end of the call; gives whether it came."""
    close = f"</{prefix}parameter>"
    ends = (f"</{prefix}invoke>", f"</{prefix}tool_calls>", f"</{prefix}function_calls>")
    keys: list[str] = []
    while True:
        mark = yield from cursor.closing(f"<{prefix}parameter", *ends)
        if mark in ends or (not mark and keys and tools.has_required(name, keys)):
            yield Piece("}" if keys else "{}")
            return True
        if not mark:
            return False
        attributes = yield from _attributes(cursor)
        key = attributes.get("name", "")
        if not key:
            return False
        yield Piece(f"{', ' if keys else '{'}{_json.encode_text(key).decode()}: ")
        keys.append(key)
        kind = attributes.get("string")
        if kind == "true":
            stop = yield from live_string(cursor, (close,), trim=False)
        elif kind == "false":
            stop = yield from json_until(cursor, (close,))
        else:
            stop = yield from value_until(cursor, tools, name, key, (close,))
        if not stop:
            return False


FAMILY = Family(
    name="deepseek-dsml",
    openers=tuple(
        f"<{pipe}DSML{pipe}{tag}" for pipe in ("｜", "|") for tag in ("tool_calls>", "function_calls>", "invoke")
    ),
    parse=_parse,
    source="https://huggingface.co/deepseek-ai/DeepSeek-V4-Pro/blob/main/encoding/README.md (read 2026-11-21)",
)
