"""Hunyuan: `<tool_calls><tool_call>NAME<tool_sep><arg_key>KEY</arg_key><arg_value>value</arg_value></tool_call>
</tool_calls>`. Hy 3 writes this form; with a suffix in every tag its calls stand alone and end with
`<end_of_tool_call:SUFFIX>`, and an object may take the place of the pairs. Hy 4 leaves out the separator and adds a
suffix to every tag. Models before Hy 3 write `function<tool_sep>NAME`, then the arguments in a `json` fence."""

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
    if opener[-1] == ":":
        suffix = ":" + (yield from cursor.word(_SUFFIX, 32))
        yield from cursor.expect(">")
    if opener in ("<tool_call>", "<tool_call:"):
        yield from _call(cursor, tools, suffix, is_wrapped=bool(suffix))
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
    cursor.stops = ends = (f"</tool_call{suffix}>", f"<end_of_tool_call{suffix}>")
    yield from cursor.space()
    if is_wrapped and (yield from cursor.peek()) == "{":
        yield from call_objects(cursor, tools, ends[0])
        return
    name, is_separated = yield from _name(cursor, tools, suffix)
    is_fenced = (yield from cursor.closing("```json", "```")) != ""
    if is_fenced or (is_separated and (yield from cursor.sees("{"))):
        yield from cursor.space()
        yield from named_call(cursor, name)
        if is_fenced:
            yield from cursor.closing("```")
        yield from cursor.closing(*ends)
    elif is_separated or is_wrapped:
        yield from argument_pairs(cursor, tools, name, suffix=suffix, ends=ends)
    else:
        raise NotACall


def _name(cursor: Cursor, tools: Tools, suffix: str) -> Generator[Action, None, tuple[str, bool]]:
    """Return the tool, and whether a separator stood beside it."""
    written = yield from cursor.word(_NAME)
    name = (yield from begun(tools, written)) if tools.offered(written) else ""
    is_separated = (yield from cursor.closing(f"<tool_sep{suffix}>")) != ""
    if is_separated and written == "function" and not (name and (yield from cursor.sees("<", "{", "```"))):
        yield from cursor.space()
        name = yield from named(cursor, tools, _NAME)
    return name or (yield from begun(tools, written)), is_separated


FAMILY = Family(
    name="hunyuan",
    openers=("<tool_calls>", "<tool_calls:", "<tool_call>", "<tool_call:"),
    parse=_parse,
    source="https://docs.vllm.ai/en/v0.22.1/api/vllm/tool_parsers/hy_v3_tool_parser/ (read 2026-11-22)",
    residue=("</tool_call>", "</tool_calls>", "<|eos|>"),  # its own tags, and the turn token of Hunyuan's chat template
    value_ends=("</arg_value>",),
)
