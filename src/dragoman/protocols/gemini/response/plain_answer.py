"""Read a whole answer by one typed decode. See `codec/plain_answer.py`."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec

from dragoman import _json
from dragoman._json import Raw
from dragoman.codec.parts.response_end import ResponseEnd
from dragoman.codec.parts.settled_arguments import says_something
from dragoman.codec.plain_answer import PlainAnswer, PlainCall, whole_reader
from dragoman.codec.repeated_keys import has_plain_parts
from dragoman.events import Start
from dragoman.protocols.gemini.response.usage import merged, read_apart, read_usage
from dragoman.protocols.gemini.wire import NAME, NOTHING, REASONS, UsageMetadata
from dragoman.types import Native


class _Call(msgspec.Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    name: Annotated[str, msgspec.Meta(min_length=1)]
    args: Raw
    id: str | None = None


class _Part(msgspec.Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    text: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    functionCall: _Call | None = None
    thoughtSignature: str | None = None


class _Content(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    parts: Annotated[list[_Part], msgspec.Meta(min_length=1)]
    role: Literal["model"]


class _Candidate(msgspec.Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    content: _Content
    finishReason: Literal["STOP"]
    index: Literal[0] | None = None


#: Counts of each kind of content, which come back in the same protocol.
_DETAILS: Final = ("promptTokensDetails", "candidatesTokensDetails", "cacheTokensDetails")
_Counts: Any = msgspec.defstruct(
    "_Counts",
    [
        *((field.name, field.type, field.default) for field in msgspec.structs.fields(UsageMetadata)),
        *((name, Raw, NOTHING) for name in _DETAILS),
    ],
    gc=False, forbid_unknown_fields=True, omit_defaults=True,
)  # fmt: skip


class _PlainAnswer(msgspec.Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    candidates: Annotated[list[_Candidate], msgspec.Meta(min_length=1, max_length=1)]
    usageMetadata: _Counts | None = None
    modelVersion: str | None = None
    responseId: str | None = None


_decode: Final = _json.typed_decoder(_PlainAnswer)


def read_answer(data: bytes) -> PlainAnswer | None:
    """Return the answer of a body, or None if it may have something else."""
    answer = _decode(data)
    if type(answer) is not _PlainAnswer:
        return None
    text, calls, arguments = "", [], []
    (candidate,) = answer.candidates
    for number, part in enumerate(candidate.content.parts):
        call = part.functionCall
        if call is not None and part.text is None and says_something(told := _json.raw_text(call.args)):
            calls.append(PlainCall(call.id or "", call.name, told, part.thoughtSignature or None))
            arguments.append(call.args)
        elif call is None and part.text and part.thoughtSignature is None and not number:
            text = part.text
        else:
            return None
    if not has_plain_parts(data, answer, arguments):
        return None
    end, counted, update, native = ResponseEnd(), answer.usageMetadata, None, None
    if counted is not None:
        details = {name: raw for name in _DETAILS if (raw := getattr(counted, name)) is not NOTHING}
        if counted.toolUsePromptTokenCount is not None or not all(
            _json.is_told_once(bytes(raw)) for raw in details.values()
        ):
            return None
        update = end.count(read_usage(merged(UsageMetadata(), counted), read_apart(data)), None)
        kept = {name: _json.compact(raw) for name, raw in details.items() if bytes(raw) != b"null"}
        native = Native(NAME, {"usageMetadata": _json.raw(kept)}) if kept else None
    end.take(candidate.finishReason, REASONS[candidate.finishReason], native)
    start = Start(answer.responseId or None, answer.modelVersion or None)
    return PlainAnswer(start, text, calls, end, update)


read_plain_answer: Final = whole_reader(read_answer, counts="text")
