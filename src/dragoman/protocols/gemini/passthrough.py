"""Inspect a Gemini request before its bytes are passed on, and a whole answer."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

from dragoman import _json
from dragoman._json import Raw
from dragoman.codec.json_fields import read_fields
from dragoman.codec.parts.unread_arguments import whole_decoder
from dragoman.codec.repeated_keys import repeats_key
from dragoman.errors import WireError
from dragoman.events import Finish
from dragoman.money import MOST_TOKENS
from dragoman.protocol import NOTHING_EXPECTED, Peek
from dragoman.protocols.gemini.request.expectation import expect
from dragoman.protocols.gemini.request.parse import parse_path
from dragoman.protocols.gemini.response.unmodelled import RAN
from dragoman.protocols.gemini.response.usage import read_apart
from dragoman.protocols.gemini.wire import NOTHING, REASONS, PromptFeedback
from dragoman.types import Usage

_STORED: Final = frozenset({"cachedContent", "cached_content"})


def peek(body: bytes, *, path: str = "") -> Peek | None:
    """Return the model and whether a stream is requested, all from the path; None if the body must be parsed.

    The gateway itself writes an array, because its end must be right when the stream breaks. Not every target has
    what is stored.
    """
    try:
        model, is_stream, is_array = parse_path(path, "")
    except WireError:
        return None
    fields = read_fields(Raw(body))
    if is_array or fields is None or not _STORED.isdisjoint(fields):
        return None
    expectation = expect(fields) if b"andidate" in body else NOTHING_EXPECTED
    return Peek(model, is_stream, names_model=False, expectation=expectation)


# ---------------------------------------------------------------- a whole answer

_Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=MOST_TOKENS)]


class _Call(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    name: _Name
    args: dict[str, Any] = {}
    id: _Name | None = None


class _Part(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    text: str | None = None
    functionCall: _Call | None = None
    thought: bool = False
    thoughtSignature: str | None = None


class _SafetyRating(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    category: str | int | None = None
    probability: str | int | None = None
    blocked: bool | None = None
    probabilityScore: float | None = None
    severity: str | int | None = None
    severityScore: float | None = None


class _Content(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    parts: Annotated[list[_Part], msgspec.Meta(min_length=1)]
    role: Any = None


class _Candidate(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A candidate without unknown fields, as its content: one may be a call, or another spelling of the text."""

    content: _Content
    finishReason: Literal["STOP", "MAX_TOKENS"]
    index: int | None = None
    finishMessage: str | None = None
    tokenCount: int | None = None
    avgLogprobs: float | None = None
    safetyRatings: list[_SafetyRating] | None = None


class _Usage(msgspec.Struct, gc=False):
    promptTokenCount: _Count
    candidatesTokenCount: _Count
    thoughtsTokenCount: _Count | None = None
    cachedContentTokenCount: _Count | None = None
    toolUsePromptTokenCount: None = None


class _Answer(msgspec.Struct, gc=False):
    candidates: tuple[_Candidate]
    usageMetadata: _Usage
    error: _json.Raw = NOTHING
    promptFeedback: PromptFeedback | None = None


_decode_answer: Final = whole_decoder(_Answer, RAN, labels=("modelVersion", "responseId", "createTime"))


def check_whole(body: bytes) -> Finish | None:
    """As `CheckWhole`."""
    answer = _decode_answer(body)
    if isinstance(answer, _json.Malformed) or answer.error is not NOTHING:
        return None
    (candidate,), usage = answer.candidates, answer.usageMetadata
    parts, word = candidate.content.parts, candidate.finishReason
    calls = [part.functionCall for part in parts if part.functionCall is not None]
    ids = [call.id for call in calls if call.id is not None]
    texts = [part for part in parts if part.text and not part.thought]
    if len(calls) > 1 and len(texts) > 1:
        return None  # the answer may begin again
    if (calls or b'"functionCall"' in body) and repeats_key(body):
        return None
    if any(part.text is None and part.functionCall is None for part in parts):
        return None  # what it says may stand elsewhere
    if len(set(ids)) < len(ids) or not (calls or texts) or any(part.text and part.functionCall for part in parts):
        return None
    reason = "tool_use" if calls and word == "STOP" else REASONS[word]
    thoughts = usage.thoughtsTokenCount
    output = usage.candidatesTokenCount + (thoughts or 0)
    counts = (usage.promptTokenCount, output, usage.cachedContentTokenCount, None, thoughts)
    return Finish(reason, word, Usage(*counts, read_apart(body)))
