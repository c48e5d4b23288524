"""GLM 4.5 to 4.7, Laguna: `<tool_call>NAME<arg_key>KEY</arg_key><arg_value>value</arg_value>…</tool_call>`. GLM 4.5
ends the line after the name and between the tags. White space in a value is data. GLM 5.3 Flash also writes
`NAME>{…}` and `<arg_key>KEY=value</arg_value>`."""

from __future__ import annotations

from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.argument_tags import argument_pairs
from dragoman.stages.rescue.cursor import Cursor, Family, Parser
from dragoman.stages.rescue.heads import named
from dragoman.stages.rescue.json_calls import named_call

_END: Final = "</tool_call>"


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    yield from cursor.space()
    name = yield from named(cursor, tools)
    if (yield from cursor.take(">")):
        cursor.stops = (_END,)
        yield from cursor.space()
        yield from named_call(cursor, name)
        yield from cursor.closing(_END)
    else:
        if not tools.schema(name).names():  # of any other tool the arguments may have been lost
            yield from cursor.take("</arg_value>")  # GLM 5.2's residue behind a name
        yield from argument_pairs(cursor, tools, name, ends=(_END,))


FAMILY = Family(
    name="glm",
    openers=("<tool_call>",),
    parse=_parse,
    source="https://docs.vllm.ai/en/v0.22.1/api/vllm/tool_parsers/glm47_moe_tool_parser/ (read 2026-11-21)",
    residue=("</tool_call>", "<|observation|>", "<|user|>"),
    value_ends=("</arg_value>",),
)
