"""Bytes of a body → frames (one JSON document each), and back. No JSON is understood here, only where it ends.

One `BodyReader` serves every protocol, because servers send what was not asked for: an event stream, lines of JSON,
one JSON document (pretty-printed too), an array of documents, HTML, gzip without a header. The first bytes tell.
Only CR LF, LF and CR end a line (WHATWG HTML, server-sent events, read 2026-11-21), never U+2028 or U+0085.
Frames and the deviations found between them come in the order of the bytes, however these are cut; time is linear.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, repeat
from typing import Final, Literal, TypeAlias
from weakref import ref

from dragoman import _json
from dragoman._json import Malformed
from dragoman.bounds import USUAL_BOUNDS, AnswerBounds, exceeded
from dragoman.codec.framing.batches import ReadsBatches
from dragoman.codec.framing.json_array import ArrayItems
from dragoman.deviations import clip

#: (data, event name); the name is b"" when the frame has none.
Frame: TypeAlias = tuple[bytes, bytes]
#: Takes a deviation's code, place and what was seen.
Deviate: TypeAlias = Callable[[str, str, str], None]
Kind: TypeAlias = Literal["unknown", "object", "events", "lines", "document", "array", "text"]

_STRAY_LIMIT: Final = 2048
_FEW: Final = 4  # events that are not worth a batch
_SMALL: Final = 4096  # bytes that hold too few events or lines for one
_BEGINNING: Final = 4  # events with which a response begins, and those with which it ends: role, name; reason, usage
_ENDING: Final = 4
_STEP: Final = 1024 * 1024  # bytes that gzip gives at once
_MOST_MEMBERS: Final = 256  # of a gzip body, in one chunk; each is copied from what is left
_FIELD: Final = re.compile(rb"(?:data|event|id|retry)(?:[:\r\n]|$)|:")
_BOM: Final = b"\xef\xbb\xbf"
_USUAL: Final = (b"data: ", b"event: ")  # beginnings of an event stream


class TooLarge(Exception):
    """A response, a frame of it, or what gzip made of one, is larger than the limit. Caught in the decoder, which tells
    its words."""


def too_large(limit: int, seen: int) -> TooLarge:
    """A frame, or a whole body, is over its limit. `seen`: bytes so far."""
    return TooLarge(exceeded(f"a frame of at most {limit} bytes", "frame_mib", f"{seen} or more"))


class BodyReader:
    """Cuts a response body into frames.

    Attributes:
        kind: what the body turned out to be.
        stray: text that is no frame, clipped; the message of a body that holds nothing else.
    """

    __slots__ = (
        "__weakref__", "_array", "_carry", "_decoder", "_deviate", "_events", "_limit", "_most", "_size", "_tail",
        "_total", "_unzip", "kind", "stray",
    )  # fmt: skip

    def __init__(
        self, deviate: Deviate, *, bounds: AnswerBounds = USUAL_BOUNDS, decoder: ref[ReadsBatches] | None = None
    ) -> None:
        """`decoder`: is asked first whether it takes many events at once; weak, since it holds this reader."""
        self.kind: Kind = "unknown"
        self.stray = b""
        self._deviate = deviate
        self._limit = bounds.frame
        self._most = bounds.answer
        self._total = 0
        self._tail: list[bytes] = []  # bytes after the last line end
        self._size = 0
        self._carry = b""  # a CR at the end of a chunk: half a CR LF?
        self._decoder = decoder
        self._events: _EventLines | None = None  # these three once they are needed
        self._array: ArrayItems | None = None
        self._unzip: zlib._Decompress | None = None

    @property
    def seen(self) -> str:
        """What came where no response did, for the words of an error."""
        return "a body with nothing of this protocol" if self._total else "an empty body"

    def feed(self, data: bytes) -> Iterable[Frame]:
        """Take the next bytes; gives frames as they are found.

        Raises:
            TooLarge: at the first byte over the limit.
        """
        size = len(data)
        self._total = total = self._total + size
        if self._carry or self._tail or self._unzip is not None or total > self._most:
            return self._feed(data)
        if self.kind == "unknown":
            if data.startswith(_USUAL):
                self.kind = "events"
            elif data[:1] == b"{" and size <= self._limit and not self._sniff_object(data):
                self._keep(data)
                return ()
        if data[-1:] != b"\n":
            return self._feed(data)
        if self.kind == "events":
            if b"\r" in data:
                data = _with_line_feeds(data)
                size = len(data)
            if (events := self._events) is None or not events.is_open:  # a whole event at a time is the usual case
                begin, cut = data[:7], data.find(b"\n")
                if begin == b"data: {" and cut == size - 2:
                    return ((data[6:-2], b""),)
                is_named = begin == b"event: " and data[cut : cut + 8] == b"\ndata: {"
                if is_named and data.find(b"\n", cut + 8) == size - 2:
                    return ((data[cut + 7 : -2], data[7:cut].strip()),)
            return self._event_lines().feed(data)
        return self._line_frames(data) if self.kind == "lines" and b"\r" not in data else self._feed(data)

    def _event_lines(self) -> _EventLines:
        if self._events is None:
            self._events = _EventLines(ref(self), self._deviate, self._limit, self._decoder)
        return self._events

    def _feed(self, data: bytes) -> Iterator[Frame]:
        is_packed = self._unzip is not None
        for plain in self._inflate(data) if is_packed else (data,):
            self._total += len(plain) if is_packed else 0
            if self._total > self._most:
                wanted = f"a response of at most {self._most} bytes"
                raise TooLarge(exceeded(wanted, "answer_mib", f"{self._total} or more"))
            yield from self._feed_plain(plain)

    def _feed_plain(self, data: bytes) -> Iterator[Frame]:
        if self.kind == "unknown" or self.kind == "object":
            if self.kind == "object" and b"\n" not in data and b"\r" not in data:
                self._keep(data)
                return
            if (size := self._size + data.find(b"\n")) > self._limit:
                raise too_large(self._limit, size)
            data = b"".join((*self._tail, data))
            self._tail.clear()
            self._size = 0
            if not self._sniff(data):
                self._keep(data)
                return
            if data[:2] == b"\x1f\x8b":
                yield from self._feed(data)
                return
            data = data.removeprefix(_BOM)
        if self.kind == "array":
            yield from self._array_items(data)
            return
        if self._carry or b"\r" in data:
            data = self._carry + data
            self._carry = b"\r" if data[-1:] == b"\r" else b""
            if self._carry:
                data = data[:-1]
            data = _with_line_feeds(data)
        yield from self._lines(data)

    def close(self) -> Iterable[Frame]:
        """The body ended: what was held is given out, whole or not."""
        if self._tail or self._carry or self.kind == "array" or (self._events is not None and self._events.is_open):
            return self._close()
        return ()

    def _close(self) -> Iterator[Frame]:
        if self.kind in ("unknown", "object") and self._tail:
            yield from self._close_unknown()
        if self._carry:
            self._carry = b""
            yield from self._lines(b"\n")
        rest = b"".join(self._tail)
        self._tail.clear()
        if self.kind == "document":
            yield from self._documents(rest)
        elif self.kind == "array":
            pending = self._array.pending() if self._array is not None else b""
            if pending:
                yield pending, b""
        elif self.kind == "lines":
            if rest.strip():
                yield from self._line_frames(rest)
        elif self.kind == "text":
            self.add_stray(rest)
        else:
            yield from self._event_lines().close(rest)

    # ------------------------------------------------------------ what the body is

    def _sniff(self, data: bytes) -> bool:
        """Tell the kind from the first bytes; False while they are too few."""
        if data[:2] == b"\x1f\x8b":
            self._unzip = zlib.decompressobj(31)
            self._deviate("mislabelled-gzip", "body", "")
            return True
        if data == b"\x1f" or (len(data) < 3 and _BOM.startswith(data)):
            return False
        if data[:3] == _BOM:
            self._deviate("byte-order-mark", "body", "")
            data = data[3:]
        start = data.lstrip(b" \t\r\n")
        if not start:
            return False
        if start[:1] == b"[":
            if start[:6] == b"[DONE]":
                self.kind = "events"
                return True
            if b"[DONE]".startswith(start):
                return False
            self.kind = "array"
        elif start[:1] == b"{":
            return self._sniff_object(start)
        elif len(start) < 6 and b"\n" not in start:  # `data` may become a field, or a word of a text
            return False
        elif _FIELD.match(start):
            self.kind = "events"
        else:
            self.kind = "text"
        return True

    def _sniff_object(self, start: bytes) -> bool:
        """JSON: lines of it when the first line is whole, else one document (pretty-printed)."""
        cuts = [cut for cut in (start.find(b"\n"), start.find(b"\r")) if cut >= 0]
        if not cuts:
            self.kind = "object"
            return False
        self.kind = "lines" if _json.is_json(start[: min(cuts)]) else "document"
        return True

    def _close_unknown(self) -> Iterator[Frame]:
        data = b"".join(self._tail).removeprefix(_BOM)
        self._tail.clear()
        start = data.strip()
        if start[:1] == b"{":
            self.kind = "document"
            yield from self._documents(start)
        elif start:
            self.kind = "text"
            self.add_stray(start)

    def _inflate(self, data: bytes) -> Iterator[bytes]:
        """The next bytes without their gzip, step by step, so that a bomb is never there as a whole; a server that
        flushes may write several members."""
        size, step = 0, min(_STEP, self._limit)
        for _ in range(_MOST_MEMBERS):
            unzip = self._unzip
            if unzip is None or (unzip.eof and data[:1] != b"\x1f"):
                return
            if unzip.eof:
                unzip = self._unzip = zlib.decompressobj(31)
            is_full = True
            while is_full:
                before = unzip.copy()
                try:
                    plain = unzip.decompress(data, step)
                except zlib.error:
                    plain = _read_prefix(before, data, step)
                    self._deviate("stray-text", "body", "broken gzip data")
                    self.kind = "text" if self.kind == "unknown" and not size and not plain else self.kind
                    yield plain
                    return
                size += len(plain)
                if size > self._limit:
                    raise too_large(self._limit, size)
                yield plain
                is_full = len(plain) == step
                data = unzip.unconsumed_tail
            data = unzip.unused_data

    # ------------------------------------------------------------ lines

    def _lines(self, data: bytes) -> Iterable[Frame]:
        """Pass whole lines on; keep the rest."""
        cut = data.rfind(b"\n") + 1
        if not cut or self.kind == "document" or self.kind == "text":
            self._keep(data)
            return ()
        whole = data[:cut]
        if self._tail:
            if (size := self._size + data.find(b"\n")) > self._limit:
                raise too_large(self._limit, size)
            self._tail.append(whole)
            whole = b"".join(self._tail)
            self._tail.clear()
            self._size = 0
        if cut < len(data):
            self._keep(data[cut:])
        return self._event_lines().feed(whole) if self.kind == "events" else self._line_frames(whole)

    def _keep(self, data: bytes) -> None:
        if self.kind == "text":
            self.add_stray(data)
            return
        self._tail.append(data)
        self._size += len(data)
        if self._size > self._limit:
            raise too_large(self._limit, self._size)

    def _line_frames(self, data: bytes) -> Iterator[Frame]:
        for line in data.split(b"\n"):
            if line[:1] == b"{":
                yield line, b""
            elif line and not line.isspace():
                yield from self._odd_line(line)

    def _odd_line(self, line: bytes) -> Iterator[Frame]:
        """A line of a JSON-lines body that does not begin with a brace: an event stream's habits, or a wreck."""
        text = line.strip()
        if text[:5] == b"data:":
            self._deviate("stray-text", "body", "data: in lines of JSON")
            text = text[5:].strip()
        elif _FIELD.match(text):
            return
        if text[:1] in (b"{", b"[") or text:
            yield text, b""

    def _array_items(self, data: bytes) -> Iterator[Frame]:
        if self._array is None:
            self._array = ArrayItems()
        for item in self._array.feed(data):
            yield item, b""
        if (size := self._array.size()) > self._limit:
            raise too_large(self._limit, size)

    def _documents(self, text: bytes) -> Iterator[Frame]:
        """A body that is one document, or several one after the other; unreadable text comes out line by line."""
        if not text.strip():
            return
        if _json.is_json(text):
            yield text, b""
            return
        values = _json.split_values(text.decode("utf-8", "replace"))
        if isinstance(values, Malformed):
            if type(_json.decode_lenient(text)) is not Malformed or text.count(b"\n{") == 0:
                yield text, b""
            else:
                yield from self._line_frames(text)
            return
        for value in values:
            yield value.encode("utf-8", "replace"), b""

    def add_stray(self, text: bytes) -> None:
        """Text that is no frame came."""
        if len(self.stray) < _STRAY_LIMIT:
            self.stray = (self.stray + text)[:_STRAY_LIMIT]


