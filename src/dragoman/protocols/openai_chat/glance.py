"""What must be known of a chat request before its bytes are passed on, and of a whole answer."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from dragoman import _json
from dragoman.arguments_text import is_plain_object
from dragoman.contract import Glance
from dragoman.events import Finish
from dragoman.protocols.openai_chat.usage import read_cost, read_usage
from dragoman.protocols.openai_chat.wire import REASONS
from dragoman.types import NO_USAGE, Usage


class _Seen(msgspec.Struct, gc=False):
    model: str
    stream: bool | None = None
    stream_options: dict[str, _json.Json] | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None


_decode: Final = _json.fields_decoder(_Seen)


def glance(body: bytes, *, path: str = "") -> Glance | None:
    """The model and whether a stream is asked for, the rest unread; None when it must be read."""
    read = _decode(body)
    if isinstance(read, _json.Malformed):
        return None
    seen, fields = read
    options = seen.stream_options or {}
    most = seen.max_completion_tokens or seen.max_tokens
    if not seen.stream or options.get("include_usage") is True:
        return Glance(seen.model, bool(seen.stream), fields, max_tokens=most)
    asking: dict[str, object] = {"stream_options": {**options, "include_usage": True}}
    return Glance(seen.model, True, fields, usage=asking, max_tokens=most)


# ---------------------------------------------------------------- a whole answer

_Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=10**15)]


class _Function(msgspec.Struct, gc=False):
    name: _Name
    arguments: str


class _Call(msgspec.Struct, gc=False):
    id: _Name
    type: Literal["function"]
    function: _Function
    name: None = None


class _Message(msgspec.Struct, gc=False):
    content: str | None = None
    tool_calls: list[_Call] | None = None
    function_call: None = None
    refusal: None = None
    audio: None = None


class _Choice(msgspec.Struct, gc=False):
    message: _Message
    finish_reason: Literal["stop", "length", "tool_calls"]
    index: int = 0
    delta: None = None
    text: None = None
    usage: None = None
    error: None = None


class _Answer(msgspec.Struct, gc=False):
    choices: tuple[_Choice]
    usage: _json.Raw = _json.Raw(b"null")
    error: None = None
    x_groq: None = None


class _Usage(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    prompt_tokens: _Count
    completion_tokens: _Count
    total_tokens: int


_decode_answer: Final = _json.typed_decoder(_Answer)
_decode_usage: Final = _json.typed_decoder(_Usage)


def conclude(body: bytes) -> Finish | None:
    """As `LookAtAnswer`."""
    answer = _decode_answer(body)
    if isinstance(answer, _json.Malformed):
        return None
    choice = answer.choices[0]
    word, calls = choice.finish_reason, choice.message.tool_calls
    if calls:
        if word == "stop" or len({call.id for call in calls}) < len(calls):
            return None
        if not all(is_plain_object(call.function.arguments) for call in calls):
            return None
    elif word == "tool_calls" or not choice.message.content:
        return None
    usage = _decode_usage(answer.usage)
    if not isinstance(usage, _json.Malformed):
        return Finish(REASONS[word], word, Usage(usage.prompt_tokens, usage.completion_tokens))
    fields = _json.decode(answer.usage)
    if not isinstance(fields, dict):
        return Finish(REASONS[word], word, NO_USAGE) if fields is None else None
    return Finish(REASONS[word], word, read_usage(fields), read_cost(fields))
