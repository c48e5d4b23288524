"""The unmodelled parts of an answer: grounding, citations, ratings, log probabilities, and all else.

They are kept at their path in the response and come back in the same protocol. Frames without them cost nothing: their
Structs refuse unknown fields of candidates and parts, and what they refuse comes here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.bounds import AnswerBounds
from dragoman.codec.framing.entries import check_entries
from dragoman.codec.framing.large_frames import TooLarge, wide_object
from dragoman.codec.json_fields import Fields, read_text, without_nulls
from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.parts.unread_arguments import fields_at, note_astray, tell_unread
from dragoman.codec.repeated_keys import without_value
from dragoman.deviations import clip
from dragoman.protocols.gemini.wire import (
    KNOWN_PARTS,
    NAME,
    NOTHING,
    Candidate,
    Content,
    FunctionCall,
    Part,
    UsageMetadata,
    camel_key,
    note_unread,
    note_unread_name,
    read_media,
    says_nothing,
)
from dragoman.types import Media, Native, Opaque

_PART: Final = frozenset(Part.__struct_fields__)
_CONTENT: Final = frozenset(Content.__struct_fields__)
_CANDIDATE: Final = frozenset(Candidate.__struct_fields__)
_USAGE: Final = frozenset(UsageMetadata.__struct_fields__) - {"toolUsePromptTokenCount"}
#: Of the whole response: modelled, or read where it stands.
_RESPONSE: Final = frozenset({"candidates", "usageMetadata", "modelVersion", "responseId", "error", "response"})
#: Of a chunk: read, or news of the response. A client's library writes which calls it ran before.
RAN: Final = "automaticFunctionCallingHistory"
_CHUNK: Final = _RESPONSE | {
    "usage_metadata", "promptFeedback", "prompt_feedback", "model_version", "response_id", RAN,
}  # fmt: skip


_LONG: Final = 4096  # bytes of a frame that are worth a look for what need not be kept
_NO_PARTS: Final = Raw(b"[]")
_decode_fields = _json.typed_decoder(Fields)
_RAW: Final = (Raw, NOTHING)
_Counts: Any = msgspec.defstruct(
    "_Counts", [(name, *_RAW) for name in sorted(_USAGE)], forbid_unknown_fields=True, gc=False
)
_Modelled: Any = msgspec.defstruct(
    "_Modelled",
    [("usageMetadata", _Counts | None, None), *((name, *_RAW) for name in sorted(_RESPONSE - {"usageMetadata"}))],
    forbid_unknown_fields=True, gc=False,
)  # fmt: skip
#: A frame in which nothing is told but what is modelled.
_decode_modelled: Final[Callable[[bytes], Any]] = _json.typed_decoder(_Modelled)
_decode_objects = _json.typed_decoder(list[Fields])
_decode_entries = _json.typed_decoder(list[Raw])


class Split(NamedTuple):
    """A frame without its unmodelled fields, and these: of candidates by place, of parts by that of their candidate and
    their own.

    `contents`: those of the candidates' contents, which are not kept.
    """

    frame: bytes
    candidates: dict[int, Fields]
    parts: dict[tuple[int, int], Fields]
    contents: dict[int, Fields]


def split(frame: bytes, bounds: AnswerBounds) -> Split | None:
    """Split a frame, or return None if its candidates are no objects with lists of parts.

    Raises:
        TooLarge: a candidate has more parts than the answer may have.
    """
    if b'"candidates"' not in frame or isinstance(top := _decode_fields(frame), Malformed) or "candidates" not in top:
        return None
    candidates = _decode_objects(top["candidates"])
    if isinstance(candidates, Malformed):
        return None
    rests: dict[int, Fields] = {}
    contents: dict[int, Fields] = {}
    rests_of_parts: dict[tuple[int, int], Fields] = {}
    for place, candidate in enumerate(candidates):
        content = _decode_fields(candidate.get("content", Raw(b"{}")))
        content = content if isinstance(content, Malformed) else without_nulls(content)
        told = _NO_PARTS if isinstance(content, Malformed) else content.get("parts") or _NO_PARTS
        if len(told) > 2 * bounds.parts and not isinstance(entries := _decode_entries(told), Malformed):
            check_entries(entries, bounds)
        parts = _decode_objects(told)
        if isinstance(content, Malformed) or isinstance(parts, Malformed):
            return None
        for number, part in enumerate(parts):
            if rest := _take_rest(part, _PART):
                rests_of_parts[place, number] = rest
        contents[place] = _take_rest(content, _CONTENT)
        candidate["content"] = _json.raw({"parts": parts})
        rests[place] = _take_rest(candidate, _CANDIDATE)
    top["candidates"] = _json.raw(candidates)
    return Split(_json.encode(top), rests, rests_of_parts, contents)


class Around:
    """The surroundings of a call or a part that has no arguments, or no name, which may belong to it.

    A frame is split once, however many calls there are.
    """

    __slots__ = ("_assembly", "_entries", "_frame", "_hides_name", "_is_told", "_place")

    def __init__(self, frame: bytes, place: int, assembly: Assembly) -> None:
        """Create it. `place`: that of the candidate in the frame."""
        self._assembly = assembly
        self._frame = frame
        self._place = place
        self._entries: dict[str, Json] | None = None
        self._hides_name = frame.find(b"ame") >= 0 or frame.find(b"tool") >= 0
        self._is_told = False

    def note(self, call: FunctionCall, number: int, rest: Fields) -> None:
        """Record a call's unread fields. `number`: the place of its part, `rest`: fields beside it."""
        if says_nothing(call):
            if self._entries is None:
                note_astray(self._assembly, fields_at(self._frame))
            note_unread(call, self._fields(number), beside=rest)
        if call.name and (other := read_text(rest.get("name"))) not in ("", call.name):
            note_unread_name(call, {"tool": other})  # there are two
        elif not call.name and self._hides_name:
            note_unread_name(call, self._fields(number))

    def tell(self) -> None:
        """Name what stands beside the candidates of the frame."""
        if not self._is_told:
            self._is_told = True
            tell_unread_beside(self._frame, self._assembly)

    def _fields(self, number: int) -> dict[str, Json]:
        if self._entries is None:
            self._entries = fields_at(self._frame, "candidates", self._place, "content")
        return _call_in(self._entries, number)


