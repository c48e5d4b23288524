"""K2 Horizon: `<ifm|tool_calls><ifm|tool_call>NAME<ifm|arg_key>KEY</ifm|arg_key><ifm|arg_type>TYPE</ifm|arg_type>
<ifm|arg_value>value</ifm|arg_value></ifm|tool_call></ifm|tool_calls>`. One of its modes leaves out the types. Another
puts call objects into the inner tag."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Action, Cursor, Family, NotACall, Parser
from dragoman.stages.rescue.heads import TYPES, named, plain_until
from dragoman.stages.rescue.json_calls import call_objects
from dragoman.stages.rescue.typed_tags import Tags, tagged_call

_CALL: Final = "<ifm|tool_call>"
_CALLS: Final = "<ifm|tool_calls>"
_CALL_END: Final = "</ifm|tool_call>"
_CALLS_END: Final = "</ifm|tool_calls>"
_VALUE: Final = "<ifm|arg_value>"


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    """Parse the content of one inner tag; the next one has its own marker."""
    cursor.stops = (_CALL_END, _CALLS_END)
    if opener == _CALLS:
        yield from cursor.space()
        yield from cursor.expect(_CALL)
    yield from cursor.space()
    if (yield from cursor.peek()) in ("{", "["):
        yield from call_objects(cursor, tools)
        yield from cursor.closing(_CALL_END)
    else:
        name = yield from named(cursor, tools)
        if not (yield from cursor.peek()):
            raise NotACall
        yield from tagged_call(cursor, tools, name, _TAGS)
    yield from cursor.closing(_CALLS_END)


def _head(cursor: Cursor) -> Generator[Action, None, tuple[str, str]]:
    key = yield from plain_until(cursor, "</ifm|arg_key>")
    kind, mark = "", (yield from cursor.closing("<ifm|arg_type>", _VALUE))
    if mark == "<ifm|arg_type>":
        kind = yield from plain_until(cursor, "</ifm|arg_type>")
        mark = (yield from cursor.closing(_VALUE)) if kind else ""
    return key if mark == _VALUE and (not kind or kind in TYPES) else "", kind


_TAGS: Final = Tags(
    ("<ifm|arg_key>",), _head, ("</ifm|arg_value>",), (_CALL_END, _CALLS_END), calls=(_CALL, "<ifm|arg_value>")
)

FAMILY = Family(
    name="k2-horizon",
    openers=(_CALLS, _CALL),
    parse=_parse,
    source="https://github.com/sgl-project/sglang (function_call/k2_v3_detector.py, read 2026-11-22)",
    residue=(_CALL_END, _CALLS_END),  # its own tags
    value_ends=("</ifm|arg_value>",),
)
