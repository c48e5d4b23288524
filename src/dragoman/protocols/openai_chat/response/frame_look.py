"""Facts about a frame that are needed for each of its calls and choices, computed once."""

from __future__ import annotations

from typing import Final, final

import msgspec

from dragoman._json import Json
from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.parts.call_shapes import ASTRAY
from dragoman.codec.parts.unread_arguments import fields_at, is_unread, note_astray, tell_unread, telling
from dragoman.codec.repeated_keys import repeats_key
from dragoman.protocols.openai_chat.response.unmodelled import fields_beside
from dragoman.secret import name_alone

_FEW: Final = 8  # fields that are looked at again sooner than sorted out


def hides_call(frame: bytes) -> bool:
    """Return whether a call stands beside the choices of a frame that has calls."""
    return frame.count(b"_call") > 1 and is_unread(fields_beside(frame))


@final
class FrameLook(msgspec.Struct, eq=False):
    """Looks at one frame after the other. A frame is identified by object identity: the caller holds it."""

    _frame: bytes = b""
    _is_twice: bool | None = None
    _around: dict[str, Json] | None = None
    _beside: dict[str, Json] | None = None
    _arguments: int | None = None

    __repr__ = name_alone

    def _take(self, frame: bytes) -> None:
        if frame is not self._frame:
            self._frame = frame
            self._is_twice = self._around = self._beside = self._arguments = None

    def repeats_key(self, frame: bytes, shortened: bytes | None = None) -> bool:
        """Return whether an object in it repeats a key. `shortened`: without a long text, which is cheaper to check."""
        self._take(frame)
        if self._is_twice is None:
            self._is_twice = (shortened is None or repeats_key(shortened)) and repeats_key(frame)
        return self._is_twice

    def note_plain(self, frame: bytes) -> None:
        """Take a frame that is known to repeat no key."""
        self._take(frame)
        self._is_twice = False

    def has_plain_keys(self, frame: bytes) -> bool:
        """Return whether a frame was looked at, and repeats no key. False says nothing."""
        return frame is self._frame and self._is_twice is False

    def count_arguments(self, frame: bytes) -> int:
        """Return how often the key of arguments occurs in it."""
        self._take(frame)
        if self._arguments is None:
            self._arguments = frame.count(b'"arguments"')
        return self._arguments

    def note_astray(self, frame: bytes, assembly: Assembly) -> None:
        """Record arguments at its top level."""
        self._take(frame)
        if self._around is None:
            fields = fields_at(frame)
            self._around = {key: fields[key] for key in fields.keys() & ASTRAY}
        note_astray(assembly, self._around)

    def tell_beside(self, frame: bytes, assembly: Assembly) -> None:
        """Name what stands beside its choices and may be the answer, or a call."""
        self._take(frame)
        if self._beside is None:
            fields = fields_beside(frame)
            self._beside = fields if len(fields) <= _FEW else telling(fields)
        tell_unread(assembly, self._beside, "chunk")


def may_repeat(frame: bytes) -> bool:
    """Return whether a frame may repeat what lets a call grow, or a key around it."""
    return frame.count(b'"arguments"') > 1 or frame.count(b'"delta"') > 1 or frame.count(b'"choices"') > 1
