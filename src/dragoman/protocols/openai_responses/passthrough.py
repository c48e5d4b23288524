"""Inspect a Responses request before its bytes are passed on, and a whole answer."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from dragoman import _json
from dragoman.codec.cost import apart_of, tier_of
from dragoman.codec.parts.settled_arguments import is_plain_object
from dragoman.codec.parts.unread_arguments import whole_decoder
from dragoman.codec.repeated_keys import repeats_key
from dragoman.events import Finish
from dragoman.money import MOST_TOKENS
from dragoman.protocol import Peek
from dragoman.protocols.openai_responses.response.unmodelled import OF_RESPONSE
from dragoman.types import Usage


class _Seen(msgspec.Struct, gc=False):
    model: str
    stream: bool | None = None
    store: bool | None = None
    background: bool | None = None
    previous_response_id: str | None = None
    conversation: _json.Json = None
    prompt: _json.Json = None
    max_output_tokens: int | None = None


_decode: Final = _json.fields_decoder(_Seen)


def peek(body: bytes, *, path: str = "") -> Peek | None:
    """Return the model and whether a stream is requested, without parsing the rest; None if it must be parsed.

    The gateway handles what is stored, or goes on with something stored.
    """
    read = _decode(body)
    if isinstance(read, _json.Malformed):
        return None
    seen, fields = read
    if seen.store is not False or seen.background:
        return None
    if seen.previous_response_id is not None or seen.conversation is not None or seen.prompt is not None:
        return None
    return Peek(seen.model, bool(seen.stream), fields, max_tokens=seen.max_output_tokens)


# ---------------------------------------------------------------- a whole answer

_Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=MOST_TOKENS)]


class _Text(msgspec.Struct, gc=False):
    type: Literal["output_text"]  # which a tag, without others, need not tell
    text: _Name


class _Message(msgspec.Struct, tag_field="type", tag="message", gc=False):
    id: _Name
    role: Literal["assistant"]
    content: Annotated[list[_Text], msgspec.Meta(min_length=1)]
    status: Literal["completed"] = "completed"


class _Call(msgspec.Struct, tag_field="type", tag="function_call", gc=False):
    id: _Name
    call_id: _Name
    name: _Name
    arguments: str
    status: Literal["completed"] = "completed"
    content: None = None  # of another type it is read as a list, and noted


class _Read(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    cached_tokens: _Count | None = None


class _Written(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    reasoning_tokens: _Count | None = None


class _Usage(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    input_tokens: _Count
    output_tokens: _Count
    total_tokens: _Count
    input_tokens_details: _Read
    output_tokens_details: _Written


class _Answer(msgspec.Struct, gc=False):
    id: _Name
    object: Literal["response"]
    status: Literal["completed"]
    output: Annotated[list[_Message | _Call], msgspec.Meta(min_length=1)]
    usage: _Usage
    service_tier: str | None = None
    type: None = None
    error: None = None
    item: None = None  # these two belong to events
    response: None = None


_decode_answer: Final = whole_decoder(_Answer, *(OF_RESPONSE - {*_Answer.__struct_fields__}))


def check_whole(body: bytes) -> Finish | None:
    """As `CheckWhole`."""
    answer = _decode_answer(body)
    if isinstance(answer, _json.Malformed):
        return None
    items = answer.output
    calls = [item for item in items if type(item) is _Call]
    if len({item.id for item in items}) < len(items) or len({call.call_id for call in calls}) < len(calls):
        return None
    if len(calls) > 1 and len(items) > len(calls) + 1:
        return None  # the answer may begin again
    if not all(is_plain_object(call.arguments) for call in calls):
        return None
    if b'"function_call"' in body and repeats_key(body):
        return None
    usage = answer.usage
    read, thought = usage.input_tokens_details.cached_tokens, usage.output_tokens_details.reasoning_tokens
    tier = answer.service_tier
    apart = None if tier in (None, "default") else apart_of(tier_of(tier))  # as most often
    return Finish(
        "tool_use" if calls else "stop",
        answer.status,
        Usage(usage.input_tokens, usage.output_tokens, read, None, thought, apart),
    )
