"""The JSON of OpenAI Chat Completions that we read: minimal Structs for well-formed chunks, and how odd ones fit in.

Spec: https://platform.openai.com/docs/api-reference/chat (read 2026-11-21, with openai-python 3.54.0). A chunk's
`delta` and a whole answer's `message` have one shape here. Hot fields have their usual type; rare ones have any.
Choices, deltas and calls take no unknown field: a chunk that has one is read again without it, and what was taken out
is kept (`response/unmodelled.py`). A chunk that does not fit is read field by field (`read_leniently.py`) into the
same Structs, each oddity a deviation.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.codec.counterparts import data_url
from dragoman.codec.json_fields import Fields
from dragoman.codec.parts.settled_arguments import is_placeholder, is_same, told_once
from dragoman.codec.parts.unread_arguments import noted
from dragoman.types import Media, StopReason

#: Takes a deviation's code, its place and what was seen.
Deviate: TypeAlias = Callable[[str, str, object], None]

NAME: Final = "openai-chat"
NOTHING: Final = Raw(b"")
_NULL: Final = Raw(b"null")
_NO_OBJECT: Final = b'"n'  # how a text and null begin
_DEEPEST_TEXT: Final = 8  # lists and objects around a text

#: The stop reasons of the protocol, then words that its servers use besides. What is in neither is "other".
REASONS: Final[dict[str, StopReason]] = {
    "stop": "stop", "length": "length", "tool_calls": "tool_use", "content_filter": "content_filter",
    "function_call": "tool_use",
}  # fmt: skip
FOREIGN_REASONS: Final[dict[str, StopReason]] = {
    "eos": "stop", "eos_token": "stop", "end_turn": "stop", "stop_sequence": "stop", "complete": "stop",
    "completed": "stop", "max_tokens": "length", "model_context_window_exceeded": "length", "model_length": "length",
    "max_output_tokens": "length", "tool_call": "tool_use", "tool_use": "tool_use", "refusal": "content_filter",
    "safety": "content_filter", "recitation": "content_filter", "sensitive": "content_filter",
    "blocklist": "content_filter", "prohibited_content": "content_filter", "spii": "content_filter",
}  # fmt: skip
#: Stop reasons that say that the answer failed.
FAILED_REASONS: Final[frozenset[str]] = frozenset({
    "error", "network_error", "insufficient_system_resource", "malformed_function_call", "unexpected_tool_call",
    "too_many_tool_calls", "missing_thought_signature",
})  # fmt: skip


def foreign_reason(word: str) -> StopReason | Literal["failed"] | None:
    """Return a stop reason that the protocol does not have, or None for one that says nothing."""
    lower = word.strip().lower()
    if lower in ("", "null", "none"):
        return None
    if lower in FAILED_REASONS:
        return "failed"
    return REASONS.get(lower) or FOREIGN_REASONS.get(lower, "other")


#: Names of objects that a response is wrapped in.
ENVELOPES: Final = ("data", "response", "result", "body", "output", "completion")


#: Fields of a response that are modelled; the others are kept as native ones.
_KNOWN: Final = frozenset({"id", "object", "created", "model", "choices", "usage", "error"})


class FunctionPiece(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """`function` of a call. `parameters` is another spelling of arguments, unchanged.

    `unread`: the unread key that may have arguments; no wire has it.
    """

    arguments: str | None = None
    name: str | None = None
    parameters: Raw = NOTHING
    unread: None = None


class PlainFunction(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """What a usual call calls."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    arguments: str


