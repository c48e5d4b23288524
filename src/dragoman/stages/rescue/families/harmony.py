"""gpt-oss: `<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{…}<|call|>`. The recipient may also
come before the channel: `<|start|>assistant to=functions.NAME<|channel|>commentary json<|message|>`. Some servers strip
the special tokens: `commentary to=functions.NAME json{…}`, or `to=NAME`. The prompt ends with `<|start|>assistant`, so
a whole message may begin with `to=functions.NAME<|channel|>`. LLM-jp writes a space behind each token."""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Action, Cursor, Family, NotACall, Parser
from dragoman.stages.rescue.heads import bare_name, begun
from dragoman.stages.rescue.json_calls import named_call

#: What the arguments are written in, where no token tells that they begin.
_KINDS: Final = ("json", "code")
_PREFIX: Final = "functions."
_KIND: Final = re.compile(r"[A-Za-z]+")
_STARTS: Final = ("<|channel|>", "<|start|>assistant", "<|start|> assistant")
_CHANNELS: Final = ("commentary", "analysis")
#: An empty object before tags of Muse Glimmer's calls, which have the same header.
_OTHERS: Final = ("{}<atem:", "{}</")
_BARE: Final = tuple(f"{role}{channel} to=" for role in ("", "assistant") for channel in ("commentary", "analysis"))


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    is_stripped = opener in _BARE
    written = (yield from bare_name(cursor)) if is_stripped else (yield from _recipient(cursor))
    if is_stripped and not written.startswith(_PREFIX):
        yield from cursor.space()
        if not (yield from cursor.sees(*_KINDS)):
            raise NotACall  # words about a recipient
    yield from _call(cursor, tools, written, is_stripped=is_stripped)


def _parse_bare(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    """As the usual parser, but the prompt has the first token, or all tokens were removed."""
    written = yield from bare_name(cursor)
    is_stripped = not (yield from cursor.sees("<|channel|>"))
    if is_stripped and not (yield from cursor.sees(*_KINDS)):
        raise NotACall
    yield from _call(cursor, tools, written, is_stripped=is_stripped)
    while mark := (yield from cursor.closing(*_STARTS)):
        yield from _parse(cursor, tools, mark)


def _call(cursor: Cursor, tools: Tools, written: str, *, is_stripped: bool = False) -> Parser:
    """Parse one call from behind its recipient on. `is_stripped`: its tokens were removed."""
    cursor.stops = ("<|call|>",)
    name = (yield from begun(tools, written)) if written else ""
    yield from cursor.space()
    if not written or (yield from cursor.take("<|channel|>")):
        if not written:
            raise NotACall
        yield from cursor.space()
        yield from cursor.expect(*_CHANNELS)
        yield from cursor.space()
    if (yield from cursor.take("<|constrain|>")):
        yield from cursor.space()
    kind = yield from cursor.word(_KIND, 32)  # json, code
    yield from cursor.space()
    has_message = (yield from cursor.take("<|message|>")) != ""
    yield from cursor.space()
    if kind == "xml":  # Beam's
        raise NotACall
    empty = _OTHERS if has_message or is_stripped else ("{}", *cursor.stops)
    if (yield from cursor.sees(*empty)):
        raise NotACall  # its message, with the arguments, may stand behind
    yield from named_call(cursor, name, ends=cursor.stops)
    yield from cursor.closing("<|call|>", "<|end|>", "<|return|>")


def _recipient(cursor: Cursor) -> Generator[Action, None, str]:
    """Return what stands behind `to=`, which follows the opener or the channel."""
    yield from cursor.space()
    if (yield from cursor.take("<|channel|>")):
        yield from cursor.space()
    if (yield from cursor.take(*_CHANNELS)):
        yield from cursor.space()
    yield from cursor.expect("to=")
    return (yield from bare_name(cursor))


FAMILY = Family(
    name="harmony",
    openers=(*_STARTS, *_BARE),
    parse=_parse,
    source="https://github.com/openai/harmony (docs/format.md); https://github.com/lablup/mlxcel/issues/654",
    residue=("<|call|>", "<|end|>", "<|return|>"),
    prompted=("<|start|>assistant", "to=", "<|channel|>"),
    line_openers=tuple(opener for opener in _BARE if not opener.startswith("assistant")),  # a sentence may hold them
)
BARE = Family(
    name="harmony-bare",
    openers=(f"to={_PREFIX}",),
    parse=_parse_bare,
    where="message",
    source=FAMILY.source,
    residue=FAMILY.residue,
)
