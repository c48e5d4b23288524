"""Parse complete lines of an event stream into frames (WHATWG HTML, server-sent events, read 2026-11-21)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from itertools import chain, repeat
from operator import itemgetter
from typing import Final, Protocol, TypeAlias
from weakref import ref

from dragoman import _json
from dragoman.bounds import AnswerBounds, exceeded
from dragoman.codec.framing.batches import ReadsBatches
from dragoman.codec.framing.large_frames import LARGE, Look, check_large, has_large_line
from dragoman.codec.framing.large_frames import TooLarge as TooLarge
from dragoman.deviations import clip

#: (data, event name); the name is b"" when the frame has none.
Frame: TypeAlias = tuple[bytes, bytes]
#: Takes a deviation's code, place and what was seen.
Deviate: TypeAlias = Callable[[str, str, str], None]

_FEW: Final = 4  # events that are not worth a batch
_MANY: Final = 12  # events with more than which it is worth to try again
_SMALL: Final = 4096  # bytes that hold too few events or lines for one
_LONG: Final = 1024  # bytes of a line that is found sooner alone than by a look at each byte
_ALONE: Final = 4096  # bytes of an event that is read alone sooner than in a batch
_BEGINNING: Final = 4  # events with which a response begins, and those with which it ends: role, name; reason, usage
_ENDING: Final = 4
_STARTS: Final = b'"name":"'  # in an event with which a call begins: those behind it may be alike
_first_byte: Final[Callable[[bytes], int]] = itemgetter(0)
_last_byte: Final[Callable[[bytes], int]] = itemgetter(-1)
_OPENED: Final = {ord("{")}
_CLOSED: Final = {ord("}")}


class TakesStray(Protocol):
    """The reader of the body, which takes text that is no frame."""

    def add_stray(self, text: bytes) -> None:
        """Take text that is no frame."""


def too_large(limit: int, seen: int) -> TooLarge:
    """Return the error for a frame, or a whole body, over its limit. `seen`: bytes so far."""
    return TooLarge(exceeded(f"a frame of at most {limit} bytes", "frame_mib", f"{seen} or more"))


def before_marker(value: bytes, deviate: Deviate) -> bytes:
    """Return the JSON before an end marker that stands behind it without a line end; b"" if there is none."""
    if value[-6:] == b"[DONE]" and _json.is_json(last := value[:-6].rstrip().removesuffix(b"data:").rstrip()):
        deviate("single-newline", "body", "the marker behind the last event, without a line end")
        return last
    return b""


class EventLines:
    """Parses server-sent events from complete lines. Well-formed events take a short cut; all others go line by line.

    Attributes:
        is_open: some lines of an event have come.
    """

    __slots__ = (
        "_bounds", "_data", "_decoder", "_deviate", "_goes_on", "_has_name", "_last", "_lines", "_look", "_name",
        "_of_calls", "_reader", "_tries", "is_open",
    )  # fmt: skip

    def __init__(
        self, reader: ref[TakesStray], deviate: Deviate, bounds: AnswerBounds, decoder: ref[ReadsBatches] | None,
        of_calls: tuple[bytes, ...], look: Look | None,
    ) -> None:  # fmt: skip
        """Create it. `of_calls`: names of events about calls. One with such a name, or its beginning, and without data
        was cut there.
        """
        self._reader = reader
        self._decoder = decoder
        self._deviate = deviate
        self._bounds, self._look = bounds, look
        self._data = bytearray()  # of the event that is open, its lines joined
        self._lines = 0
        self._last = b""
        self._name = b""
        self._has_name = False  # a line said one, perhaps an empty one
        self._of_calls = of_calls
        self._tries = 0
        self._goes_on = False  # its beginning was read
        self.is_open = False

    def read_singly(self) -> None:
        """Return every event as a frame from now on."""
        self._decoder = None

    def feed(self, data: bytes) -> Iterable[Frame]:
        """Take complete lines (each ended by LF)."""
        if self.is_open:
            return chain.from_iterable(self._go_on(data))
        if len(data) < _SMALL:
            return self._few(data)
        if len(data) > LARGE and has_large_line(data):
            return self._checked(data)
        alone, start = _long_events(data)
        if alone:
            return chain(alone, self._behind(data[start:])) if start < len(data) else alone
        cut = data.rfind(b"\n\n") + 2
        plain = _plain_events(data[:cut]) if cut > 1 else None
        if plain is None:
            return self._in_three(data, *_middle_of(data))
        frames = self._many(*plain)
        return chain(frames, self._blocks(data[cut:])) if cut < len(data) else frames

    def _behind(self, data: bytes) -> Iterator[Frame]:
        """Parse what stands behind events, once they are read."""
        yield from self.feed(data)

    def _checked(self, data: bytes) -> Iterator[Frame]:
        """Parse events of which one is large: they are not taken as a batch."""
        decoder, self._decoder = self._decoder, None
        for frame, name in self._blocks(data):
            yield check_large(frame, self._bounds, self._look), name
        self._decoder = decoder

    def _few(self, data: bytes) -> Iterable[Frame]:
        """Parse events of any form. The plain ones up to the first other one are recognised at once."""
        blocks = data.split(b"\n\n")
        frames: list[Frame] = []
        for block in blocks:
            if block[:7] == b"data: {" and block[-1:] == b"}" and block.find(b"\n") < 0:
                frames.append((block[6:], b""))
                continue
            cut = block.find(b"\ndata: {")
            if cut > 0 and _is_name_line(block, cut + 1) and block[-1:] == b"}" and block.find(b"\n", cut + 1) < 0:
                frames.append((block[cut + 7 :], block[7:cut].strip()))
            elif block == b"data: [DONE]":
                frames.append((b"[DONE]", b""))
            else:
                break
        rest = blocks[len(frames) :]
        return frames if rest == [b""] else chain(frames, self._blocks(b"\n\n".join(rest)))

    def _go_on(self, data: bytes) -> Iterator[Iterable[Frame]]:
        """Yield the frames of data that begins in the middle of an event, in batches."""
        end = data.find(b"\n\n")
        stop = len(data) if end < 0 else end + 1
        if data[:1] == b"\n":
            stop = 0
        yield chain.from_iterable(map(self._line, data[:stop].split(b"\n")[:-1]))
        if end < 0 and stop:
            return
        yield self._dispatch()
        yield self.feed(data[stop + 1 :])

    def _in_three(self, data: bytes, begin: int, end: int) -> Iterator[Frame]:
        """Parse the events before, in and behind the part in which all are similar."""
        plain = _plain_events(data[begin:end]) if end > begin else None
        if plain is None:
            yield from self._blocks(data)
            return
        yield from self._blocks(data[:begin])
        yield from self._many(*plain)
        yield from self._blocks(data[end:])

    def _blocks(self, data: bytes) -> Iterator[Frame]:
        """Parse events of any form, the last one possibly incomplete."""
        blocks = data.split(b"\n\n")
        last = blocks.pop()  # b"" when the data ends with a blank line
        alike: list[bytes] = []  # data of plain events in a row
        head = b""  # what they begin with, up to the brace
        for block in blocks:
            if not block and not self._has_name:  # blank lines that end nothing
                continue
            if alike and block.startswith(head) and block.find(b"\n", len(head)) < 0 and block[-1:] == b"}":
                alike.append(block[len(head) - 1 :])
                continue
            cut = block.find(b"data: {")
            if block.find(b"\n", cut) < 0 <= cut and (not cut or _is_name_line(block, cut)) and block[-1:] == b"}":
                yield from self._many(alike, head)
                alike, head = [block[cut + 6 :]], block[: cut + 7]
                continue
            yield from self._many(alike, head)
            alike = []
            for line in block.split(b"\n"):
                yield from self._line(line)
            yield from self._dispatch()
        yield from self._many(alike, head)
        if last:
            for line in last.split(b"\n")[:-1]:
                yield from self._line(line)

    def _many(self, lines: list[bytes], head: bytes) -> Iterable[Frame]:
        """Return the frames of similar events, unless the decoder takes them as a batch. `head`: how each begins."""
        name = head[7 : -len(b"\ndata: {")].strip()
        if self._decoder is None or len(lines) <= _FEW or (decoder := self._decoder()) is None:
            return zip(lines, repeat(name))
        taken = decoder.read_batch(lines)
        return () if taken == len(lines) else self._middle(lines[taken:], name, decoder)

    def _middle(self, lines: list[bytes], name: bytes, decoder: ReadsBatches) -> Iterator[Frame]:
        """Yield frames outside of the middle: a whole response begins and ends differently, and so may each part."""
        begin = 1 if self._goes_on else _BEGINNING
        self._goes_on = True
        yield from zip(lines[:begin], repeat(name))
        lines = lines[begin:]
        places = map(bytes.rfind, lines, repeat(_STARTS)) if len(lines) > _MANY and not _may_be_alike(lines) else ()
        starts = [number for number, place in enumerate(places) if place >= 0]
        if not starts:
            yield from zip(_without_batch(lines, decoder, _MANY), repeat(name))
            return
        yield from zip(_without_batch(lines[: starts[0]], decoder, _FEW), repeat(name))
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
            yield lines[start], name
            yield from zip(_without_batch(lines[start + 1 : end], decoder, _FEW), repeat(name))

    def close(self, rest: bytes) -> Iterator[Frame]:
        """End the body, possibly in the middle of a line."""
        if rest:
            yield from self._line(rest)
        yield from self._dispatch()

    def _line(self, line: bytes) -> Iterator[Frame]:
        """Take one line without its end."""
        if line[:5] == b"data:":
            value = line[6:] if line[5:6] == b" " else line[5:]
            if value[:5] == b"data:":
                self._deviate("double-data-prefix", "body", "")
                value = value[5:].lstrip(b" ")
            if self._lines and self._stands_alone():
                self._deviate("single-newline", "body", "")
                yield from self._dispatch()
            if last := before_marker(value, self._deviate):
                self._append(last)
                yield from self._dispatch()
                value = b"[DONE]"
            self._append(value)
        elif line[:6] == b"event:" and (glued := line.find(b"data:")) > 0 and line[glued + 5 :].lstrip()[:1] == b"{":
            # quirk: name-line-glued-to-its-data: nobody knows whether more was lost between them
            yield from self._dispatch()
            yield line, b""
            yield from self._line(line[glued:])
        elif line[:6] == b"event:":
            is_behind = bool(self._lines)  # Bedrock names its events behind their data
            if is_behind and self._stands_alone():
                # a new event begins without a blank line, unless this name closes the event it stands in
                yield from self._dispatch()
            self._name, self._has_name = line[6:].strip(), not is_behind
            self.is_open = bool(self._lines or self._name)
        elif not line or line[:1] == b":" or line[:3] == b"id:" or line[:6] == b"retry:" or line in (b"data", b"id"):
            if not line:
                yield from self._dispatch()
        else:
            yield from self._odd_line(line)

    def _odd_line(self, line: bytes) -> Iterator[Frame]:
        text = line.strip()
        if text == b"[DONE]" or (text[:1] in (b"{", b"[") and _json.is_json(text)):
            self._deviate("bare-json-line", "body", "")
            yield from self._dispatch()
            yield check_large(text, self._bounds, self._look), b""
        elif self._lines and not self._stands_alone():
            self._append(line)  # JSON broken over lines without `data:` before each
        elif text:
            self._deviate("stray-text", "body", clip(text.decode("utf-8", "replace")))
            if (reader := self._reader()) is not None:
                reader.add_stray(text + b"\n")
            # a frame behind a field's name that is not quite `data:`, or cut in that name; whose it was, nobody knows
            if b"{" in text or b"data:".startswith(text) or b"event:".startswith(text):
                yield from self._dispatch()
                yield text, b""

    def _append(self, line: bytes) -> None:
        if self._lines:
            self._data += b"\n"
        self._data += line
        self._lines += 1
        self.is_open = True
        self._last = line
        if len(self._data) > self._bounds.frame:
            raise too_large(self._bounds.frame, len(self._data))

    def _stands_alone(self) -> bool:
        """Return whether the data so far is a complete event. Tried a few times only, so that time stays linear."""
        if self._tries >= 8:
            return False
        if self._last.rstrip()[-1:] not in (b"}", b"]"):
            return False
        text = bytes(self._data)
        if text.strip() == b"[DONE]" or _json.is_json(text):
            return True
        self._tries += 1
        return False

    def _dispatch(self) -> Iterator[Frame]:
        name, is_named = self._name, self._has_name
        self._name, self._has_name = b"", False
        self.is_open = False
        if self._lines:
            data = bytes(self._data)
            self._data, self._lines, self._last, self._tries = bytearray(), 0, b"", 0
            if data and not data.isspace():
                yield check_large(data, self._bounds, self._look), name
                return
        if is_named and any(known.startswith(name) for known in self._of_calls):
            yield b"event: " + name, b""


def _without_batch(lines: list[bytes], decoder: ReadsBatches, few: int) -> list[bytes]:
    """Return the events that are left after the decoder took those before them at once. `few` are not worth a try."""
    for end in (len(lines), len(lines) - _ENDING):
        if end > few and (taken := decoder.read_batch(lines[:end])):
            return lines[taken:]
    return lines


def _may_be_alike(lines: list[bytes]) -> bool:
    """Return whether the first event and the last one before the end are equal up to their last string."""
    return lines[-1 - _ENDING].startswith(lines[0][: lines[0].rfind(b'":"') + 3])


def with_line_feeds(data: bytes) -> bytes:
    """Return the same lines, each ended by LF. In long data searching one byte is much faster than searching two."""
    if len(data) < _SMALL:
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if data.find(b"\n", 0, _LONG) < 0:
        lines, plain = BytesIO(data).readlines(), data.replace(b"\r", b"")
        if len(data) - len(plain) == len(lines) and all(line[-2:] == b"\r\n" for line in lines):
            return plain
    pieces = data.split(b"\r")
    if [piece[:1] for piece in pieces].count(b"\n") >= len(pieces) - (data[:1] != b"\n"):
        return b"".join(pieces)
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def lines_of(data: bytes) -> list[bytes]:
    """Return the lines of a text without their line feeds. Long ones are found as memory is searched."""
    if data.find(b"\n", 0, _LONG) >= 0:
        return data.split(b"\n")
    return [line.removesuffix(b"\n") for line in BytesIO(data)]


def _long_events(data: bytes) -> tuple[list[Frame], int]:
    """Return the plain events with which data begins, each without a name and too long for a batch, and where they end.

    Their ends are found as memory is searched.
    """
    frames: list[Frame] = []
    start = 0
    while data.startswith(b"data: {", start):
        end = data.find(b"\n", start)
        if end - start < _ALONE or data[end - 1 : end + 2] != b"}\n\n":
            break
        frames.append((data[start + 6 : end], b""))
        start = end + 2
    return frames, start


def _plain_events(data: bytes) -> tuple[list[bytes], bytes] | None:
    """Return the data of complete, similar events, and what each begins with; None if any has another form.

    Each is one line from brace to brace, with the same name or none. This is several times as fast as block by block.
    """
    cut = data.find(b"data: {")
    if cut < 0 or (cut and not _is_name_line(data, cut)) or data[-3:] != b"}\n\n":
        return None
    last = data.rfind(b"\n\n", 0, -2)
    if last >= 0 and not data.startswith(data[: cut + 7], last + 2):
        return None
    lines = data[cut + 6 : -2].split(b"\n\n" + data[: cut + 6])
    if b"".join(lines).find(b"\n") >= 0 or not all(lines):
        return None
    if set(map(_first_byte, lines)) != _OPENED or set(map(_last_byte, lines)) != _CLOSED:
        return None
    return lines, data[: cut + 7]


def _middle_of(data: bytes) -> tuple[int, int]:
    """Return where events like the one in the middle begin and end; (0, 0) if there is none."""
    start = data.find(b"\n\n", len(data) // 2) + 2
    brace = data.find(b"{", start, start + 200)
    if start < 2 or brace < 0:
        return 0, 0
    between = b"\n\n" + data[start : brace + 1]
    last = data.rfind(between) + 2
    return data.find(between) + 2, data.find(b"\n\n", last) + 2


def _is_name_line(data: bytes, end: int) -> bool:
    """Return whether the line before `end` is the line of an event's name and nothing else."""
    return data[:7] == b"event: " and data.find(b"\n") == end - 1
