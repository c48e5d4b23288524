"""The JSON of Gemini's generateContent that we read: minimal Structs for well-formed chunks, and how odd ones fit in.

Spec: https://ai.google.dev/api/generate-content (read 2026-11-21); streamed arguments (`partialArgs`) are Vertex AI's.
Keys come in camelCase or, as proto JSON allows, in snake_case: the Structs have both spellings of fields beside hot
ones. A chunk that does not fit is rewritten into one that does (`read_leniently`), each oddity a deviation.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.counterparts import is_video_page, told_type, with_data
from dragoman.codec.delta_batch import narrowed, one
from dragoman.codec.json_fields import Fields, make_native, read_fields, read_text
from dragoman.codec.parts.unread_arguments import is_blank, unread_arguments, unread_name
from dragoman.protocol.media_types import type_of_name
from dragoman.types import Media, StopReason, media_kind

NAME: Final = "gemini-generate"
NOTHING: Final = Raw(b"")

#: finishReason → ours; what is not here is "other".
REASONS: Final[dict[str, StopReason]] = {
    "STOP": "stop", "MAX_TOKENS": "length", "SAFETY": "content_filter", "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter", "PROHIBITED_CONTENT": "content_filter", "SPII": "content_filter",
    "IMAGE_SAFETY": "content_filter", "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter", "MODEL_ARMOR": "content_filter", "LANGUAGE": "other", "OTHER": "other",
    "NO_IMAGE": "other", "IMAGE_OTHER": "other", "MALFORMED_RESPONSE": "other", "ESCALATION": "other",
    "PUP_LIMITED_DISABLED": "other", "CONTINUATION": "other",
}  # fmt: skip
#: finishReasons with which the response failed.
FAILED_REASONS: Final = frozenset(
    {"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE"}
)
UNSPECIFIED: Final = frozenset({"FINISH_REASON_UNSPECIFIED", "BLOCK_REASON_UNSPECIFIED", "BLOCKED_REASON_UNSPECIFIED"})
#: The part of the answer that `text` and `functionCall` are not; each is kept whole.
KNOWN_PARTS: Final = frozenset({
    "executableCode", "codeExecutionResult", "toolCall", "toolResponse", "functionResponse", "mediaResolution",
    "mediaProcessing", "videoMetadata", "partMetadata", "audioTranscription", "audioMetadata", "speechMetadata",
    "documentMetadata", "spreadsheetMetadata",
})  # fmt: skip
#: Signatures that stand in for a missing one, as https://ai.google.dev/gemini-api/docs/thought-signatures has them.
DUMMY_SIGNATURES: Final = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")

_SNAKE: Final = re.compile(r"_([a-z0-9])")


class PartialArgument(msgspec.Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """One piece of streamed arguments: a value, or text that grows while `willContinue`."""

    jsonPath: str = ""
    stringValue: str | None = None
    numberValue: Raw = NOTHING
    boolValue: bool | None = None
    nullValue: Raw = NOTHING
    willContinue: bool | None = None


class FunctionCall(msgspec.Struct, gc=False, omit_defaults=True):
    """`functionCall` of a part. `unread`: the unread key that may have arguments, `unread_name`: a name under another
    key; no wire can fill these.
    """

    id: str | None = None
    name: str | None = None
    args: Raw = NOTHING
    partialArgs: list[PartialArgument] | None = None
    willContinue: bool | None = None
    partial_args: Raw = NOTHING
    will_continue: Raw = NOTHING
    arguments: Raw = NOTHING
    parameters: Raw = NOTHING
    unread: None = None
    unread_name: None = None


#: Fields of a call that are read.
CALL_FIELDS: Final = frozenset(FunctionCall.__struct_fields__) - {"unread", "unread_name"}


def is_whole(call: FunctionCall) -> bool:
    """Return whether a call has its arguments under `args` alone, and nothing was noted of it."""
    return (
        call.partialArgs is None
        and call.willContinue is None
        and call.unread is call.unread_name is None
        and call.partial_args is call.will_continue is call.arguments is call.parameters is NOTHING
    )


def note_unread(call: FunctionCall, fields: Mapping[str, Json], beside: Mapping[str, Json] | None = None) -> None:
    """Record which of a call's unread fields may be its arguments. `beside`: those of its part."""
    told: Json = unread_arguments(fields, *CALL_FIELDS) or unread_arguments(beside or {})
    call.unread = told