def _read_prefix(unzip: zlib._Decompress, data: bytes, limit: int) -> bytes:
    """What broken data says up to its fault, as if it had come byte by byte."""
    plain, low, high = b"", 0, len(data)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            plain, low = unzip.copy().decompress(data[:middle], limit), middle
        except zlib.error:
            high = middle
    return plain


class _EventLines:
    """Server-sent events from whole lines. Well-formed events take a short cut; all else goes line by line.

    Attributes:
        is_open: whether some lines of an event have come.
    """

    __slots__ = (
        "_data", "_decoder", "_deviate", "_last", "_limit", "_lines", "_name", "_reader", "_tries", "is_open",
    )  # fmt: skip

    def __init__(
        self, reader: ref[BodyReader], deviate: Deviate, limit: int, decoder: ref[ReadsBatches] | None
    ) -> None:
        self._reader = reader
        self._decoder = decoder
        self._deviate = deviate
        self._limit = limit
        self._data = bytearray()  # of the event that is open, its lines joined
        self._lines = 0
        self._last = b""
        self._name = b""
        self._tries = 0
        self.is_open = False

    def feed(self, data: bytes) -> Iterable[Frame]:
        """Take whole lines (each ended by LF)."""
        if self.is_open:
            return chain.from_iterable(self._go_on(data))
        if len(data) < _SMALL:
            return self._few(data)
        cut = data.rfind(b"\n\n") + 2
        plain = _plain_events(data[:cut]) if cut > 1 else None
        if plain is None:
            return self._in_three(data, *_middle_of(data))
        frames = self._many(*plain)
        return chain(frames, self._blocks(data[cut:])) if cut < len(data) else frames

    def _few(self, data: bytes) -> Iterable[Frame]:
        """Events of any form; the plain ones up to the first that is not are told at once."""
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
        """The frames of data that begins in the middle of an event, in batches."""
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
        """The events before, in and behind the part in which all are alike."""
        plain = _plain_events(data[begin:end]) if end > begin else None
        if plain is None:
            yield from self._blocks(data)
            return
        yield from self._blocks(data[:begin])
        yield from self._many(*plain)
        yield from self._blocks(data[end:])

    def _blocks(self, data: bytes) -> Iterator[Frame]:
        """Events of any form, the last one perhaps not whole."""
        blocks = data.split(b"\n\n")
        last = blocks.pop()  # b"" when the data ends with a blank line
        alike: list[bytes] = []  # data of plain events in a row
        head = b""  # what they begin with, up to the brace
        for block in blocks:
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
        """The frames of events that are alike, unless they are taken together. `head`: what each begins with."""
        name = head[7 : -len(b"\ndata: {")].strip()
        if self._decoder is None or len(lines) <= _FEW or (decoder := self._decoder()) is None:
            return zip(lines, repeat(name))
        if decoder.read_batch(lines):
            return ()
        return self._middle(lines, name, decoder)

    def _middle(self, lines: list[bytes], name: bytes, decoder: ReadsBatches) -> Iterator[Frame]:
        """A response that came at once begins and ends otherwise than it goes on."""
        end = len(lines) - _ENDING
        if end - _BEGINNING > _FEW:
            yield from zip(lines[:_BEGINNING], repeat(name))
            if decoder.read_batch(lines[_BEGINNING:end]):
                lines = lines[end:]
            else:
                lines = lines[_BEGINNING:]
        yield from zip(lines, repeat(name))

    def close(self, rest: bytes) -> Iterator[Frame]:
        """The body ended, perhaps in the middle of a line."""
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
            self._append(value)
        elif line[:6] == b"event:":
            if self._lines and self._stands_alone():
                # a new event begins without a blank line, unless this name closes the event it stands in
                yield from self._dispatch()
            self._name = line[6:].strip()
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
            yield text, b""
        elif self._lines and not self._stands_alone():
            self._append(line)  # JSON broken over lines without `data:` before each
        elif text:
            self._deviate("stray-text", "body", clip(text.decode("utf-8", "replace")))
            if (reader := self._reader()) is not None:
                reader.add_stray(text)

    def _append(self, line: bytes) -> None:
        if self._lines:
            self._data += b"\n"
        self._data += line
        self._lines += 1
        self.is_open = True
        self._last = line
        if len(self._data) > self._limit:
            raise too_large(self._limit, len(self._data))

    def _stands_alone(self) -> bool:
        """Whether the data so far is a whole event. Tried a few times only, so that time stays linear."""
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
        if self._lines:
            data, name = bytes(self._data), self._name
            self._data, self._lines, self._last, self._name, self._tries = bytearray(), 0, b"", b"", 0
            self.is_open = False
            if data and not data.isspace():
                yield data, name
        self._name = b""
        self.is_open = False


