"""Claude's own form, which other models have learned: `<function_calls><invoke name="NAME">
<parameter name="KEY">value</parameter></invoke></function_calls>`. The prefix `antml:` and the outer tag may be
missing; some write `param` for `parameter`."""

from __future__ import annotations

from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.argument_tags import invoke_calls
from dragoman.stages.rescue.cursor import Cursor, Family, Parser

_PREFIX: Final = "antml:"
_SPELLINGS: Final = ("", _PREFIX)
#: What begins a block, and a call, also with its blank lost.
_TAGS: Final = ("function_calls>", "invoke name=", "invokename=")
_BLOCK_ENDS: Final = tuple(f"</{prefix}function_calls>" for prefix in _SPELLINGS)
_ENDS: Final = (*_BLOCK_ENDS, "</minimax:tool_call>")


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    if not opener.endswith("="):
        yield from cursor.space()
        opener = yield from cursor.expect("<invoke name=", f"<{_PREFIX}invoke name=")
    yield from invoke_calls(cursor, tools, prefix=_PREFIX if _PREFIX in opener else "", ends=_ENDS)


FAMILY = Family(
    name="anthropic-tags",
    openers=tuple(f"<{prefix}{tag}" for prefix in _SPELLINGS for tag in _TAGS),
    parse=_parse,
    source="https://github.com/openclaw/openclaw/issues/97750 (read 2026-11-22)",
    residue=(*(f"</{prefix}invoke>" for prefix in _SPELLINGS), *_BLOCK_ENDS),
    value_ends=tuple(f"</{prefix}{word}>" for prefix in _SPELLINGS for word in ("parameter", "param")),
)
