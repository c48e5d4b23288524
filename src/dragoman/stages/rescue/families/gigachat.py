"""GigaChat 3: a call object after `function call<|role_sep|>` or `<|function_call|>`. GigaChat 3.5: DeepSeek's DSML
with another prefix, `<｜GCML｜tool_calls><｜GCML｜invoke name="NAME"><｜GCML｜parameter name="KEY" string="true">…`."""

from __future__ import annotations

from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, Parser
from dragoman.stages.rescue.json_calls import call_object
from dragoman.stages.rescue.typed_tags import invoke_in

_PREFIX: Final = "｜GCML｜"
_BLOCK: Final = "tool_calls"
_ROLE: Final = "function call<|role_sep|>"
_TURN_ENDS: Final = ("<|message_sep|>", "</s>")


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    """Parse one call; the next one has its own marker."""
    if _PREFIX in opener:
        if not opener.endswith("invoke"):
            yield from cursor.space()
            yield from cursor.expect(f"<{_PREFIX}invoke")
        yield from invoke_in(cursor, tools, _PREFIX, (_BLOCK,))
        yield from cursor.closing(f"</{_PREFIX}{_BLOCK}>")
    else:
        cursor.stops = _TURN_ENDS
        yield from cursor.space()
        if opener == _TURN_ENDS[0]:
            yield from cursor.expect(_ROLE)
            yield from cursor.space()
        yield from cursor.expect("{")
        yield from call_object(cursor, tools)
    yield from cursor.closing(*_TURN_ENDS)


FAMILY = Family(
    name="gigachat",
    openers=(f"<{_PREFIX}{_BLOCK}>", f"<{_PREFIX}invoke", _ROLE, "<|function_call|>", _TURN_ENDS[0]),
    parse=_parse,
    source="https://github.com/ggml-org/llama.cpp (models/templates/GigaChat3.5.jinja, read 2026-11-22)",
    residue=(*_TURN_ENDS,),  # GigaChat3.5.jinja, as above
    value_ends=("</｜GCML｜parameter>",),
)
