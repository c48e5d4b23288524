"""Kimi K3 (XTML): `<|open|>tools<|sep|><|open|>call tool="NAME" index="1"<|sep|><|open|>argument key="KEY"
type="string"<|sep|>…<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>`. A value of type `string` is
plain text; any other value is JSON. One `json` tag may hold all arguments. Some servers lose the tokens between two
words (`toolscall`)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Action, Cursor, Family, Parser
from dragoman.stages.rescue.heads import attributes, is_call_read, is_read, tool_of
from dragoman.stages.rescue.json_calls import named_call
from dragoman.stages.rescue.typed_tags import Tags, refused_head, tagged_call

_SEPARATOR: Final = "<|sep|>"
_TOOLS: Final = "<|open|>tools<|sep|>"
_CALL: Final = "<|open|>call"
_GLUED: Final = "<|open|>toolscall"
_ANSWER_END: Final = "<|close|>response<|sep|>"
_CALL_END: Final = "<|close|>call<|sep|>"
_JSON: Final = "<|open|>json"
#: What ends the calls and the message.
_SECTION_ENDS: Final = ("<|close|>tools<|sep|>", "<|close|>toolsmessage<|sep|>")
_MESSAGE_ENDS: Final = ("<|close|>message<|sep|>", "<|end_of_msg|>")


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    """Parse one call; the next one has its own marker."""
    if opener == _ANSWER_END:
        yield from cursor.space()
        opener = yield from cursor.expect(_TOOLS)
    if opener == _TOOLS:
        yield from cursor.space()
        yield from cursor.expect(_CALL)
    name, told = yield from tool_of(cursor, tools, "tool", _SEPARATOR)
    is_head_read = is_call_read(told, tools.schema(name), "tool", "index") and told.get("index", "1").isdecimal()
    if is_head_read and (yield from cursor.closing(_JSON)):
        if not is_read((yield from attributes(cursor, _SEPARATOR))):
            return (yield from refused_head(cursor, name, _TAGS.ends))
        cursor.stops = ("<|close|>json<|sep|>", _CALL_END)
        yield from cursor.space()
        yield from named_call(cursor, name)
        yield from cursor.closing("<|close|>json<|sep|>")
        yield from cursor.closing(_CALL_END)
    else:
        yield from tagged_call(cursor, tools, name, _TAGS, is_head_read=is_head_read)
    yield from cursor.closing(*_SECTION_ENDS)
    yield from cursor.closing(*_MESSAGE_ENDS)
    yield from cursor.closing(*_MESSAGE_ENDS)


def _attributes(cursor: Cursor) -> Generator[Action, None, dict[str, str]]:
    found = yield from attributes(cursor, _SEPARATOR)
    return {key: value.replace("&quot;", '"').replace("&amp;", "&") for key, value in found.items()}


def _head(cursor: Cursor) -> Generator[Action, None, tuple[str, str]]:
    found = yield from _attributes(cursor)
    is_told_twice = yield from cursor.take(_SEPARATOR)  # which one begins the value cannot be told
    return found.get("key", "") if is_read(found, "key") and not is_told_twice else "", found.get("type", "")


_TAGS: Final = Tags(
    ("<|open|>argument",), _head, ("<|close|>argument<|sep|>",), (_CALL_END, *_SECTION_ENDS), calls=(_CALL,)
)

FAMILY = Family(
    name="kimi-k3",
    openers=(_TOOLS, _CALL, _GLUED, _ANSWER_END),
    parse=_parse,
    source="https://github.com/ggml-org/llama.cpp (models/templates/Kimi-K3.jinja, read 2026-11-22)",
    residue=(_CALL_END, *_SECTION_ENDS, *_MESSAGE_ENDS),  # its own tokens
    value_ends=("<|close|>argument<|sep|>",),
)
