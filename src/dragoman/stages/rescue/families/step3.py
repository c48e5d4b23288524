"""Step-3: `<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="NAME"><steptml:parameter name="KEY">value
</steptml:parameter></steptml:invoke><｜tool_call_end｜>` between `<｜tool_calls_begin｜>` and `<｜tool_calls_end｜>`.
White space in a value is data."""

from __future__ import annotations

import re
from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.argument_tags import invoke_call
from dragoman.stages.rescue.cursor import Cursor, Family, Open, Parser
from dragoman.stages.rescue.typed_tags import refused_head

_WORD: Final = re.compile(r"[^\s<>{}`]+")


def _spellings(words: str) -> tuple[str, ...]:
    return tuple(f"<{pipe}{words}{pipe}>" for pipe in ("｜", "|"))


_SECTION: Final = _spellings("tool_calls_begin")
_SECTION_END: Final = _spellings("tool_calls_end")
_CALL: Final = _spellings("tool_call_begin")
_CALL_END: Final = _spellings("tool_call_end")
_SEPARATOR: Final = _spellings("tool_sep")
_INVOKE: Final = "<steptml:invoke name="


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    """Parse one call; the next one has its own marker."""
    if opener in _SECTION:
        yield from cursor.space()
        opener = yield from cursor.expect(*_CALL, _INVOKE)
    words: list[str] = []  # in some the name
    if opener in _CALL:
        yield from cursor.space()
        if kind := (yield from cursor.word(_WORD)):
            yield from cursor.expect(*_SEPARATOR)
            words = [*([kind] if kind != "function" else []), (yield from cursor.word(_WORD))]
            yield from cursor.space()
        yield from cursor.expect(_INVOKE)
    for action in invoke_call(cursor, tools, prefix="steptml:", ends=_CALL_END, trims=False):
        if isinstance(action, Open) and any(tools.offered(word) not in (None, action.name) for word in words):
            return (yield from refused_head(cursor, action.name, ("</steptml:invoke>", *_CALL_END)))  # two names
        yield action
    yield from cursor.closing(*_CALL_END)
    yield from cursor.closing(*_SEPARATOR, *_SECTION_END)


FAMILY = Family(
    name="step3",
    openers=(*_SECTION, *_CALL, _INVOKE),
    parse=_parse,
    source="https://docs.vllm.ai/en/v0.18.1/api/vllm/tool_parsers/step3_tool_parser/ (read 2026-11-22)",
    residue=(*_CALL_END, *_SECTION_END, "<|im_end|>"),  # its own tokens, and the turn token of the chat template
    value_ends=("</steptml:parameter>",),
)
