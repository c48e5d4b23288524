"""functionary v3.2: `>>>NAME` on a line, then a JSON object; what is said stands behind `>>>all` or before the first
call. The prompt ends with `>>>`, so that a whole message may begin with a bare name.

`python` with code in place of an object is no call: nothing tells where the code ends.
"""

from __future__ import annotations

import re
from typing import Final

from dragoman.stages.rescue.cursor import Cursor, Family, NotACall, Parser, Tools
from dragoman.stages.rescue.json_calls import named_call

_MARKER: Final = ">>>"
_NAME: Final = re.compile(r"[^\s<>{}]+")


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    """One call; the next one has a marker of its own."""
    name = tools.offered((yield from cursor.word(_NAME)))
    if name is None:
        raise NotACall
    yield from cursor.expect("\n")
    yield from _arguments(cursor, name)


def _parse_bare(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    """Calls up to the end, the first without its marker."""
    yield from _arguments(cursor, opener.removesuffix("\n"))
    while (yield from cursor.closing(_MARKER)):
        yield from _parse(cursor, tools, _MARKER)


def _arguments(cursor: Cursor, name: str) -> Parser:
    if (yield from cursor.peek()) != "{":
        raise NotACall
    yield from named_call(cursor, name)


FAMILY = Family(
    name="functionary",
    openers=(_MARKER,),
    parse=_parse,
    source="https://github.com/ggml-org/llama.cpp (functionary-v3-2)",
    residue=("<|eot_id|>",),
)
BARE = Family(
    name="functionary-bare",
    openers=("\n",),
    parse=_parse_bare,
    where="message",
    named=True,
    source=FAMILY.source,
    residue=FAMILY.residue,
)
