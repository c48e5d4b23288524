"""Hunyuan: `<tool_calls><tool_call>NAME<tool_sep><arg_key>KEY</arg_key><arg_value>value</arg_value></tool_call>
</tool_calls>`. Hy 3 writes this form. Hy 4 leaves out the separator and adds a suffix to every tag. Models before Hy 3
write `function<tool_sep>NAME`, then the arguments in a `json` fence."""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.argument_tags import argument_pairs
from dragoman.stages.rescue.cursor import Action, Cursor, Family, NotACall, Parser
from dragoman.stages.rescue.heads import begun, named
from dragoman.stages.rescue.json_calls import call_objects, named_call

_NAME: Final = re.compile(r"[^\s<>{}`]+")
_SUFFIX: Final = re.compile(r"\w+")


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    suffix = ""
    if opener == "<tool_calls:":
        suffix = ":" + (yield from cursor.word(_SUFFIX, 32))
        yield from cursor.expect(">")
    if opener == "<tool_call>":
        yield from _call(cursor, tools, suffix, is_wrapped=False)
        return
    yield from cursor.space()
    yield from cursor.expect(f"<tool_call{suffix}>")
    while True:
        yield from _call(cursor, tools, suffix, is_wrapped=True)
        if (yield from cursor.closing(f"<tool_call{suffix}>", f"</tool_calls{suffix}>")) != f"<tool_call{suffix}>":
            return


def _call(cursor: Cursor, tools: Tools, suffix: str, *, is_wrapped: bool) -> Parser:
    """Parse one call from behind its opening tag on. Without a wrapper it needs a fence or separator, which no other
    family has.
    """
    end = f"</tool_call{suffix}>"
    cursor.stops = (end,)
    yield from cursor.space()
    if is_wrapped and (yield from cursor.peek()) == "{":
        yield from call_objects(cursor, tools, end)
        return
    name, is_separated = yield from _name(cursor, tools, suffix)
    if (yield from cursor.closing("```json", "```")):
        yield from cursor.space()
        yield from named_call(cursor, name)
        yield from cursor.closing("```")
        yield from cursor.closing(end)
    elif is_separated or is_wrapped:
        yield from argument_pairs(cursor, tools, name, suffix=suffix, ends=(end,))
    else:
        raise NotACall


def _name(cursor: Cursor, tools: Tools, suffix: str) -> Generator[Action, None, tuple[str, bool]]:
    """Return the tool, and whether a separator stood beside it."""
    written = yield from cursor.word(_NAME)
    name = (yield from begun(tools, written)) if tools.offered(written) else ""
    is_separated = (yield from cursor.closing(f"<tool_sep{suffix}>")) != ""
    if is_separated and written == "function":
        yield from cursor.space()
        name = yield from named(cursor, tools, _NAME)
    return name or (yield from begun(tools, written)), is_separated


FAMILY = Family(
    name="hunyuan",
    openers=("<tool_calls>", "<tool_calls:", "<tool_call>"),
    parse=_parse,
    source="https://docs.vllm.ai/en/v0.22.1/api/vllm/tool_parsers/hy_v3_tool_parser/ (read 2026-11-22)",
    residue=("</tool_call>", "</tool_calls>", "<|eos|>"),  # its own tags, and the turn token of Hunyuan's chat template
    value_ends=("</arg_value>",),
)
