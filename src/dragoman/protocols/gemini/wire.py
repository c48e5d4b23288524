"""The JSON of Gemini's generateContent that we read: minimal Structs for well-formed chunks, and how odd ones fit in.

Spec: https://ai.google.dev/api/generate-content (read 2026-11-21); streamed arguments (`partialArgs`) are Vertex AI's.
Keys come in camelCase or, proto JSON allows it, in snake_case: the Structs hold both spellings of what stands beside
hot fields. A chunk that does not fit is rewritten into one that does (`loosen_chunk`), each oddity a deviation.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

import msgspec

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.fields import Fields, make_native, read_fields, read_text
from dragoman.types import Media, StopReason

#: Takes a deviation's code, its place and what was seen.
Deviate: TypeAlias = Callable[[str, str, object], None]

NAME: Final = "gemini-generate"
NOTHING: Final = Raw(b"")

#: finishReason → ours; what is not here is "other".
REASONS: Final[dict[str, StopReason]] = {
    "STOP": "stop", "MAX_TOKENS": "length", "SAFETY": "content_filter", "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter", "PROHIBITED_CONTENT": "content_filter", "SPII": "content_filter",
    "IMAGE_SAFETY": "content_filter", "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter", "MODEL_ARMOR": "content_filter", "LANGUAGE": "other", "OTHER": "other",
    "NO_IMAGE": "other", "IMAGE_OTHER": "other", "MALFORMED_RESPONSE": "other",
}  # fmt: skip
#: finishReasons with which the response failed.
FAILED_REASONS: Final = frozenset(
    {"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE"}
)
UNSPECIFIED: Final = frozenset({"FINISH_REASON_UNSPECIFIED", "BLOCK_REASON_UNSPECIFIED", "BLOCKED_REASON_UNSPECIFIED"})
#: The part of the answer that `text` and `functionCall` are not; each is kept whole.
KNOWN_PARTS: Final = frozenset({"executableCode", "codeExecutionResult", "toolCall", "toolResponse"})
#: Signatures that stand in for a missing one, as https://ai.google.dev/gemini-api/docs/thought-signatures has them.
DUMMY_SIGNATURES: Final = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")

_SNAKE: Final = re.compile(r"_([a-z0-9])")


class PartialArgument(msgspec.Struct, gc=False):
    """One piece of streamed arguments: a value, or text that grows while `willContinue`."""

    jsonPath: str = ""
    stringValue: str | None = None
    numberValue: Raw = NOTHING
    boolValue: bool | None = None
    nullValue: Raw = NOTHING
    willContinue: bool | None = None


class FunctionCall(msgspec.Struct, gc=False):
    """`functionCall` of a part."""

    id: str | None = None
    name: str | None = None
    args: Raw = NOTHING
    partialArgs: list[PartialArgument] | None = None
    willContinue: bool | None = None
    partial_args: Raw = NOTHING
    will_continue: Raw = NOTHING


class Part(msgspec.Struct, gc=False):
    """A part of the answer; one that has neither text nor a call is read by its keys."""

    text: str | None = None
    thought: bool | None = None
    thoughtSignature: str | None = None
    functionCall: FunctionCall | None = None
    thought_signature: str | None = None


class Content(msgspec.Struct, gc=False):
    """`content` of a candidate."""

    parts: list[Part] | None = None


class Candidate(msgspec.Struct, gc=False):
    """An entry of `candidates`."""

    content: Content | None = None
    finishReason: str | None = None
    index: int | None = None
    finish_reason: str | None = None


class UsageMetadata(msgspec.Struct, gc=False):
    """Tokens so far. The prompt's count includes cached ones, the candidates' count excludes thoughts."""

    promptTokenCount: int | None = None
    candidatesTokenCount: int | None = None
    thoughtsTokenCount: int | None = None
    cachedContentTokenCount: int | None = None
    toolUsePromptTokenCount: int | None = None


class PromptFeedback(msgspec.Struct, gc=False):
    """Why there are no candidates."""

    blockReason: str | None = None


class Chunk(msgspec.Struct, gc=False):
    """One event of a stream, or a whole response."""

    candidates: list[Candidate] | None = None
    usageMetadata: UsageMetadata | None = None
    promptFeedback: PromptFeedback | None = None
    error: Raw = NOTHING
    response: Raw = NOTHING
    usage_metadata: Raw = NOTHING
    prompt_feedback: Raw = NOTHING


class _RawContent(msgspec.Struct, gc=False):
    parts: list[dict[str, Raw]] | None = None


class _RawCandidate(msgspec.Struct, gc=False):
    content: _RawContent | None = None


class RawChunk(msgspec.Struct, gc=False):
    """A chunk with its parts as fields, for those of their kinds that `Part` does not have."""

    candidates: list[_RawCandidate] | None = None


decode_chunk: Final = _json.typed_decoder(Chunk)
decode_raw_chunk: Final = _json.typed_decoder(RawChunk)
decode_call: Final = _json.typed_decoder(FunctionCall)


def camel_key(key: str) -> str:
    """`finish_reason` → `finishReason`."""
    return _SNAKE.sub(lambda found: found[1].upper(), key) if "_" in key else key


def camel(fields: dict[str, Json]) -> dict[str, Json]:
    """An object with its own keys in camelCase; a camelCase key stands over its snake_case twin."""
    return {camel_key(key): value for key, value in fields.items() if "_" in key} | {
        key: value for key, value in fields.items() if "_" not in key
    }


def media_kind(mime: str | None) -> Literal["image", "audio", "video", "document"]:
    """What a MIME type holds; what is unknown is a document."""
    match (mime or "").partition("/")[0]:
        case "image":
            return "image"
        case "audio":
            return "audio"
        case "video":
            return "video"
        case _:
            return "document"


def read_media(fields: Fields) -> Media | None:
    """The media of a part with `inlineData` or `fileData`; None when it has neither, or without what they need."""
    for key, field in (("inlineData", "data"), ("fileData", "fileUri")):
        value = read_fields(fields.get(key))
        if value is None:
            continue
        named = {camel_key(name): inner for name, inner in value.items()}
        content, mime = read_text(named.get(field)), read_text(named.get("mimeType")) or None
        if not content:
            continue
        data, url = (content, None) if key == "inlineData" else (None, content)
        return Media(media_kind(mime), mime, data, url, make_native(NAME, fields, key))
    return None


# ---------------------------------------------------------------- what does not fit


def loosen_chunk(value: dict[str, Json], deviate: Deviate, clean_text: Callable[[str], str]) -> bytes:
    """A chunk as JSON that fits `Chunk`: both spellings of keys, other types where their meaning is sure.

    Args:
        clean_text: takes text in its order and gives text without half surrogate pairs.
    """
    if any("_" in key for key in value):
        deviate("sibling-key", "chunk", ", ".join(key for key in value if "_" in key))
    value = camel(value)
    chunk: dict[str, Json] = {
        key: value[key] for key in ("responseId", "modelVersion", "createTime") if isinstance(value.get(key), str)
    }
    if value.get("error") is not None:
        chunk["error"] = _json.to_lenient_text(value["error"])  # as text, for its depth is unknown
    candidates = _list(value.get("candidates"), "candidates", deviate)
    if candidates:
        chunk["candidates"] = [
            _loosen_candidate(camel(candidate), deviate, clean_text)
            for candidate in candidates
            if isinstance(candidate, dict)
        ]
    if isinstance(value.get("usageMetadata"), dict):
        chunk["usageMetadata"] = loosen_usage(value["usageMetadata"], deviate)
    if isinstance(value.get("promptFeedback"), dict):
        chunk["promptFeedback"] = loosen_feedback(value["promptFeedback"], deviate)
    return _json.encode(chunk)


def loosen_usage(usage: dict[str, Json], deviate: Deviate) -> UsageMetadata:
    """Counts with keys in either spelling."""
    return UsageMetadata(
        **{
            name: _count(count, name, deviate)
            for name, count in camel(usage).items()
            if name in UsageMetadata.__struct_fields__
        }
    )


def loosen_feedback(feedback: dict[str, Json], deviate: Deviate) -> PromptFeedback:
    """Feedback with keys in either spelling."""
    return PromptFeedback(_text(camel(feedback).get("blockReason"), "blockReason", deviate))


def _loosen_candidate(candidate: dict[str, Json], deviate: Deviate, clean_text: Callable[[str], str]) -> Json:
    loose: dict[str, Json] = {
        "finishReason": _text(candidate.get("finishReason"), "finishReason", deviate),
        "index": _count(candidate.get("index"), "index", deviate),
    }
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, dict) else content
    if isinstance(parts, str):
        deviate("wrong-type", "content.parts", "a string")
        parts = [{"text": parts}]
    loose["content"] = {
        "parts": [
            _loosen_part(camel(part), deviate, clean_text)
            for part in _list(parts, "content.parts", deviate)
            if isinstance(part, dict)
        ]
    }
    return loose


def _loosen_part(part: dict[str, Json], deviate: Deviate, clean_text: Callable[[str], str]) -> Json:
    loose: dict[str, Json] = {}
    for key, value in part.items():
        if value is None:
            continue
        if key == "text":
            text = _text(value, "part.text", deviate)
            loose[key] = None if text is None else clean_text(text)
        elif key == "thought":
            loose[key] = value is True or str(value).lower() == "true"
        elif key == "thoughtSignature":
            loose[key] = _text(value, "part.thoughtSignature", deviate)
        elif key == "functionCall" and isinstance(value, dict):
            loose[key] = loosen_call(value, deviate)
        else:
            text = _json.to_lenient_text(value)
            if isinstance(_json.decode(text), Malformed):
                deviate("wrong-type", f"part.{key}", "not JSON")
            else:
                loose[key] = Raw(text.encode())
    return loose


def loosen_call(call: dict[str, Json], deviate: Deviate) -> dict[str, Json]:
    """A function call's fields as they fit `FunctionCall`."""
    if any("_" in key for key in call):
        deviate("sibling-key", "functionCall", ", ".join(key for key in call if "_" in key))
    call = camel(call)
    loose: dict[str, Json] = {key: _text(call.get(key), f"functionCall.{key}", deviate) for key in ("id", "name")}
    if "args" in call:
        text = _json.to_lenient_text(call["args"])
        # what is not JSON (NaN) goes on as text, and is refused where the call is settled
        loose["args"] = text if isinstance(_json.decode(text), Malformed) else Raw(text.encode())
    pieces = call.get("partialArgs")
    if isinstance(pieces, list):
        loose["partialArgs"] = [_loosen_piece(camel(piece), deviate) for piece in pieces if isinstance(piece, dict)]
    if call.get("willContinue") is not None:
        loose["willContinue"] = bool(call["willContinue"])
    return loose


def _loosen_piece(piece: dict[str, Json], deviate: Deviate) -> dict[str, Json]:
    loose: dict[str, Json] = {
        key: _text(piece.get(key), f"partialArgs.{key}", deviate) or "" for key in ("jsonPath", "stringValue")
    }
    if piece.get("stringValue") is None:
        del loose["stringValue"]
    number = piece.get("numberValue")
    if isinstance(number, int | float):
        loose["numberValue"] = Raw(_json.to_lenient_text(number).encode())
    if isinstance(piece.get("boolValue"), bool):
        loose["boolValue"] = piece["boolValue"]
    if "nullValue" in piece:
        loose["nullValue"] = None
    loose["willContinue"] = bool(piece.get("willContinue"))
    return loose


def _list(value: Json, where: str, deviate: Deviate) -> list[Json]:
    if isinstance(value, dict):
        deviate("wrong-type", where, "an object")
        return [value]
    return value if isinstance(value, list) else []


def _text(value: Json, where: str, deviate: Deviate) -> str | None:
    if value is None or isinstance(value, str):
        return value
    deviate("wrong-type", where, type(value).__name__)
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _count(value: Json, where: str, deviate: Deviate) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    deviate("usage-place", where, type(value).__name__)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 19 else None
