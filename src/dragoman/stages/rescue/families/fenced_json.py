"""Small models of every kind: the whole message is one call object, or several, in a `json` fence, RWKV's behind
`**Tool Call:**`. Qwen2.5-Coder also writes them in `<tools>`, as its prompt has the tools."""

from __future__ import annotations

import re
from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, NotACall, Parser
from dragoman.stages.rescue.json_calls import call_objects

_LANGUAGE: Final = re.compile(r"[\w:-]+")
_TOOLS: Final = "<tools>"
_HEADING: Final = "**Tool Call:**"
_LANGUAGES: Final = frozenset({"", "json", "tool_call", "tool_calls", "tool", "tool_use", "function_call"})


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    is_fence = opener != _TOOLS
    while True:
        if opener == _HEADING:
            yield from cursor.space()
            yield from cursor.expect("```")
        if is_fence and (yield from cursor.word(_LANGUAGE, 16)).removesuffix(":") not in _LANGUAGES:
            raise NotACall
        yield from call_objects(cursor, tools, is_message=True)
        yield from cursor.closing("}")  # one too many
        yield from cursor.closing("```" if is_fence else _TOOLS.replace("<", "</"))
        if not (yield from cursor.closing(opener)):
            return


FAMILY = Family(
    name="fenced-json",
    openers=("```", _TOOLS, _HEADING),
    parse=_parse,
    where="message",
    source="https://github.com/ollama/ollama/issues/13519",
)
