"""Seed-OSS: Qwen3-Coder's form in tags of its own, `<seed:tool_call><function=NAME><parameter=KEY>value</parameter>
</function></seed:tool_call>`."""

from __future__ import annotations

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, Parser
from dragoman.stages.rescue.families.qwen_xml import function_tag


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    yield from cursor.space()
    yield from cursor.expect("<function=")
    while True:
        yield from function_tag(cursor, tools, end="</seed:tool_call>")
        if (yield from cursor.closing("<function=", "</seed:tool_call>")) != "<function=":
            return


FAMILY = Family(
    name="seed-oss",
    openers=("<seed:tool_call>",),
    parse=_parse,
    source="https://docs.vllm.ai/en/latest/api/vllm/parser/seed_oss/ (read 2026-11-22)",
    residue=("</function>", "</seed:tool_call>", "<seed:eos>"),
    value_ends=("</parameter>",),
)
