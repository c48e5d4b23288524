"""Read a whole answer by one typed decode: it has what servers usually send, each key once, and nothing else.

So nothing needs to be looked for in it. What does not fit these Structs is read as any answer (`decode.py`), with the
same result.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.bounds import AnswerBounds
from dragoman.codec.parts.response_end import ResponseEnd
from dragoman.codec.parts.settled_arguments import is_plain_object
from dragoman.events import Event, Start, TextDelta, TextEnd, TextStart, ToolCallDelta, ToolCallEnd, ToolCallStart
from dragoman.protocols.openai_chat.response.plain_chunk import PlainFunction, are_texts, kept_fields
from dragoman.protocols.openai_chat.response.unmodelled import Kept
from dragoman.protocols.openai_chat.response.usage import read_cost, read_usage, rest_of_usage
from dragoman.protocols.openai_chat.wire import NOTHING, REASONS
from dragoman.types import ToolCall


class _Call(msgspec.Struct, gc=False, forbid_unknown_fields=True, kw_only=True):
    index: int | UnsetType = UNSET
    id: Annotated[str, msgspec.Meta(min_length=1)]
    type: Literal["function"]
    function: PlainFunction


class _Message(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    role: Literal["assistant"]
    content: str | UnsetType | None = UNSET
    reasoning_content: UnsetType | None = UNSET
    reasoning: UnsetType | None = UNSET
    tool_calls: list[_Call] | UnsetType | None = UNSET
    refusal: UnsetType | None = UNSET
    annotations: Annotated[list[None], msgspec.Meta(max_length=0)] | UnsetType | None = UNSET
    function_call: UnsetType | None = UNSET
    audio: UnsetType | None = UNSET


class _Choice(msgspec.Struct, gc=False, forbid_unknown_fields=True, kw_only=True):
    index: Literal[0]
    message: _Message
    logprobs: UnsetType | None = UNSET
    finish_reason: Literal["stop", "tool_calls"]
    stop_reason: UnsetType | None = UNSET
    matched_stop: UnsetType | None = UNSET
    token_ids: UnsetType | None = UNSET


class _PlainAnswer(msgspec.Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """Such an answer. Fields stand in the usual order: what is written of it is then most often the answer itself."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: Annotated[list[_Choice], msgspec.Meta(min_length=1, max_length=1)]
    usage: dict[str, Json] | UnsetType | None = UNSET
    service_tier: Raw = NOTHING
    system_fingerprint: Raw = NOTHING


#: Calls of such an answer are fewer.
_MOST_CALLS: Final = 16
_decode: Final = _json.typed_decoder(_PlainAnswer)


def read_plain_answer(data: bytes, *, offered_names: Collection[str], bounds: AnswerBounds) -> list[Event] | None:
    """Return the events of a whole answer, or None if it may have something else. A `ReadWhole`."""
    answer = _decode(data)
    if type(answer) is not _PlainAnswer:
        return None
    choice = answer.choices[0]
    text, calls = choice.message.content or "", choice.message.tool_calls or ()
    if bool(calls) is (choice.finish_reason == "stop") or not (text or calls) or not _json.holds_all(answer, data):
        return None
    rest = answer.service_tier, answer.system_fingerprint
    if not are_texts(*rest) or not _are_plain(calls, offered_names, bounds):
        return None
    kept, end, usage = Kept(), ResponseEnd(), answer.usage
    at = answer.created if 0 < answer.created < 1e11 else None
    events: list[Event] = [Start(answer.id or None, answer.model or None, at, kept.begin(kept_fields(*rest)))]
    if type(usage) is dict:
        if (update := end.count(read_usage(usage), read_cost(usage))) is not None:
            events.append(update)
        kept.usage(rest_of_usage(usage))
    if text:
        events += (TextStart(0), TextDelta(0, text), TextEnd(0))
    for index, call in enumerate(calls, bool(text)):
        name, arguments = call.function.name, call.function.arguments
        events += (
            ToolCallStart(index, call.id, name),
            ToolCallDelta(index, arguments),
            ToolCallEnd(index, ToolCall(call.id, name, arguments)),
        )
    end.take(choice.finish_reason, REASONS[choice.finish_reason], None)
    end.native = kept.native()
    events.append(end.finish(usable_calls=len(calls), failed_calls=0))
    return events


def _are_plain(calls: Sequence[_Call], offered_names: Collection[str], bounds: AnswerBounds) -> bool:
    """Return whether each call is one of an offered tool with arguments, under an id of its own."""
    for call in calls:
        name, arguments = call.function.name, call.function.arguments
        if not (
            name in offered_names
            and name.isascii()
            and len(arguments) <= bounds.arguments
            and is_plain_object(arguments)
        ):
            return False
    count = len(calls)
    return count < min(_MOST_CALLS, bounds.calls, bounds.parts) and len({call.id for call in calls}) == count
