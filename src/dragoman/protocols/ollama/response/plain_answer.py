"""Read a whole answer by one typed decode. See `codec/plain_answer.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from dragoman import _json
from dragoman._json import Raw
from dragoman.codec.json_fields import Fields
from dragoman.codec.parts.response_end import ResponseEnd
from dragoman.codec.parts.settled_arguments import says_something
from dragoman.codec.plain_answer import PlainAnswer, PlainCall, whole_reader
from dragoman.codec.repeated_keys import has_plain_parts
from dragoman.codec.timestamps import parse_time
from dragoman.events import Deviation, Start
from dragoman.protocols.ollama.wire import NAME, NOTHING, REASONS
from dragoman.types import Native, Usage

_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
_NOTHING_NOTED: Final[Sequence[Deviation]] = ()
#: Numbers that come back in the same protocol.
_DURATIONS: Final = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")


class _Function(msgspec.Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    index: int | None = None
    name: Annotated[str, msgspec.Meta(min_length=1)]
    arguments: Raw


class _Call(msgspec.Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    function: _Function
    id: str | None = None
    type: Literal["function"] | None = None


class _Message(msgspec.Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    role: Literal["assistant"]
    content: str
    thinking: str | None = None
    tool_calls: list[_Call] | None = None


class _PlainAnswer(msgspec.Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    model: Annotated[str, msgspec.Meta(min_length=1)]
    created_at: str
    message: _Message
    done: Literal[True]
    done_reason: Literal["stop"]
    total_duration: Raw = NOTHING
    load_duration: Raw = NOTHING
    prompt_eval_count: _Count | None = None
    prompt_eval_duration: Raw = NOTHING
    eval_count: _Count | None = None
    eval_duration: Raw = NOTHING


_decode: Final = _json.typed_decoder(_PlainAnswer)


def read_answer(data: bytes) -> PlainAnswer | None:
    """Return the answer of a body, or None if it may have something else."""
    answer = _decode(data)
    if type(answer) is not _PlainAnswer or (created := parse_time(answer.created_at)) is None:
        return None
    message, end, counts = answer.message, ResponseEnd(), None
    told = message.tool_calls or ()
    if (calls := _calls_of(told)) is None:
        return None
    if not has_plain_parts(data, answer, [call.function.arguments for call in told]):
        return None
    fields: Fields = {}
    for name in _DURATIONS:
        raw: Raw = getattr(answer, name)
        if raw is not NOTHING:
            if not (digits := bytes(raw)).isdigit():
                return None
            fields[name] = Raw(digits)
    if (count := answer.prompt_eval_count) is not None or answer.eval_count is not None:
        counts = end.count(Usage(count, answer.eval_count), None)
    end.take(answer.done_reason, REASONS[answer.done_reason], Native(NAME, fields) if fields else None)
    return PlainAnswer(Start(None, answer.model, created), message.content, calls, end, counts, message.thinking or "")


def _calls_of(told: Sequence[_Call]) -> list[PlainCall] | None:
    """Return calls with what is noted of them: servers leave out ids, some the type too. None: one has no arguments, or
    an index leaves out a call.
    """
    calls: list[PlainCall] = []
    behind = 0
    for number, call in enumerate(told):
        name, index, id = call.function.name, call.function.index, call.id or ""
        arguments = _json.raw_text(call.function.arguments)
        if not says_something(arguments):
            return None
        if index is not None:
            if index > behind:
                return None
            behind = max(behind, index + 1)
        early = notes = _NOTHING_NOTED
        if not id and not call.type:
            early = [Deviation("missing-type", f"message.tool_calls[{number}]", severity="note")]
        if not id and name not in [other.name for other in calls]:
            notes = [Deviation("missing-id", f"call {name}", severity="note")]
        calls.append(PlainCall(id, name, arguments, None, None, early, notes))
    return calls


read_plain_answer: Final = whole_reader(read_answer, counts="text")
