"""Muse Glimmer (ATEM): `<atem:function_calls><atem:invoke name="NAME"><atem:parameter name="KEY">value</atem:parameter>
</atem:invoke></atem:function_calls>`. Some servers also let the header `<|start|>assistant to=NAME<|message|>` through,
of which the prompt may have written the beginning. White space in a value is data. The model sometimes writes
`<|message|>` into the name, or repeats the name (`read.read`)."""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Action, Cursor, Family, NotACall, Parser
from dragoman.stages.rescue.heads import begun, head_rest
from dragoman.stages.rescue.typed_tags import Tags, name_head, tagged_call

_HEADER: Final = "<|start|>assistant"
_CALLS: Final = "<atem:function_calls>"
_INVOKE: Final = "<atem:invoke name="
_ARGUMENT: Final = "<atem:parameter"
_CALLS_END: Final = "</atem:function_calls>"
_STRAY: Final = "<|message|>"
_TURN_ENDS: Final = ("<|eom|>", "<|eot|>")
_WORD: Final = re.compile(r"[^\"<>\s]+")


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    """Parse one call; the next one has its own marker."""
    recipient = ""
    if opener == _HEADER:
        yield from cursor.space()
        yield from cursor.expect("to=")
        recipient = yield from cursor.word(_WORD)
        yield from cursor.expect(_STRAY)
        yield from cursor.space()
        opener = yield from cursor.expect(_CALLS)
    if opener == _CALLS:
        yield from cursor.space()
        yield from cursor.expect(_INVOKE)
    name, is_head_read = yield from _name(cursor, tools)
    is_head_read = is_head_read and tools.offered(recipient) in (None, name)
    yield from tagged_call(cursor, tools, name, _TAGS, is_head_read=is_head_read)
    yield from cursor.closing(_CALLS_END)
    yield from cursor.closing(*_TURN_ENDS)


def _name(cursor: Cursor, tools: Tools) -> Generator[Action, None, tuple[str, bool]]:
    """Return the offered tool, and whether the tag has nothing else.

    A token that got into the name is removed; it may replace the end of the tag.
    """
    yield from cursor.expect('"')
    written, is_stray = "", False
    while True:
        written += yield from cursor.word(_WORD)
        if not (yield from cursor.take(_STRAY)):
            break
        is_stray = True
    space, _, own = written.partition(".")
    is_twice = not tools.offered(written) and own.partition(".")[0] == space
    is_closed, is_head_read = (yield from cursor.take('"')), True
    name = yield from begun(tools, own if is_twice else written)
    if is_closed:
        is_head_read, _ = yield from head_rest(cursor, tools.schema(name))
    elif not (is_stray and (yield from cursor.peek(len(_ARGUMENT))) == _ARGUMENT):
        raise NotACall
    return name, is_head_read


_TAGS: Final = Tags((_ARGUMENT,), name_head, ("</atem:parameter>",), ("</atem:invoke>", _CALLS_END), calls=(_INVOKE,))

FAMILY = Family(
    name="muse-glimmer",
    openers=(_CALLS, _INVOKE, _HEADER),
    parse=_parse,
    source="https://github.com/ollama/ollama (model/parsers/glimmer_test.go, read 2026-11-22)",
    prompted=(_HEADER, "to=", _STRAY),
    residue=(_CALLS_END, *_TURN_ENDS),  # glimmer_test.go, as above
    value_ends=("</atem:parameter>",),
)
