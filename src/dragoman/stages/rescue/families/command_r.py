"""Cohere Command R: a line that begins with `Action:`, then a list of call objects in a `json` fence. The next such
block may stand right behind the fence."""

from __future__ import annotations

from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, Parser
from dragoman.stages.rescue.json_calls import call_objects

_ACTION: Final = "Action:"
_NEXT: Final = tuple(f"{_ACTION}{gap}```" for gap in ("", " ", "\n"))


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    while True:
        yield from cursor.space()
        yield from cursor.expect("```json", "```")
        yield from call_objects(cursor, tools)
        yield from cursor.closing("```")
        if not (yield from cursor.sees(*_NEXT)):
            return
        yield from cursor.closing(_ACTION)


FAMILY = Family(
    name="command-r",
    openers=(_ACTION,),
    parse=_parse,
    where="line",
    source="https://huggingface.co/CohereLabs/c4ai-command-r-v01 (tool use)",
    residue=("<|END_OF_TURN_TOKEN|>",),  # the turn token of the chat template
)
