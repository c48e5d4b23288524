"""Cohere Command: `<|START_ACTION|>[{"tool_call_id": …, "tool_name": …, "parameters": {…}}, …]<|END_ACTION|>`, and
`Action:` with the list in a `json` fence (Command R)."""

from __future__ import annotations

from dragoman.stages.rescue.cursor import Cursor, Family, Parser, Tools
from dragoman.stages.rescue.json_calls import call_objects


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    end = "<|END_ACTION|>"
    if opener == "Action:":
        yield from cursor.space()
        yield from cursor.expect("```json", "```")
        end = "```"
    cursor.stops = ("<|END_ACTION|>",)
    yield from call_objects(cursor, tools)
    yield from cursor.closing(end)


FAMILY = Family(
    name="cohere",
    openers=("<|START_ACTION|>", "Action:"),
    parse=_parse,
    where="line",
    source="https://github.com/ollama/ollama (model/parsers/cohere_test.go)",
)
