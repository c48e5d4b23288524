"""Inspect an Ollama request before its bytes are passed on, and a whole answer."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

from dragoman import _json
from dragoman.codec.repeated_keys import repeats_key
from dragoman.codec.timestamps import parse_time
from dragoman.events import Finish
from dragoman.money import MOST_TOKENS
from dragoman.protocol import Peek
from dragoman.protocols.ollama.wire import NOTHING, REASONS
from dragoman.types import Usage


class _Options(msgspec.Struct, gc=False):
    num_predict: int | None = None


class _Seen(msgspec.Struct, gc=False):
    model: str
    stream: bool | None = True
    options: _Options | None = None


_decode: Final = _json.fields_decoder(_Seen)


def peek(body: bytes, *, path: str = "") -> Peek | None:
    """Return the model and whether a stream is requested, without parsing the rest; None if it must be parsed."""
    read = _decode(body)
    if isinstance(read, _json.Malformed):
        return None
    seen, fields = read
    limit = seen.options.num_predict if seen.options is not None else None
    most = limit if limit is not None and limit > 0 else None  # others mean: no limit
    return Peek(seen.model, seen.stream is not False, fields, max_tokens=most)


# ---------------------------------------------------------------- a whole answer

_Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=MOST_TOKENS)]


class _Function(msgspec.Struct, gc=False):
    name: _Name
    arguments: Annotated[dict[str, Any], msgspec.Meta(min_length=1)]
    parameters: None = None
    index: _Count | None = None


class _Call(msgspec.Struct, gc=False):
    function: _Function
    id: _Name | None = None
    name: None = None
    arguments: None = None
    parameters: None = None
    index: _Count | None = None
    type: str | None = None


class _Message(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    role: Literal["assistant"]
    content: str
    tool_calls: list[_Call] | None = None
    thinking: str | None = None
    reasoning: None = None
    reasoning_content: None = None


class _Answer(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """An answer without unknown fields, as its message: such a field may be a call, or another spelling of the text."""

    model: _Name
    created_at: str
    message: _Message
    done: Literal[True]
    done_reason: Literal["stop", "length"]
    prompt_eval_count: _Count | None = None
    eval_count: _Count | None = None
    error: _json.Raw = NOTHING
    thinking: None = None
    delta: None = None
    logprobs: Any = None
    total_duration: Any = None
    load_duration: Any = None
    prompt_eval_duration: Any = None
    eval_duration: Any = None
    remote_model: str | None = None
    remote_host: str | None = None


_decode_answer: Final = _json.typed_decoder(_Answer)


def check_whole(body: bytes) -> Finish | None:
    """As `CheckWhole`."""
    answer = _decode_answer(body)
    if isinstance(answer, _json.Malformed) or answer.error is not NOTHING or parse_time(answer.created_at) is None:
        return None
    message, word = answer.message, answer.done_reason
    calls = message.tool_calls or ()
    ids = [call.id for call in calls if call.id is not None]
    if (calls or b'_calls"' in body) and repeats_key(body):
        return None
    if len(set(ids)) < len(ids) or not (calls or message.content):
        return None
    if any(place < (call.function.index or call.index or 0) for place, call in enumerate(calls)):
        return None  # one may be lost
    reason = "tool_use" if calls and word == "stop" else REASONS[word]
    return Finish(reason, word, Usage(answer.prompt_eval_count, answer.eval_count))
