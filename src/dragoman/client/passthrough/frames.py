"""The frames of a stream whose bytes pass."""

from __future__ import annotations

import re
from typing import Final

from dragoman.gathered import Gathered
from dragoman.protocol import Decoder, WithoutUsage

#: More of a frame than this is not waited for.
_MOST_HELD: Final = 256 * 1024
_LINE: Final = re.compile(rb"\n")
_EVENT: Final = re.compile(rb"\n\n|\r\n\r\n")


class Frames:
    """Cuts a stream at the end of a frame, so that half a frame never leaves."""

    __slots__ = ("_end", "_held", "_last", "_without_usage")

    def __init__(self, *, by_lines: bool, without_usage: WithoutUsage | None = None) -> None:
        """Create it.

        Args:
            by_lines: a line is a frame; otherwise a frame is lines followed by an empty one.
            without_usage: removes a frame that the client did not ask for.
        """
        self._end = b"\n" if by_lines else b"\n\n"
        self._without_usage = without_usage
        self._held: Gathered | None = None  # the frame that is not whole; no end is in it
        self._last = b""  # of its bytes, that may be half an end

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes. Return the complete frames. Time is linear, however they are cut."""
        if self._held is not None or not data.endswith(self._end):
            data = self._cut(data)
        if self._without_usage is not None and data.rfind(b'"usage"') >= 0:  # half of what `in` takes
            return self._without_usage(data)
        return data

    def _cut(self, data: bytes) -> bytes:
        """Return the complete frames, with these bytes; the rest is held."""
        held = self._held
        if held is not None:
            seam = self._last + data
            if not self._after_last(seam) and held.size + len(data) <= _MOST_HELD:
                held.add(data)
                self._last = seam[-3:]
                return b""
            data = held.take(data)
        whole = self._after_last(data)
        if not whole and len(data) > _MOST_HELD:
            whole = len(data)
        rest = data[whole:]
        self._held, self._last = (Gathered(rest), rest[-3:]) if rest else (None, b"")
        return data[:whole]

    def _after_last(self, data: bytes) -> int:
        """Return the offset behind the last frame; 0 if there is none."""
        whole = _after(data, self._end)
        if data.find(b"\r", whole) >= 0:  # a search for one byte is many times as fast
            whole = max(whole, _after(data, b"\r\n\r\n"))
        return whole

    def before(self, data: bytes, stop_mark: re.Pattern[bytes] | None, end_marks: tuple[bytes, ...]) -> int:
        """Return the offset of the first complete frame that has one of these marks; 0 if none has."""
        found = stop_mark.search(data) if stop_mark is not None else None
        places = [found.start()] if found is not None else [data.find(mark) for mark in end_marks if mark in data]
        return _after(data[: min(places, default=0)], self._end)

    def up_to_end(self, data: bytes, decoder: Decoder) -> bytes:
        """Return frames up to the one that ends a new decoder's answer; none if it does not end."""
        start, ends = 0, _LINE if self._end == b"\n" else _EVENT
        for found in ends.finditer(data):
            decoder.feed(data[start : found.end()])
            start = found.end()
            if decoder.ended:
                return data[:start]
        return b""

    def close(self) -> bytes:
        """Return the rest at the end of a complete body."""
        held, self._held, self._last = self._held, None, b""
        return b"" if held is None else held.take()


def _after(data: bytes, end: bytes) -> int:
    """Return the offset behind the last of these ends; 0 if there is none."""
    found = data.rfind(end)
    return found + len(end) if found >= 0 else 0
