"""Beam: `<|start|>assistant to=NAME<|channel|>analysis <|constrain|>xml<|message|><rfl:parameter name="KEY">value
</rfl:parameter><|call|>`. The header is harmony's, and the arguments stand in tags. White space in a value is data."""

from __future__ import annotations

from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, Parser
from dragoman.stages.rescue.heads import named
from dragoman.stages.rescue.typed_tags import Tags, name_head, tagged_call

_HEADER: Final = "<|start|>assistant"
_ENDS: Final = ("<|call|>", "<|end|>")


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    """Parse one call; the next one has its own marker."""
    yield from cursor.space()
    yield from cursor.expect("to=")
    name = yield from named(cursor, tools)
    yield from cursor.expect("<|channel|>")
    yield from cursor.expect("analysis")
    yield from cursor.space()
    if (yield from cursor.take("<|constrain|>")):
        yield from cursor.expect("xml")
    yield from cursor.expect("<|message|>")
    yield from tagged_call(cursor, tools, name, _TAGS)


#: The tokens are harmony's too: behind one in a value nobody can tell what is still of it.
_TAGS: Final = Tags(
    ("<rfl:parameter",), name_head, ("</rfl:parameter>",), _ENDS, calls=(_HEADER, "<|channel|>", *_ENDS)
)

FAMILY = Family(
    name="beam",
    openers=(_HEADER,),
    parse=_parse,
    source="https://github.com/lightseekorg/smg (response templates of tokenizers, read 2026-11-22)",
    residue=(*_ENDS, "<|return|>"),
    value_ends=("</rfl:parameter>",),
)
