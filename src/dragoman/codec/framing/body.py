"""Split the bytes of a body into frames (one JSON document each), and join frames. It finds only where JSON ends.

One `BodyReader` serves every protocol, because servers send what was not asked for: an event stream, lines of JSON, one
JSON document, an array of documents, HTML, gzip without a header. The first bytes tell. Only CR LF, LF and CR end a
line (WHATWG HTML, server-sent events, read 2026-11-21). Frames and deviations come in the order of the bytes. Time is
linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, Literal, TypeAlias
from weakref import ref

from dragoman import _json
from dragoman._json import Malformed
from dragoman.bounds import USUAL_BOUNDS, AnswerBounds, exceeded
from dragoman.codec.compression import Broken, Unpacker, is_packed
from dragoman.codec.framing.batches import ReadsBatches
from dragoman.codec.framing.event_stream import Deviate as Deviate
from dragoman.codec.framing.event_stream import EventLines, lines_of, too_large, with_line_feeds
from dragoman.codec.framing.event_stream import Frame as Frame
from dragoman.codec.framing.event_stream import TooLarge as TooLarge
from dragoman.codec.framing.json_array import ArrayItems
from dragoman.codec.framing.large_frames import LARGE, Look, check_large
from dragoman.codec.framing.plain_keys import LONG, has_escaped_letters, may_have_escapes, with_plain_keys
from dragoman.deviations import clip
from dragoman.gathered import Gathered

Kind: TypeAlias = Literal["unknown", "object", "events", "lines", "document", "array", "text"]

_STRAY_LIMIT: Final = 2048
_FIELD: Final = re.compile(rb"(?:data|event|id|retry)(?:[:\r\n]|$)|:")
#: A first line that may be a field of an event stream which nobody knows: readers skip it.
_OWN_FIELD: Final = re.compile(rb"[A-Za-z][\w-]{0,31}(?=[:\r\n])")
_MAY_BE_FIELD: Final = re.compile(rb"[A-Za-z][\w-]{0,31}\Z")
_BOM: Final = b"\xef\xbb\xbf"
_SPACE: Final = b" \t\r\n"
_BLANK: Final = _SPACE + _BOM
_LF, _CR, _BACKSLASH = b"\n\r\\"  # a byte as a number is looked for several times as fast
_ESCAPE: Final = 6  # bytes of an escape: `\\u006f`
_USUAL: Final = (b"data: ", b"event: ")  # beginnings of an event stream


class BodyReader:
    """Splits a response body into frames.

    Attributes:
        kind: the detected kind of the body.
        stray: text that is no frame, clipped; the message of a body without anything else.
        document: the JSON of a body that is one document, or of its first line.
        head: of the last event, up to its brace, if it came alone and whole; b"" while anything is held.
        total: bytes that came.
    """

    __slots__ = (
        "__weakref__", "_array", "_bounds", "_carry", "_decoder", "_deviate", "_edge", "_events", "_is_blank",
        "_is_escaped", "_limit", "_look", "_most", "_of_calls", "_name", "_quick", "_tail", "_unpacker", "_usual",
        "document", "head", "kind", "stray", "total",
    )  # fmt: skip

    def __init__(
        self, deviate: Deviate, *, bounds: AnswerBounds = USUAL_BOUNDS, decoder: ref[ReadsBatches] | None = None,
        of_calls: tuple[bytes, ...] = (), look: Look | None = None,
    ) -> None:  # fmt: skip
        """Create it.

        Args:
            decoder: is asked first whether it takes many events at once; a weak reference.
            of_calls: names of events about calls: one without data is a frame that was cut.
            look: called with each large frame before it is returned.
        """
        self.kind: Kind = "unknown"
        self.stray = self.document = b""
        self._usual: Literal["", "events", "lines"] = ""  # the kind, while nothing is held of what came
        self.head = self._name = b""
        self._deviate = deviate
        self._limit = bounds.frame
        self._most = bounds.answer
        self._quick = LARGE if bounds.answer > LARGE else bounds.answer  # a larger read is beyond it
        self._bounds, self._look = bounds, look
        self.total = 0
        self._tail = Gathered()  # bytes after the last line end
        self._is_blank = True  # nothing but white space came, and perhaps a byte order mark
        self._carry = b""  # a CR at the end of a chunk: half a CR LF?
        self._edge = b""  # the end of a chunk that may be half an escape
        self._is_escaped = False  # keys may be written with escapes
        self._decoder, self._of_calls = decoder, of_calls
        self._events: EventLines | None = None  # these three once they are needed
        self._array: ArrayItems | None = None
        self._unpacker: Unpacker | None = None

    @property
    def seen(self) -> str:
        """Return what came in place of a response, for an error message."""
        return "a body with nothing of this protocol" if self.total else "an empty body"

    def total_with(self, event: bytes) -> int:
        """Return the total with an event that differs from the last one in a single string; 0: feed it. The taker sets
        `total`.
        """
        total = self.total + len(event)
        return total if self.head and total <= self._most else 0

    def feed(self, data: bytes) -> Iterable[Frame]:
        """Take the next bytes and return frames as they are found. Raises TooLarge at the first byte over the limit."""
        size = len(data)
        self.total = total = self.total + size
        may_escape = _BACKSLASH in data and (data.rfind(b"\\u00") >= 0 if size < LONG else may_have_escapes(data))
        if (may_escape or self._edge) and self._looks_escaped(data):  # else no key is
            return map(with_plain_keys, self._feed_unusual(data))
        head = self.head
        if (
            head
            and data.startswith(head)
            and data.find(b"\n", len(head)) == size - 2
            and data[-1] == _LF
            and _CR not in data
            and total <= self._quick
        ):  # as the last one
            return ((data[len(head) - 1 : -2], self._name),)
        usual = self._usual or self._tell_usual(data)
        if total > self._quick or data[-1:] != b"\n":
            pass
        elif usual == "events":  # a whole event at a time
            begin, cut = data[:7], data.find(b"\n")
            if begin == b"data: {":
                if cut == size - 2 and _CR not in data:
                    self.head, self._name = begin, b""
                    return ((data[6:cut], b""),)
                if data[-4:] == b"\r\n\r\n" and cut == size - 3 and data.find(b"\r") == size - 4:
                    return ((data[6:-4], b""),)
            elif (
                begin == b"event: "
                and data[cut : cut + 8] == b"\ndata: {"
                and data.find(b"\n", cut + 8) == size - 2
                and _CR not in data
            ):
                self.head, self._name = data[: cut + 8], data[7:cut].strip()
                return ((data[cut + 7 : -2], self._name),)
        elif usual and data.find(b"\n") == size - 1 and data[:1] == b"{" and _CR not in data:
            return ((data[:-1], b""),)
        self._usual, self.head = "", b""
        return self._feed_unusual(data)

    def _tell_usual(self, data: bytes) -> Literal["", "events", "lines"]:
        """Return the kind of body that may continue with one event or line per read, if nothing is held."""
        if not (self._carry or self._tail.size or self._unpacker is not None):
            if self.kind == "unknown" and data.startswith(_USUAL):
                self.kind = "events"
            if self.kind == "events" and (self._events is None or not self._events.is_open):
                self._usual = "events"
            elif self.kind == "lines":
                self._usual = "lines"
        return self._usual

    def _looks_escaped(self, data: bytes) -> bool:
        """Return whether letters are escaped in these bytes, so that keys may be. Then each frame is checked."""
        if self._is_escaped:
            return True
        if has_escaped_letters(self._edge + data[:_ESCAPE]) or has_escaped_letters(data):
            self._look_at_each()
        return self._is_escaped

    def _look_at_each(self) -> None:
        """Check every frame from now on, because it may have an escaped key. Batches would not be checked."""
        self._is_escaped, self._edge = True, b"\\"
        self._usual, self.head, self._decoder = "", b"", None
        if self._events is not None:
            self._events.read_singly()

    def _feed_unusual(self, data: bytes) -> Iterable[Frame]:
        if self.total > self._quick:
            self._quick = min(self.total + LARGE, self._most)
        if not self._is_escaped:
            edge = (self._edge + data[-_ESCAPE:])[-_ESCAPE:]
            self._edge = edge if _BACKSLASH in edge and data[-1:] != b"\n" else b""
        if self._carry or self._tail.size or self._unpacker is not None or self.total > self._most:
            return self._feed(data)
        is_object = self.kind == "unknown" and data[:1] == b"{"
        if is_object and len(data) <= self._limit and not self._sniff_object(data):
            self._keep(data)
            return ()
        if data[-1:] != b"\n":
            return self._feed(data)
        if self.kind == "events":
            return self._event_lines().feed(with_line_feeds(data) if _CR in data else data)
        return self._line_frames(data) if self.kind == "lines" and _CR not in data else self._feed(data)

    def _event_lines(self) -> EventLines:
        if self._events is None:
            self._events = EventLines(ref(self), self._deviate, self._bounds, self._decoder, self._of_calls, self._look)
        return self._events

    def _feed(self, data: bytes) -> Iterator[Frame]:
        unpacker = self._unpacker
        is_packed = unpacker is not None
        if is_packed and not self._is_escaped:  # what is packed, no search has seen
            self._look_at_each()
            yield from map(with_plain_keys, self._feed(data))
            return
        for plain in self._unpacked(data, unpacker) if unpacker is not None else (data,):
            self.total += len(plain) if is_packed else 0
            if self.total > self._most:
                wanted = f"a response of at most {self._most} bytes"
                raise TooLarge(exceeded(wanted, "answer_mib", f"{self.total} or more"))
            yield from self._feed_plain(plain)

    def _feed_plain(self, data: bytes) -> Iterator[Frame]:
        if self.kind == "unknown" or self.kind == "object":
            was_blank = self._is_blank and self.kind == "unknown"
            if was_blank:  # white space before a body means nothing, and would be looked at with all that follows
                data = data.lstrip(_SPACE)
            is_blank = self._is_blank = was_blank and not data.strip(_BLANK)
            if is_blank or (self.kind == "object" and _LF not in data and _CR not in data):
                self._keep(data)
                return
            data = self._with_tail(data)
            was_packed = self._unpacker is not None
            if not self._sniff(data):
                self._keep(data)
                return
            if self._unpacker is not None and not was_packed:
                yield from self._feed(data)
                return
            data = data.removeprefix(_BOM)
        if self.kind == "array":
            yield from self._array_items(data)
            return
        if self._carry or _CR in data:
            data = self._carry + data
            self._carry = b"\r" if data[-1:] == b"\r" else b""
            if self._carry:
                data = data[:-1]
            data = with_line_feeds(data)
        yield from self._lines(data)

    def close(self) -> Iterable[Frame]:
        """End the body. Return what was held, complete or not."""
        if self.kind == "object" and not self._is_escaped:  # nothing else came: what most whole answers are
            self.kind = "document"
            return self._documents(self._tail.take().removeprefix(_BOM).strip())
        if (
            self._tail.size
            or self._carry
            or self.kind == "array"
            or (self._events is not None and self._events.is_open)
        ):
            return map(with_plain_keys, self._close()) if self._is_escaped else self._close()
        return ()

    def _close(self) -> Iterator[Frame]:
        if self.kind in ("unknown", "object") and self._tail.size:
            yield from self._close_unknown()
        if self._carry:
            self._carry = b""
            yield from self._lines(b"\n")
        rest = self._tail.take()
        if self.kind == "document":
            yield from self._documents(rest)
        elif self.kind == "array":
            pending = self._array.pending() if self._array is not None else b""
            if pending:
                yield self._checked(pending), b""
        elif self.kind == "lines":
            if rest.strip():
                yield from self._line_frames(rest)
        elif self.kind == "text":
            self.add_stray(rest)
        else:
            yield from self._event_lines().close(rest)

    # ------------------------------------------------------------ what the body is

    def _sniff(self, data: bytes) -> bool:
        """Detect the kind from the first bytes. Return False while they are too few."""
        if self.total == len(data) and (packed := is_packed(data)) is not False:  # within another is none: there
            if packed:  # could be thousands
                self._unpacker, self._is_blank = Unpacker(self._limit), True
            return packed is True
        if len(data) < 3 and _BOM.startswith(data):
            return False
        if data[:3] == _BOM:
            self._deviate("byte-order-mark", "body", "")
            data = data[3:]
        start = data.lstrip(_SPACE)
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
        elif (len(start) < 6 and _LF not in start) or _MAY_BE_FIELD.match(start):  # a field, or a word of a text
            return False
        elif _FIELD.match(start) or _OWN_FIELD.match(start):
            self.kind = "events"
        else:
            self.kind = "text"
        return True

    def _sniff_object(self, start: bytes) -> bool:
        """Detect JSON: lines if the first line is complete, else one document (pretty-printed)."""
        cuts = [cut for cut in (start.find(b"\n"), start.find(b"\r")) if cut >= 0]
        if not cuts:
            self.kind = "object"
            return False
        self.kind = "lines" if _json.is_json(start[: min(cuts)]) else "document"
        return True

    def _close_unknown(self) -> Iterator[Frame]:
        data = self._tail.take()
        if data[:3] == _BOM:
            if self._is_blank:
                self._deviate("byte-order-mark", "body", "")
            data = data[3:]
        start = data.strip()
        if start[:1] == b"{":
            self.kind = "document"
            yield from self._documents(start)
        elif start:
            self.kind = "text"
            self.add_stray(start)

    def _unpacked(self, data: bytes, unpacker: Unpacker) -> Iterator[bytes]:
        """Yield the next bytes of a compressed body, decompressed."""
        size = 0
        try:
            for plain in unpacker.steps(data):
                size += len(plain)
                if size > self._limit:
                    raise too_large(self._limit, size)
                self._tell_packed(plain)
                yield plain
        except Broken as problem:
            if problem.head:  # nothing ever came out: it is no packed body
                self._unpacker, self.kind = None, "text"
                self.add_stray(problem.head)
                return
            self._tell_packed(problem.plain)
            self._deviate("stray-text", "body", "broken gzip data")
            yield problem.plain

    def _tell_packed(self, plain: bytes) -> None:
        if plain and self.kind == "unknown" and self._is_blank and not self._tail.size:
            self._deviate("mislabelled-gzip", "body", "")

    # ------------------------------------------------------------ lines

    def _lines(self, data: bytes) -> Iterable[Frame]:
        """Pass complete lines on; keep the rest."""
        cut = data.rfind(b"\n") + 1
        if not cut or self.kind == "document" or self.kind == "text":
            self._keep(data)
            return ()
        whole = data[:cut]
        if self._tail.size:
            whole = self._with_tail(whole)
        if cut < len(data):
            self._keep(data[cut:])
        return self._event_lines().feed(whole) if self.kind == "events" else self._line_frames(whole)

    def _keep(self, data: bytes) -> None:
        if self.kind == "text":
            self.add_stray(data)
            return
        self._tail.add(data)
        if self._tail.size > self._limit:
            raise too_large(self._limit, self._tail.size)

    def _with_tail(self, data: bytes) -> bytes:
        """Return the held bytes with the next ones."""
        if (size := self._tail.size + data.find(b"\n")) > self._limit:
            raise too_large(self._limit, size)
        return self._tail.take(data)

    def _line_frames(self, data: bytes) -> Iterator[Frame]:
        lines = lines_of(data)
        for line in lines if len(data) <= LARGE else map(self._checked, lines):
            if line[:1] == b"{":
                self.document = self.document or line
                yield line, b""
            elif line and not line.isspace():
                yield from self._odd_line(line)

    def _checked(self, frame: bytes) -> bytes:
        return check_large(frame, self._bounds, self._look)

    def _odd_line(self, line: bytes) -> Iterator[Frame]:
        """Read a line of a JSON-lines body that does not begin with a brace: of an event stream, or a broken one."""
        text = line.strip()
        if text[:5] == b"data:":
            self._deviate("stray-text", "body", "data: in lines of JSON")
            text = text[5:].strip()
        elif _FIELD.match(text):
            self._deviate("stray-text", "body", clip(text.decode("utf-8", "replace")))
            if b'"' not in text and b"{" not in text:  # else it may be the rest of a line
                return
        if text[:1] in (b"{", b"[") or text:
            yield text, b""

    def _array_items(self, data: bytes) -> Iterator[Frame]:
        if self._array is None:
            self._array = ArrayItems()
        for item in self._array.feed(data):
            yield self._checked(item), b""
        if (size := self._array.size()) > self._limit:
            raise too_large(self._limit, size)

    def _documents(self, text: bytes) -> Iterator[Frame]:
        """Read a body of one document, or several in a row; unreadable text line by line."""
        if not text.strip():
            return
        self._checked(text)
        if (bare := text.rstrip())[-12:] == b"data: [DONE]":  # quirk: marker-behind-a-whole-answer
            self._deviate("stray-text", "body", "data: [DONE]")
            text = bare[:-12]
        if _json.is_json(text):
            self.document = text
            yield text, b""
            return
        value, told = _json.decode_lenient(text), text.decode("utf-8", "replace")
        values = _json.split_values(told, value.problem) if type(value) is Malformed else [told.strip(" \t\r\n")]
        if isinstance(values, Malformed):
            if text.count(b"\n{") == 0:
                yield text, b""
            else:
                self.kind = "lines"
                yield from self._line_frames(text)
            return
        if len(values) > 1:
            self._deviate("bare-json-line", "body", "several values in one line")
        for value in values:
            yield value.encode("utf-8", "replace"), b""

    def add_stray(self, text: bytes) -> None:
        """Take text that is no frame."""
        if len(self.stray) < _STRAY_LIMIT:
            self.stray = (self.stray + text)[:_STRAY_LIMIT]


def write_event(data: bytes, name: str = "") -> bytes:
    """Return one server-sent event. `data` has no line ends."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data) if name else b"data: %b\n\n" % data
