"""Inspect a chat request before its bytes are passed on, and a whole answer."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

from dragoman import _json
from dragoman.codec.delta_batch import many, narrowed, one
from dragoman.codec.framing.plain_keys import has_escaped_letters
from dragoman.codec.parts.settled_arguments import is_plain_object
from dragoman.codec.parts.unread_arguments import whole_decoder
from dragoman.codec.repeated_keys import has_plain_keys, repeats_key, without_value
from dragoman.events import Finish
from dragoman.protocol import Peek
from dragoman.protocols.openai_chat.response.usage import read_cost, read_usage
from dragoman.protocols.openai_chat.wire import (
    NOTHING,
    REASONS,
    CallPiece,
    Choice,
    Chunk,
    Delta,
    FunctionPiece,
    read_tier,
)
from dragoman.types import NO_USAGE

#: An empty list of choices is looked for by its bracket: searching for one byte is many times as fast.
_EMPTY_LIST: Final = re.compile(rb"\[\s*\]")
_NEAR: Final = 32
_USAGE: Final = b'"usage"'
_BLANK_LINES: Final = (b"\n\n", b"\r\n\r\n")


class _Seen(msgspec.Struct, gc=False):
    model: str
    stream: bool | None = None
    stream_options: dict[str, _json.Json] | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None


_decode: Final = _json.fields_decoder(_Seen)


def peek(body: bytes, *, path: str = "") -> Peek | None:
    """Return the model and whether a stream is requested, without parsing the rest; None if it must be parsed."""
    read = _decode(body)
    if isinstance(read, _json.Malformed):
        return None
    seen, fields = read
    if "messages" not in fields:
        return None
    options = seen.stream_options or {}
    most = seen.max_completion_tokens or seen.max_tokens
    if not seen.stream or options.get("include_usage") is True:
        return Peek(seen.model, bool(seen.stream), fields, max_tokens=most)
    asking: dict[str, object] = {"stream_options": {**options, "include_usage": True}}
    return Peek(seen.model, True, fields, usage=asking, max_tokens=most)


# ---------------------------------------------------------------- a whole answer

_Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]


_Function: Final = narrowed(FunctionPiece, {"name": _Name, "arguments": _json.Raw})
_Call: Final = narrowed(
    CallPiece,
    {"id": _Name, "type": Literal["function"], "function": _Function, "index": ..., "extra_content": ...},
    is_open=True,
)
_Message: Final = narrowed(
    Delta,
    {
        "content": ...,
        "tool_calls": many(_Call),
        "reasoning_content": ...,
        "reasoning": ...,
        "reasoning_details": ...,
        "annotations": ...,
        "extra_content": ...,
        "role": ...,
        "channel": ...,
    },
)


class _Logprobs(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    content: list[Any] | None = None
    refusal: list[Any] | None = None


# Closed, as the message is: a field that neither has may be a call, or another spelling of the text.
_Choice: Final = narrowed(
    Choice,
    {
        "message": _Message,
        "finish_reason": Literal["stop", "length", "tool_calls"],
        "index": ...,
        "content_filter_results": ...,
        "logprobs": _Logprobs | None,
        "native_finish_reason": str | None,
        "stop_reason": str | int | None,
        "matched_stop": str | int | None,
        "token_ids": list[int] | None,
    },
)
_Answer: Final = msgspec.defstruct(
    "_Answer",
    [("service_tier", str | float | None, None)],
    bases=(narrowed(Chunk, {"choices": one(_Choice), "usage": ...}),),
    gc=False,
    kw_only=True,
)


#: Keys of whole answers: how often they stand in one without calls, and how often more for each call.
_OF_CALLS: Final = (
    (b'"choices"', 1, 0), (b'"message"', 1, 0), (b'"function"', 0, 2), (b'"name"', 0, 1), (b'"arguments"', 0, 1),
    (b'"id"', 1, 1),
)  # fmt: skip

_decode_text: Final = _json.typed_decoder(str)
_LABELS: Final = ("id", "object", "created", "model", "system_fingerprint")
_decode_answer: Final = whole_decoder(_Answer, labels=_LABELS)


def check_whole(body: bytes) -> Finish | None:
    """As `CheckWhole`."""
    answer = _decode_answer(body)
    if isinstance(answer, _json.Malformed):
        return None
    choice = answer.choices[0]
    word, calls = choice.finish_reason, choice.message.tool_calls
    around = without_value(body, b'"arguments":', calls[0].function.arguments) if calls else body
    # The text that is left out has no key of the answer: a quotation mark in it is escaped.
    may_repeat = (
        around.find(b"_calls") >= 0 and _is_crowded(around, len(calls or ()), word) and not has_plain_keys(around)
    )
    if (may_repeat or has_escaped_letters(around)) and repeats_key(body):
        return None
    if calls:
        if word == "stop" or (len(calls) > 1 and len({call.id for call in calls}) < len(calls)):
            return None
        for call in calls:
            if not _is_plain(call.function.arguments):
                return None
    elif word == "tool_calls" or not choice.message.content:
        return None
    fields = answer.usage
    if not isinstance(fields, dict):
        return Finish(REASONS[word], word, NO_USAGE) if fields is None else None
    tier = NOTHING if answer.service_tier in (None, "default") else read_tier(body)  # as most often
    return Finish(REASONS[word], word, read_usage(fields, tier), read_cost(fields))


def _is_plain(arguments: _json.Raw) -> bool:
    """Return whether the arguments of a call are a text of one JSON object."""
    text = _decode_text(arguments)
    return type(text) is str and is_plain_object(text)


def _is_crowded(body: bytes, calls: int, word: str) -> bool:
    """Return whether a key around a call or of one occurs more often than these calls need: it may be repeated."""
    for key, without, each in _OF_CALLS:
        if body.count(key) > without + each * calls:
            return True
    return body.count(b'"tool_calls"') > 1 + (word == "tool_calls")


def without_usage(data: bytes) -> bytes:
    """Return whole frames without the one that has usage and no choice, which answers our own request for usage."""
    kept: list[bytes] = []
    begin = 0
    first = data.rfind(_USAGE)  # frames before it are not looked at
    if first >= 0 and data.rfind(_USAGE, 0, first) >= 0:  # to search backwards takes half the time
        first = data.find(_USAGE)
    for found in _EMPTY_LIST.finditer(data, _frame_start(data, first)) if first >= 0 else ():
        place = found.start()
        if place < begin or not data[max(place - _NEAR, 0) : place].rstrip(b" \t:").endswith(b'"choices"'):
            continue
        start = _frame_start(data, place)
        ends = [end for blank in _BLANK_LINES if (end := data.find(blank, place) + len(blank)) >= len(blank)]
        end = min(ends, default=len(data))
        if data.find(_USAGE, start, end) >= 0:
            kept.append(data[begin:start])
            begin = end
    return b"".join([*kept, data[begin:]]) if kept else data


def _frame_start(data: bytes, place: int) -> int:
    """Return where the frame around a place begins: behind the last empty line before it."""
    start = 0
    for blank in _BLANK_LINES:
        found = data.rfind(blank, start, place)
        if found >= 0:
            start = found + len(blank)
    return start
