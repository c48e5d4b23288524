"""Rewrite chunks that do not fit their Structs into ones that do; each oddity is a deviation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import msgspec

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.codec.containers import Place, oddity_of, straighten
from dragoman.codec.parts import torn_frames
from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.parts.unread_arguments import lose_unread
from dragoman.protocols.gemini.wire import CALL_FIELDS, Part, PartialArgument, PromptFeedback, UsageMetadata, camel

_HEAD: Final = ("responseId", "modelVersion", "createTime")
_CHUNK: Final = frozenset({*_HEAD, "candidates", "usageMetadata", "promptFeedback", "error", "response"})
_CANDIDATE: Final = frozenset({"content", "finishReason", "index"})
_PIECE: Final = frozenset(PartialArgument.__struct_fields__)
_CALL: Final = Place(marks=frozenset({"name", "args", "partialArgs", "partial_args", "id"}))
_PARTS: Final = Place({"functionCall": _CALL, "function_call": _CALL}, is_list=True)
_CANDIDATES: Final = Place({"content": Place({"parts": _PARTS}, marks=frozenset({"parts"}))}, is_list=True)
#: What belongs where in a chunk.
PLACES: Final = {"candidates": _CANDIDATES}
#: Objects that a response is wrapped in.
ENVELOPES: Final = ("response", "data", "result", "body", "output", "completion")
#: Keys of which one stands in each response and chunk.
ANSWERED: Final = frozenset({"candidates", "usageMetadata", "promptFeedback", "usage_metadata", "prompt_feedback"})
#: Takes a deviation's code, its place and what was seen.
Deviate: TypeAlias = Callable[[str, str, object], None]


def straighten_chunk(value: dict[str, Json], assembly: Assembly) -> dict[str, Json]:
    """Return a chunk with its objects and lists normalised. What cannot be read may have been part of any open call."""
    value = straighten(value, PLACES, assembly.deviate)
    torn_frames.check_places(assembly, value, PLACES)
    if any(isinstance(part.get("text"), dict | list) and part["text"] for part in _parts_of(value)):
        assembly.calls.has_astray = True  # it may be the arguments of a call beside it
        lose_unread(assembly, "part.text")
    return value


def _parts_of(chunk: dict[str, Json]) -> Iterator[dict[str, Json]]:
    candidates = chunk.get("candidates")
    for candidate in candidates if isinstance(candidates, list) else ():
        content = candidate.get("content") if isinstance(candidate, dict) else None
        parts = content.get("parts") if isinstance(content, dict) else None
        yield from (part for part in (parts if isinstance(parts, list) else ()) if isinstance(part, dict))


def read_chunk_leniently(value: dict[str, Json], deviate: Deviate, clean_text: Callable[[str], str]) -> bytes:
    """Return a chunk as JSON that fits `Chunk`: both spellings of keys, other types if their meaning is certain.

    Args:
        clean_text: takes text in its order and returns text without lone surrogates.
    """
    if any("_" in key for key in value):
        deviate("sibling-key", "chunk", ", ".join(key for key in value if "_" in key))
    value = camel(value)
    chunk = _rest(value, _CHUNK) | {key: value[key] for key in _HEAD if isinstance(value.get(key), str)}
    if value.get("error") is not None:
        chunk["error"] = _json.to_lenient_text(value["error"])  # as text, for its depth is unknown
    candidates = _list(value.get("candidates"), "candidates", deviate)
    if candidates:
        chunk["candidates"] = [
            _read_candidate_leniently(camel(candidate), deviate, clean_text)
            for candidate in candidates
            if isinstance(candidate, dict)
        ]
    if isinstance(value.get("usageMetadata"), dict):
        usage = value["usageMetadata"]
        counts = msgspec.structs.asdict(read_usage_leniently(usage, deviate))
        chunk["usageMetadata"] = _rest(camel(usage), frozenset(counts)) | counts
    if isinstance(value.get("promptFeedback"), dict):
        feedback = value["promptFeedback"]
        reason = read_feedback_leniently(feedback, deviate).blockReason
        chunk["promptFeedback"] = _rest(camel(feedback), frozenset()) | {"blockReason": reason}
    return _json.encode(chunk)


def _rest(fields: dict[str, Json], known: frozenset[str]) -> dict[str, Json]:
    """Return the unknown fields, as far as they are JSON."""
    rest: dict[str, Json] = {}
    for key, value in fields.items():
        if key not in known and value is not None:
            text = _json.to_lenient_text(value)
            if not isinstance(_json.decode(text), Malformed):
                rest[key] = Raw(text.encode())
    return rest


def read_usage_leniently(usage: dict[str, Json], deviate: Deviate) -> UsageMetadata:
    """Return counts with keys in either spelling."""
    return UsageMetadata(
        **{
            name: _count(count, name, deviate)
            for name, count in camel(usage).items()
            if name in UsageMetadata.__struct_fields__ and name != "totalTokenCount"
        }
    )


def read_feedback_leniently(feedback: dict[str, Json], deviate: Deviate) -> PromptFeedback:
    """Return feedback with keys in either spelling."""
    return PromptFeedback(_word(camel(feedback).get("blockReason"), "blockReason", deviate))


def _read_candidate_leniently(candidate: dict[str, Json], deviate: Deviate, clean_text: Callable[[str], str]) -> Json:
    loose = _rest(candidate, _CANDIDATE) | {
        "finishReason": _word(candidate.get("finishReason"), "finishReason", deviate),
        "index": _count(candidate.get("index"), "index", deviate),
    }
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, dict) else content
    if isinstance(parts, str):
        deviate(oddity_of(parts), "content.parts", "a string")
        parts = [{"text": parts}]
    beside = _rest(content, frozenset({"parts", "role"})) if isinstance(content, dict) else {}
    loose["content"] = beside | {
        "parts": [
            _read_part_leniently({"text": part} if isinstance(part, str) else camel(part), deviate, clean_text)
            for part in _list(parts, "content.parts", deviate)
            if isinstance(part, dict | str)
        ]
    }
    return loose


def _read_part_leniently(part: dict[str, Json], deviate: Deviate, clean_text: Callable[[str], str]) -> Json:
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
            loose[key] = read_call_leniently(value, deviate)
        else:
            text = _json.to_lenient_text(value)
            if isinstance(_json.decode(text), Malformed):
                deviate("wrong-type", f"part.{key}", "not JSON")
            else:
                loose[key] = Raw(text.encode())
    return loose


def read_call_leniently(call: dict[str, Json], deviate: Deviate) -> dict[str, Json]:
    """Return a function call's fields in the form of `FunctionCall`."""
    if any("_" in key for key in call):
        deviate("sibling-key", "functionCall", ", ".join(key for key in call if "_" in key))
    call = camel(call)
    loose: dict[str, Json] = {"id": _text(call.get("id"), "functionCall.id", deviate)}
    name = call.get("name")
    if isinstance(name, str):
        loose["name"] = name
    elif name is not None:
        deviate("wrong-type", "functionCall.name", type(name).__name__)
        loose["name?"] = name
    for key in ("args", "arguments", "parameters"):
        if key in call:
            text = _json.to_lenient_text(call[key])
            # what is not JSON (NaN) goes on as text, and is refused where the call is settled
            loose[key] = text if isinstance(_json.decode(text), Malformed) else Raw(text.encode())
    pieces = call.get("partialArgs")
    if isinstance(pieces, list) and all(is_piece(piece) for piece in pieces):
        loose["partialArgs"] = read_pieces_leniently(pieces, deviate)
    elif pieces:
        loose["partialArgs?"] = _json.to_lenient_text(pieces)
    loose |= {f"{key}?" if key == "unread" else key: item for key, item in _rest(call, CALL_FIELDS).items()}
    if call.get("willContinue") is not None:
        loose["willContinue"] = _flag(call["willContinue"], "functionCall.willContinue", deviate)
    return loose


