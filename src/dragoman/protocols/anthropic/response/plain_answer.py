"""Read a whole message by one typed decode. See `codec/plain_answer.py`."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.parts.response_end import ResponseEnd
from dragoman.codec.parts.settled_arguments import says_something
from dragoman.codec.plain_answer import PlainAnswer, PlainCall, whole_reader
from dragoman.codec.repeated_keys import has_plain_parts
from dragoman.events import Start
from dragoman.protocols.anthropic.response.usage import Counts, rest_of_counts
from dragoman.protocols.anthropic.wire import NAME, STOP_REASONS
from dragoman.types import Native, Usage

_Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
_Null: TypeAlias = UnsetType | None


class _Text(msgspec.Struct, tag_field="type", tag="text", gc=False, forbid_unknown_fields=True):
    text: _Name
    citations: _Null = UNSET


class _Call(msgspec.Struct, tag_field="type", tag="tool_use", gc=False, forbid_unknown_fields=True):
    id: _Name
    name: _Name
    input: Raw


class _Message(msgspec.Struct, gc=False, forbid_unknown_fields=True, kw_only=True):
    model: str
    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    content: list[_Text | _Call]
    stop_reason: Literal["end_turn", "tool_use"]
    stop_sequence: _Null = UNSET
    usage: dict[str, Json]
    container: _Null = UNSET
    context_management: _Null = UNSET
    stop_details: _Null = UNSET


_decode: Final = _json.typed_decoder(_Message)


def read_answer(data: bytes) -> PlainAnswer | None:
    """Return the answer of a body, or None if it may have something else."""
    message = _decode(data)
    if type(message) is not _Message:
        return None
    text, calls = "", []
    for number, block in enumerate(message.content):
        if type(block) is _Call:
            calls.append(PlainCall(block.id, block.name, _json.raw_text(block.input)))
        elif type(block) is _Text and not number:
            text = block.text
        else:
            return None
    if bool(calls) is (message.stop_reason == "end_turn") or not all(says_something(call.arguments) for call in calls):
        return None
    if not has_plain_parts(data, message, [block.input for block in message.content if type(block) is _Call]):
        return None
    odd: list[str] = []
    told: list[Usage] = []
    Counts(lambda *seen: odd.extend(seen), told.append).take_fields(message.usage)
    if odd:
        return None
    rest, end = rest_of_counts(message.usage), ResponseEnd()
    native = Native(NAME, {"usage": _json.raw(rest)}) if rest else None
    counts = end.count(told[0], None)
    end.take(message.stop_reason, STOP_REASONS[message.stop_reason], native)
    start = Start(message.id or None, message.model or None, None, native)
    return PlainAnswer(start, text, calls, end, counts)


read_plain_answer: Final = whole_reader(read_answer, counts="end")
