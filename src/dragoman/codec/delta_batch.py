"""Read lines of JSON that differ in a single string, as the chunks of a stream do: that string of each, at once.

Reading every line by itself costs several times as much, because the equal rest is read again and again.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Callable, Collection, Mapping
from functools import cache
from operator import itemgetter
from typing import Any, Final, Literal, final

import msgspec

from dragoman import _json

_VALUE: Final = re.compile(rb'\s*:\s*"([^"\\]*+(?:\\.[^"\\]*+)*+)"', re.DOTALL)
_BACKSLASH: Final = 0x5C
_COMMA: Final = b","[0]
_ZERO: Final = b"0"[0]
_MOST_DIGITS: Final = 15  # of a count
_COUNTED: Final = re.compile(rb":(0|[1-9][0-9]{0,14}),")
_MOST_IN_VAIN: Final = 16  # frames in a row that are learned and are not like the next

_decode_string: Final = _json.typed_decoder(str)
_decode_strings: Final = _json.typed_decoder(list[str])


def read_alike(lines: list[bytes], key: bytes) -> list[str] | None:
    """Return the string of a key in each line; None if one is empty, or they may differ in anything else.

    Args:
        lines: one JSON object each, without line ends. The first is known to be JSON; then the others are.
        key: with its quotes.
    """
    around = _around(lines[0], key)
    if around is None:
        return None
    head, tail = around
    if not (lines[-1].startswith(head) and lines[-1].endswith(tail)):
        return None
    before, behind = head[:-1], tail[1:]
    of_line: Callable[[bytes], bytes] = itemgetter(slice(len(before), -len(behind)))  # with its quotes
    written = list(map(of_line, lines))
    # nothing is left of a line that is too short, so that what is written again is longer
    if b"%b%b%b" % (before, (behind + b"\n" + before).join(written), behind) != b"\n".join(lines):
        return None
    strings = _decode_strings(b"[%b]" % b",\n".join(written))  # a string that is not closed goes on over no line end
    return strings if type(strings) is list and len(strings) == len(lines) and all(strings) else None


@final
class LastFrame:
    """The frame whose delta came last. One that differs from it in a single string adds that string, and is not parsed.

    If frames come one at a time, the next event is compared before it is framed.
    """

    __slots__ = ("_head", "_middle", "_start", "_stop", "_tail", "_tries")

    def __init__(self) -> None:
        self._head = self._middle = self._tail = b""  # `_middle`: from behind a number to the string
        self._start = self._stop = self._tries = 0

    def learn(self, frame: bytes, key: bytes, head: bytes = b"", *, counter: bytes = b"") -> None:
        """Remember a frame whose only delta is the string of a key (with its quotes).

        Args:
            head: the bytes of its event before it, with its brace, if that came alone (`BodyReader.head`).
            counter: the key, with its quotes, of a number before the string that may differ from frame to frame.
        """
        self._tries += 1
        self._head, self._tail = (self._tries <= _MOST_IN_VAIN and _around(frame, key)) or (b"", b"")
        if head and self._head:
            self._head, self._tail = head[:-1] + self._head, self._tail + b"\n\n"
        self._middle = b""
        if counter and (number := _COUNTED.match(self._head, self._head.find(counter) + len(counter))):
            self._head, self._middle = self._head[: number.start(1)], self._head[number.end(1) : -1]
            self._start, self._stop = len(self._head), 1 - len(self._tail)
            return
        self._start, self._stop = len(self._head) - 1, 1 - len(self._tail)

    def forget(self) -> None:
        """Forget it, because a frame of another kind came."""
        self._head = b""

    def read(self, frame: bytes) -> str:
        """Return the string of a frame, or of a lone event, that is like the last one.

        "" if it is empty, or anything else may differ. A string has no line end, so nothing else can stand in the
        event.
        """
        if self._head and frame.startswith(self._head) and frame.endswith(self._tail):
            start = self._start
            if self._middle:
                end = frame.find(_COMMA, start)
                count = frame[start:end]
                is_count = count.isdigit() and (count[0] != _ZERO or len(count) == 1) and len(count) <= _MOST_DIGITS
                if not is_count or not frame.startswith(self._middle, end):
                    return ""
                start = end + len(self._middle)
            text = _decode_string(frame[start : self._stop])
            if type(text) is str:
                self._tries = 0
                return text
        return ""


def _around(frame: bytes, key: bytes) -> tuple[bytes, bytes] | None:
    """Return the bytes before and behind the string of a key, without its quotes; None if the key may occur again."""
    place = frame.find(key)
    found = _VALUE.match(frame, place + len(key))
    if place < 0 or found is None or frame.find(key, place + 1) >= 0:
        return None
    start, end = found.span(1)
    head, tail = frame[:start], frame[end:]
    may_repeat = _BACKSLASH in head or _BACKSLASH in tail  # the key may be there again, written otherwise
    return None if may_repeat else (head, tail)


def narrowed(
    wire: type[msgspec.Struct],
    others: Mapping[str, Any],
    *,
    passed_over: Collection[str] = (),
    is_open: bool = False,
    is_bare: bool = False,
) -> Any:
    """Return a Struct with the fields of another, most of which must say nothing.

    Fast readers use such Structs: a field that the wire's Struct gains later is theirs at once, so no fast reader can
    forget it. An empty text says nothing, as null does.

    Args:
        wire: a Struct whose fields all have a default.
        others: the types of the fields that may say something; those whose type excludes null are required. `...`
            leaves a field as it is.
        passed_over: fields that may say anything: they are not read. For a Struct that accepts unknown fields.
        is_open: fields that no Struct knows, or that are usually null, may say something.
        is_bare: all other fields are missing, which is faster to read.
    """
    hints, own = _fields_of(wire)
    assert not others.keys() - hints.keys(), f"{wire.__name__} has no {sorted(others.keys() - hints.keys())}"
    assert not (passed_over and wire.__struct_config__.forbid_unknown_fields)
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for field in own:
        if field.name in passed_over:
            continue
        if (is_open and field.type is types.NoneType) or (is_bare and field.name not in others):
            continue
        kind = others.get(field.name, _silent(hints[field.name], field.default))
        if kind is ...:
            fields.append((field.name, hints[field.name], field.default))
        elif field.name in others and not _takes_null(kind):
            fields.append((field.name, kind))
        else:
            fields.append((field.name, kind, field.default))
    is_closed = is_bare or (wire.__struct_config__.forbid_unknown_fields and not is_open)
    return msgspec.defstruct(
        f"Narrowed{wire.__name__}", fields, gc=False, kw_only=True, forbid_unknown_fields=is_closed,
        omit_defaults=wire.__struct_config__.omit_defaults,
    )  # fmt: skip


@cache
def _fields_of(wire: type[msgspec.Struct]) -> tuple[dict[str, Any], tuple[msgspec.structs.FieldInfo, ...]]:
    """Return the types and the fields of a Struct: to evaluate its annotations is most of what `narrowed` costs."""
    return typing.get_type_hints(wire), msgspec.structs.fields(wire)


def one(kind: Any) -> Any:
    """Return the type of a list of one value of this type."""
    return types.GenericAlias(tuple, (kind,))


def many(kind: Any) -> Any:
    """Return the type of a list of values of this type, or null."""
    return types.GenericAlias(list, (kind,)) | None


def _silent(kind: Any, default: object) -> Any:
    """Return the type of a field's values that say nothing."""
    if isinstance(default, str | int):
        return Literal[default]
    return Literal[""] | None if str in typing.get_args(kind) else None


def _takes_null(kind: Any) -> bool:
    return kind is Any or kind is None or types.NoneType in typing.get_args(kind)
