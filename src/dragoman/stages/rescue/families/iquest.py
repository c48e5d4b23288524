"""IQuest Coder 2: GLM's form in a tag of its own, `<iquestcoder_tool_call>NAME<arg_key>KEY</arg_key>
<arg_value>value</arg_value></iquestcoder_tool_call>`. IQuest Q1 uses the tag `<iquest_tool_call>`."""

from __future__ import annotations

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.argument_tags import argument_pairs
from dragoman.stages.rescue.cursor import Cursor, Family, Parser
from dragoman.stages.rescue.heads import named


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    yield from cursor.space()
    name = yield from named(cursor, tools)
    yield from argument_pairs(cursor, tools, name, ends=(opener.replace("<", "</"),))


FAMILY = Family(
    name="iquest",
    openers=("<iquestcoder_tool_call>", "<iquest_tool_call>"),
    parse=_parse,
    source="https://github.com/vllm-project/vllm (vllm/tool_parsers/iquest_coder_v2_tool_parser.py, read 2026-11-22)",
    # Its own tags, and the turn tokens of the chat templates.
    residue=("</iquestcoder_tool_call>", "</iquest_tool_call>", "<|im_end|>", "<|iquest_end|>"),
    value_ends=("</arg_value>",),
)
