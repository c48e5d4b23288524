"""DeepSeek V3.2 and V4: `<｜DSML｜tool_calls><｜DSML｜invoke name="NAME"><｜DSML｜parameter name="KEY" string="true">…
</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜tool_calls>`. V3.2 writes `function_calls`; V4.1 writes `calls`, with a
space before each word. The pipes may be ASCII, or two of them. A value is plain text, or JSON if its tag says
`string="false"`. A call may also hold all its arguments as one JSON object."""

from __future__ import annotations

from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, Parser
from dragoman.stages.rescue.typed_tags import invoke_in, spellings

_BLOCKS: Final = ("tool_calls", "function_calls", "calls")
#: What stands around the word. quirk: DeepSeek V4 writes two pipes where its history was shown with others.
_PIPES: Final = ("｜", "|", "｜｜", "‖")


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    """Parse one call; the next one has its own marker."""
    pipe = opener[1 : opener.index("DSML")]
    prefix = f"{pipe}DSML{pipe}"
    if not opener.endswith("invoke"):
        yield from cursor.space()
        yield from cursor.expect(*spellings(f"<{prefix}", "invoke"))
    yield from invoke_in(cursor, tools, prefix, _BLOCKS)
    yield from cursor.closing(*spellings(f"</{prefix}", *(f"{block}>" for block in _BLOCKS)))


FAMILY = Family(
    name="deepseek-dsml",
    openers=tuple(
        opener
        for pipe in _PIPES
        for opener in spellings(f"<{pipe}DSML{pipe}", *(f"{block}>" for block in _BLOCKS), "invoke")
    ),
    parse=_parse,
    source="https://huggingface.co/deepseek-ai/DeepSeek-V4-Pro/blob/main/encoding/README.md (read 2026-11-21)",
    residue=("<｜end▁of▁sentence｜>",),  # the turn token: encoding/README.md, as above
    value_ends=tuple(end for pipe in _PIPES for end in spellings(f"</{pipe}DSML{pipe}", "parameter>")),
)
