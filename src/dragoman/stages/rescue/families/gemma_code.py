"""Gemma 2 and 3: the whole message is a `tool_code` fence with Python calls, with or without `print(…)` around each."""

from __future__ import annotations

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, Parser
from dragoman.stages.rescue.python_calls import python_calls


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    yield from cursor.expect("tool_code")
    while True:
        is_printed = (yield from cursor.closing("print(")) != ""
        yield from python_calls(cursor, tools)
        if is_printed:
            yield from cursor.closing(")")
        if (yield from cursor.closing("```")) or not cursor.rest().strip():
            return


FAMILY = Family(
    name="gemma-code",
    openers=("```",),
    parse=_parse,
    where="message",
    source="https://ai.google.dev/gemma/docs/capabilities/function-calling",
)
