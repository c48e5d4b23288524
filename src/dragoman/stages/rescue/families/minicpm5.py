"""MiniCPM 5: `<function name="NAME"><param name="KEY">value</param></function>`. A value that holds markup stands in
`<![CDATA[…]]>`. Other models write these tags too, with `<parameter name=` and inside `<tool_call>`."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

import msgspec

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.argument_tags import named_head
from dragoman.stages.rescue.cursor import Action, Cursor, Family, Parser
from dragoman.stages.rescue.heads import first_told, is_read, plain_until
from dragoman.stages.rescue.typed_tags import Tags, empty_call, tagged_call

_FUNCTION: Final = "<function name="
_WRAPPER: Final = "<tool_call>"
_WRAPPER_END: Final = "</tool_call>"
#: What stands around the arguments, now and then.
_ARGUMENTS: Final = "<arguments>"


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    """Parse one call; the next one has its own marker."""
    if opener == _WRAPPER:
        yield from cursor.space()
        yield from cursor.expect(_FUNCTION)
    name, is_head_read, is_empty = yield from named_head(cursor, tools)
    if is_empty:
        yield from empty_call(name, is_head_read=is_head_read)
    else:
        tags = _WRAPPED if is_head_read and (yield from cursor.closing(_ARGUMENTS)) else _TAGS
        yield from tagged_call(cursor, tools, name, tags, is_head_read=is_head_read)
    yield from cursor.closing("</function>")
    yield from cursor.closing(_WRAPPER_END)


def _head(cursor: Cursor) -> Generator[Action, None, tuple[str, str]]:
    key, told = first_told((yield from plain_until(cursor, ">")))
    return key if is_read(told) else "", ""


_TAGS: Final = Tags(
    ("<param name=", "<parameter name=", "<parameter="),
    _head,
    ("</param>", "</parameter>"),
    ("</function>", _WRAPPER_END),
    has_sections=True,
    calls=(_FUNCTION, "<function="),
)
_WRAPPED: Final = msgspec.structs.replace(_TAGS, ends=("</arguments>", *_TAGS.ends))

FAMILY = Family(
    name="minicpm5",
    openers=(_FUNCTION, _WRAPPER),
    parse=_parse,
    source="https://github.com/sgl-project/sglang (function_call/minicpm5_detector.py, read 2026-11-22)",
    residue=("</function>", _WRAPPER_END, "<|im_end|>"),  # its own tags, and the turn token of the chat template
    value_ends=("</param>", "</parameter>", "]]>"),
)
