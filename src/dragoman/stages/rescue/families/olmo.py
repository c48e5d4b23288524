"""OLMo 3: Python calls, one per line, `<function_calls>NAME(key="value")` … `</function_calls>`. Literals are JSON's:
`true`, `false`, `null`. Others write such calls in `<tool_call>`, where `NAME()` alone is another form's: GLM's
tags or an object may follow it."""

from __future__ import annotations

from typing import Final

from dragoman.codec.patterns import rare_pattern
from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import MORE, Cursor, Family, NotACall, Parser
from dragoman.stages.rescue.python_calls import python_calls

_ENDS: Final = {"<function_calls>": "</function_calls>", "<tool_call>": "</tool_call>"}
#: A name with empty parentheses and no call behind it, and what may become one.
_NAME_ALONE: Final = rare_pattern(r"\s{0,99}[\w.:/$@-]{1,128}\(\)(?!\s{0,9}[,;]?\s{0,9}[\w.]{1,128}\()")
_NAME_BEGUN: Final = rare_pattern(r"\s{0,99}[\w.:/$@-]{0,128}(?:\((?:\)\s{0,9}[,;]?\s{0,9}[\w.]{0,128})?)?")


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    if opener == "<tool_call>":
        while not cursor.ended and _NAME_BEGUN.fullmatch(cursor.rest()):
            yield MORE
        if _NAME_ALONE.match(cursor.rest()):
            raise NotACall
    yield from python_calls(cursor, tools)
    yield from cursor.closing(_ENDS[opener])


FAMILY = Family(
    name="olmo",
    openers=tuple(_ENDS),
    parse=_parse,
    source="https://docs.vllm.ai/en/v0.19.1/api/vllm/tool_parsers/olmo3_tool_parser/ (read 2026-11-21)",
    residue=tuple(_ENDS.values()),
)
