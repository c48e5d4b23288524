"""Inspect a Messages request before its bytes are passed on, and a whole answer."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

from dragoman import _json
from dragoman._json import Raw
from dragoman.codec.cost import apart_of, tier_of
from dragoman.codec.parts.unread_arguments import whole_decoder
from dragoman.codec.repeated_keys import repeats_key
from dragoman.events import Finish
from dragoman.money import MOST_TOKENS
from dragoman.protocol import Peek
from dragoman.protocols.anthropic.wire import OWN_FIELDS, STOP_REASONS
from dragoman.types import Opaque, Part, Request, Text, ToolResult, Usage


class _Seen(msgspec.Struct, gc=False):
    model: str
    stream: bool | None = None
    max_tokens: int | None = None
    thread: Raw | None = None


_decode: Final = _json.fields_decoder(_Seen)


def peek(body: bytes, *, path: str = "") -> Peek | None:
    """Return the model and whether a stream is requested, without parsing the rest; None if it must be parsed."""
    read = _decode(body)
    if isinstance(read, _json.Malformed):
        return None
    seen, fields = read
    if seen.thread is not None:  # not every target stores one
        return None
    return Peek(seen.model, bool(seen.stream), fields, max_tokens=seen.max_tokens)


def goes_as_came(request: Request) -> bool:
    """As `GoesAsCame`. False if the renderer silently adds what the API requires, or removes what it refuses.

    Examples are a number of tokens, empty texts, and cache breakpoints that it sets because the client set none, or
    removes.
    """
    return (
        request.params.max_tokens is not None
        and (request.params.cache is None or (request.params.cache != "none" and _has_breakpoints(request)))
        and all(_is_sayable(part) for message in request.messages for part in message.parts)
    )


def _has_breakpoints(request: Request) -> bool:
    asked = [part for message in request.messages if message.role != "assistant" for part in message.parts]
    natives = [each.native for each in (*request.tools, *asked) if type(each) is not Opaque]
    return any(native is not None and "cache_control" in native.fields for native in natives)


def _is_sayable(part: Part) -> bool:
    if type(part) is ToolResult:
        return all(map(_is_sayable, part.parts))
    return type(part) is not Text or bool(part.text)


# ---------------------------------------------------------------- a whole answer

_Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=MOST_TOKENS)]


class _Text(msgspec.Struct, tag_field="type", tag="text", gc=False):
    text: _Name


class _Call(msgspec.Struct, tag_field="type", tag="tool_use", gc=False):
    id: _Name
    name: _Name
    input: Annotated[dict[str, Any], msgspec.Meta(min_length=1)]
    # Where it may stand as well, null too: what is read tells which counts.
    arguments: msgspec.UnsetType = msgspec.UNSET
    args: msgspec.UnsetType = msgspec.UNSET
    parameters: msgspec.UnsetType = msgspec.UNSET


class _Written(msgspec.Struct, gc=False):
    ephemeral_1h_input_tokens: _Count = 0


class _Usage(msgspec.Struct, gc=False):
    input_tokens: _Count
    output_tokens: _Count
    cache_read_input_tokens: _Count | None = None
    cache_creation_input_tokens: _Count | None = None
    cache_creation: _Written | None = None
    service_tier: str | None = None
    speed: str | None = None
    inference_geo: str | None = None
    output_tokens_details: None = None
    prompt_tokens: None = None  # other names of these counts
    completion_tokens: None = None


class _Message(msgspec.Struct, gc=False):
    id: _Name
    type: Literal["message"]
    role: Literal["assistant"]
    content: Annotated[list[_Text | _Call], msgspec.Meta(min_length=1)]
    stop_reason: Literal["end_turn", "tool_use", "max_tokens", "stop_sequence"]
    usage: _Usage
    error: None = None
    index: int = -1
    delta: None = None


#: What most answers tell of their tier, speed and region.
_USUAL: Final = frozenset((None, "standard", "global", "not_available"))
_decode_message: Final = whole_decoder(_Message, "model", *(OWN_FIELDS - {"usage"}))


def check_whole(body: bytes) -> Finish | None:
    """As `CheckWhole`."""
    message = _decode_message(body)
    if isinstance(message, _json.Malformed):
        return None
    word, calls = message.stop_reason, [block.id for block in message.content if type(block) is _Call]
    if (calls or b'"tool_use"' in body) and repeats_key(body):
        return None
    if len(calls) > 1 and len(message.content) > len(calls) + 1:
        return None  # the answer may begin again
    if len(set(calls)) < len(calls) or (word != "max_tokens" and bool(calls) != (word == "tool_use")):
        return None
    usage = message.usage
    read, written = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
    whole = usage.input_tokens + (read or 0) + (written or 0)
    long = 0 if usage.cache_creation is None else usage.cache_creation.ephemeral_1h_input_tokens
    apart, places = None, (usage.service_tier, usage.speed, usage.inference_geo)
    if long or not _USUAL.issuperset(places):
        apart = apart_of(tier_of(*places), cache_write_long=long)
    return Finish(STOP_REASONS[word], word, Usage(whole, usage.output_tokens, read, written, None, apart))
