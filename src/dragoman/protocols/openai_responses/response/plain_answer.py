"""Read a whole response by one typed decode. See `codec/plain_answer.py`."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from dragoman import _json
from dragoman._json import Json
from dragoman.codec.nan import kept
from dragoman.codec.parts.response_end import ResponseEnd
from dragoman.codec.parts.settled_arguments import is_plain_object
from dragoman.codec.plain_answer import PlainAnswer, PlainCall, whole_reader
from dragoman.events import Start
from dragoman.protocols.openai_responses.response.unmodelled import OF_RESPONSE, created_at, kept_fields
from dragoman.protocols.openai_responses.response.usage import read_usage
from dragoman.protocols.openai_responses.wire import make_native

_Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
_None: TypeAlias = Annotated[list[None], msgspec.Meta(max_length=0)] | UnsetType
#: Fields of a response that say nothing beside its output and its counts, or are kept as they are.
_BESIDE: Final = sorted(OF_RESPONSE - {"id", "object", "status", "error", "output", "usage", "output_text"})


class _Text(msgspec.Struct, gc=False, forbid_unknown_fields=True, kw_only=True):
    type: Literal["output_text"]
    annotations: _None = UNSET
    logprobs: _None = UNSET
    text: _Name


class _Message(msgspec.Struct, tag_field="type", tag="message", gc=False, forbid_unknown_fields=True):
    id: _Name
    role: Literal["assistant"]
    content: Annotated[list[_Text], msgspec.Meta(min_length=1, max_length=1)]
    status: Literal["completed"]


class _Call(msgspec.Struct, tag_field="type", tag="function_call", gc=False, forbid_unknown_fields=True):
    id: _Name
    call_id: _Name
    name: _Name
    arguments: str
    status: Literal["completed"]


_PlainAnswer: Any = msgspec.defstruct(
    "_PlainAnswer",
    [
        ("id", str),
        ("object", Literal["response"]),
        ("status", Literal["completed"]),
        ("output", list[_Message | _Call]),
        ("error", UnsetType | None, UNSET),
        ("usage", dict[str, Json] | UnsetType | None, UNSET),
        *((name, Json, UNSET) for name in _BESIDE),
    ],
    gc=False, forbid_unknown_fields=True, kw_only=True,
)  # fmt: skip
_decode: Final = _json.typed_decoder(_PlainAnswer)


def read_answer(data: bytes) -> PlainAnswer | None:
    """Return the answer of a body, or None if it may have something else."""
    answer: Any = _decode(data)
    if type(answer) is not _PlainAnswer or not _json.holds_all(answer, data):
        return None
    text, calls, text_native = "", [], None
    for number, item in enumerate(answer.output):
        native = make_native({"id": kept(item.id)})
        if type(item) is _Call and is_plain_object(item.arguments):
            calls.append(PlainCall(item.call_id, item.name, item.arguments, native=native))
        elif type(item) is _Message and not number:
            text, text_native = item.content[0].text, native
        else:
            return None
    if len({item.id for item in answer.output}) < len(answer.output):
        return None
    fields, usage, end, counts = msgspec.structs.asdict(answer), answer.usage, ResponseEnd(), None
    response = {key: value for key, value in fields.items() if value is not UNSET}
    if type(usage) is dict:
        odd: list[str] = []
        counts = end.count(read_usage(usage, lambda *seen: odd.extend(seen), response.get("service_tier")), None)
        if odd or "cost" in usage:  # which counts by the dialect
            return None
    model = answer.model if isinstance(answer.model, str) else None
    start = Start(answer.id or None, model or None, created_at(response), make_native(kept_fields(response)))
    end.take(answer.status, "stop", None)
    return PlainAnswer(start, text, calls, end, counts, text_native=text_native)


read_plain_answer: Final = whole_reader(read_answer, counts="start")