def is_piece(value: Json) -> bool:
    """Return whether a value can be read as a piece of streamed arguments, with all its content in place."""
    piece = camel(value) if isinstance(value, dict) else {}
    return bool(piece) and piece.keys() <= _PIECE and not isinstance(piece.get("stringValue"), list | dict | bool)


def read_pieces_leniently(pieces: Json, deviate: Deviate) -> list[Json]:
    """Return pieces of streamed arguments in the form of `PartialArgument`."""
    found = _list(pieces, "partialArgs", deviate)
    odd = [key for piece in found if isinstance(piece, dict) for key in piece if "_" in key]
    if odd:
        deviate("sibling-key", "partialArgs", ", ".join(odd))
    return [_read_piece_leniently(camel(piece), deviate) for piece in found if isinstance(piece, dict)]


def _read_piece_leniently(fields: dict[str, Json], deviate: Deviate) -> dict[str, Json]:
    piece: dict[str, Json] = {
        "jsonPath": _text(fields.get("jsonPath"), "partialArgs.jsonPath", deviate) or "",
        "stringValue": _text(fields.get("stringValue"), "partialArgs.stringValue", deviate),
        "willContinue": _flag(fields.get("willContinue"), "partialArgs.willContinue", deviate),
    }
    number, flag = fields.get("numberValue"), fields.get("boolValue")
    if number is not None:
        # as text it may be a number that the schema tells
        piece["numberValue"] = Raw(_json.to_lenient_text(number).encode())
    if isinstance(flag, bool):
        piece["boolValue"] = flag
    elif flag is not None:
        piece["numberValue"] = Raw(_json.to_lenient_text(flag).encode())
    if "nullValue" in fields:
        piece["nullValue"] = None
    return piece


def _list(value: Json, where: str, deviate: Deviate) -> list[Json]:
    if isinstance(value, dict):
        deviate(oddity_of(value), where, "an object")
        return [value]
    return value if isinstance(value, list) else []


def _text(value: Json, where: str, deviate: Deviate) -> str | None:
    if value is None or isinstance(value, str):
        return value
    deviate("wrong-type", where, type(value).__name__)
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _flag(value: Json, where: str, deviate: Deviate) -> bool:
    if value is not None and not isinstance(value, bool):
        deviate("wrong-type", where, type(value).__name__)
    return bool(value)


def _word(value: Json, where: str, deviate: Deviate) -> str | int | None:
    """Return a word, from its number in Google's enum if necessary."""
    return value if type(value) is int else _text(value, where, deviate)


def _count(value: Json, where: str, deviate: Deviate) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    deviate("usage-place", where, type(value).__name__)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 19 else None


def unrepeated(parts: list[Part], assembly: Assembly) -> list[Part]:
    """Return the parts of an answer's end without the texts and calls that tell all of it once more.

    One call without such a text may be another like the first.
    """
    assembly.said.is_whole = assembly.is_empty
    said = [part for part in parts if part.text and not part.thought]
    is_again = bool(said) and assembly.repeats_all("".join([part.text or "" for part in said]), "part.text")
    for part in said if is_again else ():
        part.text = ""
    calls = [part.functionCall for part in parts if part.functionCall is not None]
    if (is_again or len(calls) > 1) and assembly.calls.are_all(
        [("", call.name or "", _json.raw_text(call.args)) for call in calls]
    ):
        assembly.deviate("duplicate-final", "part.functionCall")
        for part in parts:
            if part.functionCall is not None:
                part.functionCall = part.thoughtSignature = None
                part.text = part.text or ""
    return parts