def _call_in(content: dict[str, Json], number: int) -> dict[str, Json]:
    parts = content.get("parts")
    part = parts[number] if isinstance(parts, list) and number < len(parts) else None
    call = part.get("functionCall") if isinstance(part, dict) else None
    return call if isinstance(call, dict) else {}


def without_arguments(frame: bytes, calls: Sequence[FunctionCall]) -> bytes:
    """Return a frame that is kept for its other fields, without the long arguments of its first call."""
    return without_value(frame, b'"args":', calls[0].args) if calls and len(frame) >= _LONG else frame


def tell_unread_beside(frame: bytes, assembly: Assembly, *, told: int | None = None) -> None:
    """Name what stands beside candidates and may be their content, or a call.

    Args:
        told: the calls that are read in the frame; without more of them nothing is named.
    """
    if told is not None and frame.count(b"unction") <= told and frame.find(b"ool") < 0:
        return
    if type(_decode_modelled(frame)) is not Malformed:
        return  # nothing, as most often
    top = _decode_fields(frame)
    if not isinstance(top, Malformed):
        tell_unread(assembly, {key: value for key, value in top.items() if key not in _CHUNK}, "chunk")


def note_rest(rest: Fields, assembly: Assembly, *, is_call: bool) -> None:
    """Record a part's other fields while a call has no arguments: they may be its own.

    `rest`: see `split`; `is_call`: a call under another spelling in it is read as the part.
    """
    if rest and assembly.calls.may_lack():
        known = KNOWN_PARTS | {"functionCall"} if is_call else KNOWN_PARTS
        tell_unread(assembly, {key: value for key, value in rest.items() if key not in known}, "part")


