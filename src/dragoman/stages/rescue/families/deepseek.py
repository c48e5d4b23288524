"""DeepSeek V3, R1 and V3.1, Cogito: `<｜tool▁call▁begin｜>…<｜tool▁call▁end｜>` between `<｜tool▁calls▁begin｜>` and
`<｜tool▁calls▁end｜>`. In a call, V3 writes `function<｜tool▁sep｜>NAME`, a line end and arguments in a `json` fence.
V3.1 writes `NAME<｜tool▁sep｜>{…}`. Distilled models write the tokens with underscores, spaces or ASCII pipes."""

from __future__ import annotations

import re
from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, NotACall, Parser
from dragoman.stages.rescue.heads import begun, named
from dragoman.stages.rescue.json_calls import named_call, takes_null

_NAME: Final = re.compile(r"[^\s<>{}`]+")
_PIPES: Final = ("｜", "|")
_JOINTS: Final = ("▁", "_", " ")


def _spellings(words: str) -> tuple[str, ...]:
    return tuple(f"<{pipe}{words.replace(' ', joint)}{pipe}>" for pipe in _PIPES for joint in _JOINTS)


_SECTION: Final = _spellings("tool calls begin")
_SECTION_END: Final = (*_spellings("tool calls end"), *_spellings("end of sentence"))
_CALL: Final = _spellings("tool call begin")
_CALL_END: Final = _spellings("tool call end")
_SEPARATOR: Final = _spellings("tool sep")
_TYPE: Final = "function"  # before V3's separator; before V3.1's a tool may have this name


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    """Parse one call; the next one has its own marker."""
    cursor.stops = (*_CALL_END, *_SECTION_END)
    if opener in _SECTION:
        yield from cursor.space()
        yield from cursor.expect(*_CALL)
    yield from cursor.space()
    written = yield from cursor.word(_NAME)
    name = (yield from begun(tools, written)) if written != _TYPE and tools.offered(written) else ""
    yield from cursor.expect(*_SEPARATOR)
    yield from cursor.space()
    fence = ""
    is_null = name != "" and (yield from takes_null(cursor, _CALL_END))
    if not is_null and (yield from cursor.peek()) not in ("{", "<", ""):  # after the type stands the name
        if name:  # two names
            raise NotACall
        name = yield from named(cursor, tools, _NAME)
        yield from cursor.space()
        fence = yield from cursor.take("```json", "```")
        if fence:
            yield from cursor.space()
    elif not name:
        name = yield from begun(tools, written)
    yield from named_call(cursor, name, ends=_CALL_END)
    if fence:
        yield from cursor.closing("```")
    yield from cursor.closing(*_CALL_END)
    yield from cursor.closing(*_SECTION_END)
    yield from cursor.closing(*_SECTION_END)


FAMILY = Family(
    name="deepseek",
    openers=(*_SECTION, *_CALL),
    parse=_parse,
    source="https://github.com/sgl-project/sglang/pull/9446 (both formats, read 2026-11-21)",
    residue=(*_CALL_END, *_SECTION_END),
)
