"""functionary v3.2: `>>>NAME` on a line, then a JSON object. The next call follows at once. The prompt ends with `>>>`,
so a whole message may begin with a bare name. Others that lost their tokens do, too: Mistral's `NAME{…}`, Kimi K2's
`functions.NAME:0{…}`.

dragoman reads the marker only at the start of a line, because within a line `>>>` may be an operator, a prompt or the
end of tags. A call right behind words of the same line (`all`, then `Let me see.>>>NAME`) therefore stays text.
`python` followed by code instead of an object is not a call, because nothing marks the end of the code.
"""

from __future__ import annotations

from typing import Final

from dragoman.codec.patterns import rare_pattern
from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, NotACall, Parser
from dragoman.stages.rescue.heads import begun, named
from dragoman.stages.rescue.json_calls import named_call
from dragoman.stages.rescue.quoted import Begun

_MARKER: Final = ">>>"
#: What may stand between a bare name and its object.
_BETWEEN: Final = ("\n", "[ARGS]")
_NAME: Final = rare_pattern(r"[^\s<>{}\[\]]+")


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    """Parse calls from behind the marker of the first on."""
    more = _MARKER
    while more:
        name = yield from named(cursor, tools)
        yield from cursor.expect("\n")
        yield from _arguments(cursor, name)
        more = yield from cursor.closing(_MARKER)


def _parse_bare(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    """As `_parse`, with the first name read already. Behind a call to another tool a marker begins its own.

    The next call may lack its marker, too: `NAME{…}NAME{…}`, or `NAME[ARGS]{…}` as Mistral writes behind its token.
    """
    if opener[-1:] == " ":
        raise NotACall  # a word and an object
    yield from cursor.take(*_BETWEEN)
    name = yield from begun(tools, opener)
    yield from _arguments(cursor, name)
    while tools.has(name):
        if (yield from cursor.closing(_MARKER)):
            return (yield from _parse(cursor, tools, _MARKER))
        yield from cursor.space()
        if not (yield from cursor.peek()).isalpha():
            return
        name = yield from named(cursor, tools, _NAME)
        if not tools.has(name):
            raise NotACall  # a word and an object, such as an answer that is made up
        yield from cursor.take(*_BETWEEN)
        yield from _arguments(cursor, name)


def _arguments(cursor: Cursor, name: str) -> Parser:
    if (yield from cursor.peek()) != "{":
        raise NotACall
    yield Begun(name, is_body=True)
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
    openers=("",),
    followed_by=("\n", "{", "["),
    parse=_parse_bare,
    where="message",
    named=True,
    source=FAMILY.source,
    residue=FAMILY.residue,
)
