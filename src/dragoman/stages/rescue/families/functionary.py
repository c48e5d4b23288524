"""functionary v3.2: `>>>NAME` on a line, then a JSON object, the next call right behind it. The prompt ends with `>>>`,
so that a whole message may begin with a bare name.

Read is what begins a line: within one the marker is an operator, a prompt or the end of tags to others, so that a call
right behind words of the same line (`all`, then `Let me see.>>>NAME`) stays text. `python` with code in place of an
object is no call: nothing tells where the code ends.
"""

from __future__ import annotations

import re
from typing import Final

from dragoman.stages.rescue.cursor import Cursor, Family, NotACall, Parser, Tools
from dragoman.stages.rescue.json_calls import named_call

_MARKER: Final = ">>>"
_NAME: Final = re.compile(r"[^\s<>{}]+")


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    """Calls from behind the marker of the first on."""
    more = _MARKER
    while more:
        name = tools.offered((yield from cursor.word(_NAME)))
        if name is None:
            raise NotACall
        yield from cursor.expect("\n")
        yield from _arguments(cursor, name)
        more = yield from cursor.closing(_MARKER)


def _parse_bare(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    """The same, the first name read already."""
    yield from _arguments(cursor, opener.removesuffix("\n"))
    if (yield from cursor.closing(_MARKER)):
        yield from _parse(cursor, tools, _MARKER)


def _arguments(cursor: Cursor, name: str) -> Parser:
    if (yield from cursor.peek()) != "{":
        raise NotACall
    yield from named_call(cursor, name)


FAMILY = Family(
    name="functionary",
    openers=(_MARKER,),
    parse=_parse,
    where="line",
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