def note_unread_name(call: FunctionCall, fields: Mapping[str, Json]) -> None:
    """Record which of a nameless call's fields may be its name."""
    told: Json = unread_name(fields)
    call.unread_name = told


def says_nothing(call: FunctionCall) -> bool:
    """Return whether a call has no arguments, or blank ones, in their place."""
    return not call.partialArgs and is_blank(call.args)


class Part(msgspec.Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """A part of the answer. One without text and call, or with other fields, is read by its keys."""

    text: str | None = None
    thought: bool | None = None
    thoughtSignature: str | None = None
    functionCall: FunctionCall | None = None
    thought_signature: str | None = None


class Content(msgspec.Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """The `content` of a candidate."""

    parts: list[Part] | None = None
    role: Any = None


class Candidate(msgspec.Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """An entry of `candidates`. One with other fields is split (`kept`)."""

    content: Content | None = None
    finishReason: str | int | None = None
    index: int | None = None
    finish_reason: str | int | None = None


class UsageMetadata(msgspec.Struct, gc=False, omit_defaults=True):
    """Tokens so far. The prompt's count includes cached ones, the candidates' excludes thoughts. No total is read."""

    promptTokenCount: int | None = None
    candidatesTokenCount: int | None = None
    totalTokenCount: Any = None
    cachedContentTokenCount: int | None = None
    thoughtsTokenCount: int | None = None
    toolUsePromptTokenCount: int | None = None


class PromptFeedback(msgspec.Struct, gc=False, omit_defaults=True):
    """Why there are no candidates."""

    blockReason: str | int | None = None


class Chunk(msgspec.Struct, gc=False, omit_defaults=True):
    """One event of a stream, or a whole response."""

    candidates: list[Candidate] | None = None
    usageMetadata: UsageMetadata | None = None
    modelVersion: Any = None
    createTime: Any = None
    responseId: Any = None
    promptFeedback: PromptFeedback | None = None
    error: Raw = NOTHING
    response: Raw = NOTHING
    usage_metadata: Raw = NOTHING
    prompt_feedback: Raw = NOTHING
    model_version: Any = None
    create_time: Any = None
    response_id: Any = None


def told_by(chunk: Chunk) -> tuple[list[str], list[FunctionCall]]:
    """Return the texts and the calls of a chunk."""
    texts: list[str] = []
    calls: list[FunctionCall] = []
    for candidate in chunk.candidates or ():
        if candidate.content is not None:
            for part in candidate.content.parts or ():
                if part.text:
                    texts.append(part.text)
                if part.functionCall is not None:
                    calls.append(part.functionCall)
    return texts, calls


def is_answer(chunk: Chunk) -> bool:
    """Return whether a chunk contains a part of an answer."""
    return not (
        chunk.candidates is None
        and chunk.usageMetadata is None
        and chunk.promptFeedback is None
        and chunk.usage_metadata is NOTHING
        and chunk.prompt_feedback is NOTHING
    )


def is_known(chunk: Chunk) -> bool:
    """Return whether a chunk has anything of this protocol."""
    return chunk.error is not NOTHING or is_answer(chunk)


decode_chunk: Final = _json.typed_decoder(Chunk)


def _chunk_of(fields: Mapping[str, Any]) -> Any:
    """Return a chunk of one part with these fields that says nothing else but counts and what each chunk says of the
    response.
    """
    content = narrowed(Content, {"parts": one(narrowed(Part, fields, is_bare=True)), "role": ...}, is_bare=True)
    candidate = narrowed(Candidate, {"content": content, "index": ...}, is_bare=True)
    said = {"usageMetadata": ..., "modelVersion": ..., "createTime": str | None, "responseId": ...}
    return narrowed(Chunk, {"candidates": one(candidate), **said}, is_bare=True)


_PLAIN_CALL: Final = narrowed(FunctionCall, {"id": ..., "name": str, "args": Raw}, is_bare=True)
#: A chunk that lets text or thinking grow.
PlainChunk: Final = _chunk_of({"text": str, "thought": ...})
#: A chunk with a whole call.
CallChunk: Final = _chunk_of({"functionCall": _PLAIN_CALL, "thoughtSignature": ..., "thought_signature": ...})
decode_plain_chunk: Final[Callable[[bytes], Any]] = _json.typed_decoder(PlainChunk)
decode_call_chunk: Final[Callable[[bytes], Any]] = _json.typed_decoder(CallChunk)
decode_call: Final = _json.typed_decoder(FunctionCall)
decode_pieces: Final = _json.typed_decoder(list[PartialArgument])


def camel_key(key: str) -> str:
    """Return a key in camelCase: `finish_reason` is `finishReason`."""
    return _SNAKE.sub(lambda found: found[1].upper(), key) if "_" in key else key


def camel(fields: dict[str, Json]) -> dict[str, Json]:
    """Return an object with its own keys in camelCase; a camelCase key wins over its snake_case twin."""
    return {camel_key(key): value for key, value in fields.items() if "_" in key} | {
        key: value for key, value in fields.items() if "_" not in key
    }


def read_media(fields: Fields) -> Media | None:
    """Return the media of a part with `inlineData` or `fileData`, or None if it has neither, or an incomplete one."""
    for key, field in (("inlineData", "data"), ("fileData", "fileUri")):
        value = read_fields(fields.get(key))
        if value is None:
            continue
        named = {camel_key(name): inner for name, inner in value.items()}
        content, mime = read_text(named.get(field)), read_text(named.get("mimeType")) or None
        if not content:
            continue
        data, url = (content, None) if key == "inlineData" else (None, content)
        told = told_type(with_data(Media("document", mime, data, url))) or type_of_name(url or "")
        kind = "video" if is_video_page(url) else media_kind(told)
        return Media(kind, mime, data, url, make_native(NAME, fields, key))
    return None


#: Before a seal of another provider, so that it is base64 here and its own text again in the next request.
_WRAPPED: Final = b"dragoman seal: "
_WRAPPED_TEXT: Final = b64encode(_WRAPPED).decode()


def render_seal(signature: str) -> str:
    """Return a `thoughtSignature`, which must be standard base64: foreign signatures that are not are wrapped."""
    try:
        is_exact = b64encode(b64decode(signature, validate=True)).decode() == signature
        if signature and is_exact and not signature.startswith(_WRAPPED_TEXT):
            return signature
    except ValueError:
        pass
    return b64encode(_WRAPPED + signature.encode("utf-8", "replace")).decode()


def parse_seal(signature: str) -> str:
    """Return the signature that `render_seal` was given."""
    if not signature.startswith(_WRAPPED_TEXT):
        return signature
    try:
        return b64decode(signature, validate=True)[len(_WRAPPED) :].decode()
    except ValueError:
        return signature


def camel_fields(fields: Fields) -> Fields:
    """Return fields with their keys in camelCase; a twin that says something else keeps its own key, as unknown."""
    if "_" not in "".join(fields):
        return fields
    told: Fields = {}
    for key, value in fields.items():
        camel = camel_key(key)
        told[camel if fields.get(camel, value) == value else key] = value
    return told


def model_path(model: str) -> str:
    """Return the path of a model under the base URL. Nothing in the name ends the path or begins a query."""
    return f"/models/{quote(model.removeprefix('models/'), safe='-._~/@', errors='replace')}"