class PlainCall(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A usual piece of a call, with all its labels."""

    index: int
    id: Annotated[str, msgspec.Meta(min_length=1)]
    type: Literal["function"]
    function: PlainFunction


class CallPiece(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """An entry of `tool_calls`. `name` and `arguments` beside `function` are flat forms of it.

    `rest`: unmodelled fields, `unread`: the unread key that may have arguments, `unread_name`: a name under another
    key; no wire has these.
    """

    index: int | None = None
    function: FunctionPiece | None = None
    id: str | None = None
    type: str | None = None
    name: str | None = None
    arguments: str | None = None
    custom: Any = None
    extra_content: Any = None
    rest: None = None
    unread: None = None
    unread_name: None = None


class Delta(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A `delta`, or a whole `message`. Fields of type None are usually null.

    `content_parts`: a `content` that is a list, from the lenient reader; no wire has it. `channel` and `token_id` add
    nothing.
    """

    content: str | None = None
    tool_calls: list[CallPiece] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    reasoning_details: Any = None
    annotations: Any = None
    extra_content: Any = None
    function_call: FunctionPiece | None = None
    thinking: Any = None
    reasoning_text: str | None = None
    reasoning_opaque: str | None = None
    audio: Any = None
    images: Any = None
    content_parts: None = None
    role: Any = None
    channel: Any = None
    token_id: Any = None


class Choice(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """An entry of `choices`. `text` is the older completions form. Fields of type None are usually null.

    Azure sends `content_filter_results` with every chunk.
    """

    index: int | None = None
    delta: Delta | None = None
    logprobs: None = None
    finish_reason: str | None = None
    native_finish_reason: None = None
    message: Delta | None = None
    error: Any = None
    text: str | None = None
    usage: Any = None
    content_filter_results: Raw = NOTHING
    stop_reason: None = None
    matched_stop: None = None
    token_ids: None = None


#: Fields that are read; the others are kept as they are.
CALL_FIELDS: Final = frozenset(
    field.name for field in msgspec.structs.fields(CallPiece) if field.type is not types.NoneType
)
DELTA_FIELDS: Final = frozenset(
    field.name for field in msgspec.structs.fields(Delta) if field.type is not types.NoneType
)
CHOICE_FIELDS: Final = frozenset(
    field.name for field in msgspec.structs.fields(Choice) if field.type is not types.NoneType
)


FUNCTION_FIELDS: Final = frozenset(
    field.name for field in msgspec.structs.fields(FunctionPiece) if field.type is not types.NoneType
)


class Chunk(msgspec.Struct, gc=False):
    """One event of a stream, or a whole response."""

    choices: list[Choice] | None = None
    usage: Any = None
    error: Any = None
    x_groq: Any = None


class _HeadFunction(msgspec.Struct, gc=False, omit_defaults=True):
    name: Any = UNSET
    arguments: Raw = NOTHING


class _HeadCall(msgspec.Struct, gc=False, omit_defaults=True):
    index: Any = UNSET
    id: Any = UNSET
    type: Any = UNSET
    function: _HeadFunction | None = None


class _HeadMessage(msgspec.Struct, gc=False, omit_defaults=True):
    role: Any = UNSET
    content: Any = UNSET
    reasoning_content: Any = UNSET
    refusal: Any = UNSET
    annotations: Any = UNSET
    tool_calls: list[_HeadCall] | None = None


class _HeadChoice(msgspec.Struct, gc=False, omit_defaults=True):
    index: Any = UNSET
    message: _HeadMessage | None = None
    logprobs: Any = UNSET
    finish_reason: Any = UNSET


class _Head(msgspec.Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """A response whose fields are all known, two unmodelled ones among them.

    What is written of it lacks unknown fields of its parts, and all but the last of those that it has twice.
    """

    id: str | None = None
    object: Any = UNSET
    created: int | None = None
    model: str | None = None
    choices: list[_HeadChoice] | None = None
    usage: Any = UNSET
    error: Any = UNSET
    service_tier: Raw = NOTHING
    system_fingerprint: Raw = NOTHING


class _Id(msgspec.Struct, gc=False):
    id: str | None = None


class _Tier(msgspec.Struct, gc=False):
    service_tier: Raw = NOTHING


decode_chunk: Final = _json.typed_decoder(Chunk)
_decode_id: Final = _json.typed_decoder(_Id)
_decode_tier: Final = _json.typed_decoder(_Tier)
_decode_head: Final = _json.typed_decoder(_Head)
decode_fields: Final = _json.typed_decoder(dict[str, Raw])


def has_rare(delta: Delta) -> bool:
    """Return whether a delta has more than text, thinking under its usual names, and calls."""
    return bool(
        delta.refusal
        or delta.reasoning_details
        or delta.annotations
        or delta.extra_content
        or delta.function_call
        or delta.thinking
        or delta.reasoning_text
        or delta.reasoning_opaque
        or delta.audio
        or delta.images
        or delta.content_parts
    )


def texts_in(value: Json, depth: int = 0) -> list[str]:
    """Return the texts of `"…"`, `{"text": …}`, `{"content": …}` or a list of such."""
    if isinstance(value, str):
        return [value]
    if depth > _DEEPEST_TEXT:
        return []
    if isinstance(value, list):
        return [text for item in value for text in texts_in(item, depth + 1)]
    if isinstance(value, dict):
        for key in ("text", "content", "thinking", "summary"):
            if value.get(key):
                return texts_in(value[key], depth + 1)
    return []


# ---------------------------------------------------------------- readers of single values


def read_id(data: bytes) -> str | None:
    """Return the id of a chunk, or None if it has none that is a text."""
    read = _decode_id(data)
    return None if isinstance(read, Malformed) else read.id


def read_tier(data: bytes) -> Raw:
    """Return the service tier of a response or a chunk, as it is written there."""
    read = _decode_tier(data) if data.find(b"service_tier") >= 0 else None
    return read.service_tier if isinstance(read, _Tier) else NOTHING


def read_head(data: bytes) -> tuple[str | None, str | None, int | None, Fields, Raw, bool]:
    """Return id, model, time (Unix seconds) and unmodelled fields of a response or its first chunk.

    Also return the arguments of a whole response's first call as they stand there, if they were seen on the way, and
    whether a response with calls is known to have each key once.
    """
    head = _decode_head(data)
    if type(head) is _Head:
        at, rest = head.created, Fields()
        if head.service_tier or head.system_fingerprint:
            told = {"service_tier": head.service_tier, "system_fingerprint": head.system_fingerprint}
            rest = {key: _json.compact(raw) for key, raw in told.items() if raw and bytes(raw) != b"null"}
        is_time = at is not None and 0 < at < 1e11
        calls = _calls_in(head)
        first = calls[0].arguments if calls else NOTHING
        is_plain = first is not NOTHING and _is_told_once(head, calls, data)
        return head.id, head.model, at if is_time else None, rest, first, is_plain
    fields = decode_fields(data)
    if isinstance(fields, Malformed):
        return None, None, None, {}, NOTHING, False
    id, model, created = [_json.decode(fields.get(key, _NULL)) for key in ("id", "model", "created")]
    return (
        id if isinstance(id, str) else None,
        model if isinstance(model, str) else None,
        int(created) if isinstance(created, (int, float)) and 0 < created < 1e11 else None,
        rest_of_response(fields),
        NOTHING,
        False,
    )


def _calls_in(head: _Head) -> list[_HeadFunction]:
    message = head.choices[0].message if head.choices else None
    calls = message.tool_calls if message is not None else None
    return [call.function or _HeadFunction() for call in calls or ()]


def _is_told_once(head: _Head, calls: list[_HeadFunction], data: bytes) -> bool:
    """Return whether a response is all that was read of it. What stands there as it came must hold no key."""
    verbatim = [head.service_tier, head.system_fingerprint, *[call.arguments for call in calls]]
    return all(value is NOTHING or memoryview(value)[0] in _NO_OBJECT for value in verbatim) and _json.holds_all(
        head, data
    )


def rest_of_response(fields: Fields) -> Fields:
    """Return the unmodelled fields of a response."""
    if fields.keys() <= _KNOWN:
        return {}
    return {
        key: _json.compact(raw)
        for key, raw in fields.items()
        if key not in _KNOWN and bytes(raw) != b"null" and (key != "x_groq" or b'"usage"' not in bytes(raw))
    }


def parts_of(piece: CallPiece) -> tuple[str, str, Literal["function", "custom"]]:
    """Return name, argument text and kind of a call's piece in any form."""
    function = piece.function
    if function is not None:
        arguments = function.arguments
        if function.parameters is not NOTHING or piece.arguments:
            arguments, _ = told_once(arguments_in(piece))
        return function.name or piece.name or "", arguments or "", "function"
    custom = piece.custom
    if isinstance(custom, dict):
        name, text = custom.get("name"), custom.get("input")
        return name if isinstance(name, str) else "", text if isinstance(text, str) else "", "custom"
    return piece.name or "", piece.arguments or "", "function"


def arguments_in(piece: CallPiece) -> list[str]:
    """Return the argument texts of a call's piece, under each key that has one."""
    function = piece.function
    texts = [] if function is None else [function.arguments]
    if function is not None and function.parameters is not NOTHING:
        value = _json.decode(function.parameters)
        texts.append(value if isinstance(value, str) else _json.raw_text(function.parameters))
    return [text for text in (*texts, piece.arguments) if text]


def legacy_call(delta: Delta) -> tuple[str, str]:
    """Return name and arguments of the older `function_call`; "" if there is none, or `tool_calls` has it too."""
    function = delta.function_call
    if function is None or delta.tool_calls:
        return "", ""
    return function.name or "", function.arguments or ""


def unread_in(piece: CallPiece | FunctionPiece | None) -> str:
    """Return the unread key of a piece that may have its arguments, or ""."""
    if isinstance(piece, CallPiece) and piece.custom is not None and _is_odd(piece.custom):
        return "custom"
    return noted(None if piece is None else piece.unread)


def _is_odd(custom: Json) -> bool:
    """Return whether a piece of free text has something in place of its text."""
    if not isinstance(custom, dict):
        return True
    text = custom.get("input")
    beside = any(value for key, value in custom.items() if key not in ("name", "input"))
    return not (text is None or isinstance(text, str)) or (beside and not text and not custom.get("name"))


def unread_legacy(delta: Delta) -> str:
    """As `unread_in` for the older `function_call`, which has no `parameters` either."""
    function = delta.function_call
    if function is not None and function.parameters is not NOTHING:
        told = is_placeholder(text := _json.raw_text(function.parameters)) or is_same(text, function.arguments or "")
        return unread_in(function) if told else "parameters"
    return unread_in(function)


def signature_of(piece: CallPiece) -> str | None:
    """Return the signature of the thinking behind a call."""
    if piece.extra_content is None:
        return None
    signature = google_fields(piece.extra_content).get("thought_signature")
    return signature if isinstance(signature, str) else None


def google_fields(value: Json) -> dict[str, Json]:
    """Return `extra_content.google` of Gemini's OpenAI endpoint, or {}.

    https://ai.google.dev/gemini-api/docs/thought-signatures (read 2026-11-21).
    """
    inner = value.get("google") if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


# ---------------------------------------------------------------- media


def image_url(media: Media) -> str:
    """Return the URL of media, a `data:` URL if they are data."""
    return data_url(media) or ""