def other_part(rest: Fields, signature: str, *, thought: bool | None) -> Media | Opaque:
    """Return a part that is neither text nor a call: media, or what only this protocol knows."""
    fields = dict(rest)
    if thought is not None:
        fields["thought"] = _json.raw(thought)
    if signature:
        fields["thoughtSignature"] = _json.raw(signature)
    media = None if thought else read_media(fields)
    return Opaque(NAME, _json.raw(fields)) if media is None else media


def _take_rest(fields: Fields, known: frozenset[str]) -> Fields:
    """Remove the unknown fields from an object and return them, without nulls."""
    rest = {key: value for key, value in fields.items() if key not in known}
    for key in rest:
        del fields[key]
    return _kept(rest, frozenset())


def _kept(fields: Fields, known: frozenset[str]) -> Fields:
    return {
        camel: _json.compact(value)
        for key, value in fields.items()
        if key not in known and (camel := camel_key(key)) not in known and bytes(value) != b"null"
    }


class Kept:
    """Collects them over the frames of one response.

    `first` and `last`: the frame with which the response began, and the last one whose usage was new.
    """

    __slots__ = ("_candidate", "_others", "first", "last")

    def __init__(self) -> None:
        self._candidate: dict[str, list[Raw]] = {}
        self._others: list[bytes] = []
        self.first = b""
        self.last = b""

    def add_rest(self, found: Split, place: int, assembly: Assembly) -> None:
        """Take a chunk's fields beside the content of its candidate, and name those not kept, or that may be a call.

        Raises:
            TooLarge: the candidates have more fields than an object may have.
        """
        fields, inner = found.candidates[place], found.contents[place]
        tell_unread(assembly, fields, f"candidates[{place}]")
        for key in inner:
            assembly.deviate("unread-field", f"candidates[{place}].content.{clip(key)}")
        tell_unread(assembly, inner, f"candidates[{place}].content")
        for key, value in fields.items():
            pieces = self._candidate.setdefault(key, [])
            if not pieces or pieces[-1] != value:
                pieces.append(value)
        if len(self._candidate) > assembly.bounds.members:
            raise TooLarge(wide_object(assembly.bounds.members))

    def native(self, assembly: Assembly) -> Native | None:
        """Return all of it, at the end of the response. Name what may be the answer, or calls."""
        candidate = {key: _join_all(pieces) for key, pieces in self._candidate.items()}
        response: Fields = {}
        usage: Fields = {}
        for frame in (self.first,) if self.last is self.first else (self.first, self.last):
            if type(_decode_modelled(frame)) is not Malformed:
                continue
            top = _decode_fields(frame)
            if isinstance(top, Malformed):
                continue
            response |= _kept(top, _RESPONSE)
            counts = _decode_fields(top.get("usageMetadata", top.get("usage_metadata", Raw(b"{}"))))
            usage |= {} if isinstance(counts, Malformed) else _kept(counts, _USAGE)
        tell_unread(assembly, {key: response[key] for key in response if key not in _CHUNK}, "chunk")
        if usage:
            response["usageMetadata"] = _json.raw(usage)
        if candidate:
            response["candidates"] = _json.raw([candidate])
        return Native(NAME, response) if response else None


def _join_all(pieces: list[Raw]) -> Raw:
    if len(pieces) == 1:
        return pieces[0]
    value: Json = None
    for piece in pieces:
        said = _json.decode(bytes(piece))
        if not isinstance(said, Malformed):
            value = _join(value, said)
    return _json.raw(value)


def _join(earlier: Json, later: Json) -> Json:
    """Join two chunks' values of one field.

    Objects are joined by key. A list goes on, unless it repeats everything, or rates the same categories again.
    Otherwise the later value counts.
    """
    if isinstance(earlier, dict) and isinstance(later, dict):
        for key, value in later.items():
            earlier[key] = _join(earlier[key], value) if key in earlier else value
        return earlier
    if not isinstance(earlier, list) or not isinstance(later, list) or not later:
        return earlier if later in ({}, []) and earlier else later
    if later[: len(earlier)] == earlier or (isinstance(later[0], dict) and "category" in later[0]):
        return later
    earlier.extend(later)
    return earlier
