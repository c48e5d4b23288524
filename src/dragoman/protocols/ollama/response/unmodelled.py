"""The unmodelled fields of an answer, such as durations and logprobs, which come back in the same protocol.

The fields of a line stand in native records by name, those of its message under `message`.
"""

from __future__ import annotations

from typing import Final

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.bounds import AnswerBounds
from dragoman.codec.containers import says_nothing
from dragoman.codec.framing.large_frames import TooLarge, wide_object
from dragoman.codec.json_fields import Fields, read_fields
from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.parts.unread_arguments import note_words, tell_unread
from dragoman.protocols.ollama.wire import (
    MODELLED,
    MODELLED_IN_MESSAGE,
    NAME,
    NOT_MODELLED,
    NOTHING,
    Line,
    decode_fields,
)
from dragoman.types import Native

_LINE: Final = MODELLED.union(NOT_MODELLED)
_SAYS_NOTHING: Final = frozenset({b"", b"null", b"[]", b"{}", b'""'})


class Kept:
    """Gathers these fields from the lines of one answer: lists grow, as JSON, otherwise the last value counts."""

    __slots__ = ("_fields", "_message", "_most")

    def __init__(self, bounds: AnswerBounds) -> None:
        self._most = bounds.members
        self._fields: dict[str, Raw | bytearray] = {}
        self._message: dict[str, Raw | bytearray] = {}

    def line(self, data: bytes) -> None:
        """Take a line's other fields."""
        fields = decode_fields(data)
        if isinstance(fields, Malformed):
            return
        _add(self._fields, fields, MODELLED)
        _add(self._message, read_fields(fields.get("message")) or {}, MODELLED_IN_MESSAGE)
        if max(len(self._fields), len(self._message)) > self._most:
            raise TooLarge(wide_object(self._most))

    def known_line(self, line: Line) -> None:
        """Take the other fields of a line without unknown ones."""
        _add(self._fields, {name: getattr(line, name) for name in NOT_MODELLED}, MODELLED)

    def native(self) -> Native | None:
        """Return all of them, or None."""
        fields = _written(self._fields)
        if self._message:
            fields["message"] = _json.raw(_written(self._message))
        return Native(NAME, fields) if fields else None


def _written(fields: dict[str, Raw | bytearray]) -> Fields:
    return {key: value if isinstance(value, Raw) else Raw(b"[" + value + b"]") for key, value in fields.items()}


def tell_unread_of(frame: bytes, value: dict[str, Json] | None, assembly: Assembly) -> None:
    """Name the unknown fields of a line that may be calls, or spellings of known ones. `value`: read leniently."""
    fields = decode_fields(frame) if value is None else value
    if isinstance(fields, Malformed):
        return
    tell_unread(assembly, {key: item for key, item in fields.items() if key not in _LINE}, "line")
    for name in ("message", "delta"):
        message = fields.get(name)
        inner = read_fields(message) if isinstance(message, Raw) else message
        if isinstance(inner, dict):
            unread = {key: item for key, item in inner.items() if not _is_read(key, item)}
            tell_unread(assembly, unread, name)
            note_words(assembly, unread, name)


def _is_read(key: str, value: Json) -> bool:
    """Return whether a field of a message is read. The texts of content in parts are."""
    is_parts = key == "content" and isinstance(value, list) and not says_nothing(value)
    return key in MODELLED_IN_MESSAGE and not is_parts


def _add(whole: dict[str, Raw | bytearray], fields: Fields, modelled: frozenset[str]) -> None:
    for key, value in fields.items():
        if key in modelled or value is NOTHING or (data := bytes(value)) in _SAYS_NOTHING:
            continue
        if data.isdigit():  # as most are
            whole[key] = Raw(data)
        elif data[:1] != b"[":
            whole[key] = _json.compact(data)
        else:
            if not isinstance(grown := whole.get(key), bytearray):  # it takes the place of anything else
                grown = whole[key] = bytearray()
            items = bytes(_json.compact(data))[1:-1]
            grown += b"," + items if grown and items else items


def kept_fields(native: Native | None) -> tuple[Fields, Fields]:
    """Return what was kept of an answer's last line, and of its message."""
    fields = dict(native.fields) if native is not None and native.protocol == NAME else {}
    return fields, read_fields(fields.pop("message", None)) or {}