def _with_line_feeds(data: bytes) -> bytes:
    """The same lines, each ended by LF. In long data a search for one byte is much faster than one for two."""
    if len(data) < _SMALL:
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    pieces = data.split(b"\r")
    if [piece[:1] for piece in pieces].count(b"\n") >= len(pieces) - (data[:1] != b"\n"):
        return b"".join(pieces)
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _plain_events(data: bytes) -> tuple[list[bytes], bytes] | None:
    """The data of whole events that are all alike, and what each begins with: one line from brace to brace, the same
    name or none.

    Several times as fast as block by block; None when any is of another form.
    """
    cut = data.find(b"data: {")
    if cut < 0 or (cut and not _is_name_line(data, cut)) or data[-3:] != b"}\n\n":
        return None
    last = data.rfind(b"\n\n", 0, -2)
    if last >= 0 and not data.startswith(data[: cut + 7], last + 2):
        return None
    lines = data[cut + 6 : -2].split(b"\n\n" + data[: cut + 6])
    joined = b"\n".join(lines)
    ends = [line[:1] + line[-1:] for line in lines]
    if joined.count(b"\n") != len(lines) - 1 or ends.count(b"{}") != len(lines):
        return None
    return lines, data[: cut + 7]


def _middle_of(data: bytes) -> tuple[int, int]:
    """Where events like the one in the middle begin and end, others before and behind them; (0, 0) for none."""
    start = data.find(b"\n\n", len(data) // 2) + 2
    brace = data.find(b"{", start, start + 200)
    if start < 2 or brace < 0:
        return 0, 0
    between = b"\n\n" + data[start : brace + 1]
    last = data.rfind(between) + 2
    return data.find(between) + 2, data.find(b"\n\n", last) + 2


def _is_name_line(data: bytes, end: int) -> bool:
    """Whether what stands before `end` is the line of an event's name and nothing else."""
    return data[:7] == b"event: " and data.find(b"\n") == end - 1


def write_event(data: bytes, name: str = "") -> bytes:
    """One server-sent event; `data` has no line ends."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data) if name else b"data: %b\n\n" % data


def write_line(data: bytes) -> bytes:
    """One line of JSON."""
    return data + b"\n"
