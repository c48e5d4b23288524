"""Read a whole answer by one typed decode: it has what servers usually send, each key once, and nothing else.

See `codec/plain_answer.py`.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.parts.response_end import ResponseEnd
from dragoman.codec.parts.settled_arguments import is_plain_object
from dragoman.codec.plain_answer import PlainAnswer, PlainCall, whole_reader
from dragoman.events import Start
from dragoman.protocols.openai_chat.response.plain_chunk import are_texts, kept_fields
from dragoman.protocols.openai_chat.response.unmodelled import Kept
from dragoman.protocols.openai_chat.response.usage import read_cost, read_usage, rest_of_usage
from dragoman.protocols.openai_chat.wire import NOTHING, REASONS, PlainFunction


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


_decode: Final = _json.typed_decoder(_PlainAnswer)


def read_answer(data: bytes) -> PlainAnswer | None:
    """Return the answer of a body, or None if it may have something else."""
    answer = _decode(data)
    if type(answer) is not _PlainAnswer:
        return None
    choice = answer.choices[0]
    text, calls = choice.message.content or "", choice.message.tool_calls or ()
    if bool(calls) is (choice.finish_reason == "stop") or not _json.holds_all(answer, data):
        return None
    rest = answer.service_tier, answer.system_fingerprint
    if not are_texts(*rest) or not all(is_plain_object(call.function.arguments) for call in calls):
        return None
    kept, end, usage, counts = Kept(), ResponseEnd(), answer.usage, None
    at = answer.created if 0 < answer.created < 1e11 else None
    start = Start(answer.id or None, answer.model or None, at, kept.begin(kept_fields(*rest)))
    if type(usage) is dict:
        counts = end.count(read_usage(usage, answer.service_tier), read_cost(usage))
        kept.usage(rest_of_usage(usage))
    end.take(choice.finish_reason, REASONS[choice.finish_reason], kept.native())
    told = [PlainCall(call.id, call.function.name, call.function.arguments) for call in calls]
    return PlainAnswer(start, text, told, end, counts)


read_plain_answer: Final = whole_reader(read_answer, counts="start")
