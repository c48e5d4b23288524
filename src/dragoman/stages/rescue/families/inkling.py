"""Inkling: `<|message_model|>NAME<|content_invoke_tool_json|>{"name": "NAME", "args": {…}}<|end_message|>`. The first
name is sometimes missing, or the prompt has written what stands before it. If the two names differ, the text is not a
call."""

from __future__ import annotations

from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, NotACall, Open, Parser
from dragoman.stages.rescue.heads import bare_name
from dragoman.stages.rescue.json_calls import call_object
from dragoman.stages.rescue.quoted import Begun

_MESSAGE: Final = "<|message_model|>"
_INVOKE: Final = "<|content_invoke_tool_json|>"
_ENDS: Final = ("<|end_message|>", "<|content_model_end_sampling|>")


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    """Parse one call; the next one has its own marker."""
    cursor.stops = _ENDS
    header = ""
    if opener == _MESSAGE:
        yield from cursor.space()
        header = yield from bare_name(cursor)
        if name := tools.offered(header):
            yield Begun(name)
        yield from cursor.expect(_INVOKE)
    yield from cursor.space()
    yield from cursor.expect("{")
    for action in call_object(cursor, tools):
        if isinstance(action, Open) and header and tools.called(header) != action.name:
            raise NotACall
        yield action
    yield from cursor.closing(*_ENDS)
    yield from cursor.closing(*_ENDS)


FAMILY = Family(
    name="inkling",
    openers=(_MESSAGE, _INVOKE),
    parse=_parse,
    source="https://github.com/sgl-project/sglang (function_call/inkling_detector.py, read 2026-11-22)",
    prompted=(_MESSAGE, "", _INVOKE),
    residue=(*_ENDS,),  # its own tokens
)
