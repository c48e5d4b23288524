"""Cohere Command R: a line that begins with `Action:`, then a list of call objects in a `json` fence."""

from __future__ import annotations

from dragoman.stages.rescue.cursor import Cursor, Family, Parser, Tools
from dragoman.stages.rescue.json_calls import call_objects


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    yield from cursor.space()
    yield from cursor.expect("```json", "```")
    yield from call_objects(cursor, tools)
    yield from cursor.closing("```")


FAMILY = Family(
    name="command-r",
    openers=("Action:",),
    parse=_parse,
    where="line",
    source="https://huggingface.co/CohereLabs/c4ai-command-r-v01 (tool use)",
    residue=("<|END_OF_TURN_TOKEN|>",),  # the turn token of the chat template
)
