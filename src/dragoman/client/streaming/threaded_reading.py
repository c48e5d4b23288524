"""Decode, and write, in a thread what may take long, while the connection waits and others have their turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Final, final

from dragoman.bounds import USUAL_BOUNDS
from dragoman.codec.compression import FIRST_BYTES
from dragoman.events import Event
from dragoman.http.response import Response

#: Bytes that are read without a look at the clock: some tens of milliseconds, of whatever they are.
AT_ONCE: Final = 4 * 1024
#: So many are read in two parts: a short rest would be no batch.
LONGEST: Final = AT_ONCE + 2048
#: The same of an event stream that holds little of what takes long to read.
_USUAL_AT_ONCE: Final = 48 * 1024
_EVENT_STREAM: Final = (b"data: ", b"event: ")  # how a body begins that is cut into events and lines alone
#: A byte → in how many bytes of such a stream it stands once at most. These tell how many events and objects there are
#: to be read, and how much of a text may be a call or must be mended.
_RARE: Final = ((b"\n", 40), (b"{", 24), (b"\\", 16), (b"<", 128), (b">", 64))
_ENDS: Final = (b"\n\n", b"\r\n\r\n", b"\n")
#: Bytes of an answer whose end is read in a thread: fields that nobody knows, calls and texts may wait for it.
_LONG: Final = 128 * 1024
#: Events that are given on at once: what writes them takes some milliseconds.
MOST_EVENTS: Final = 512
_ENDING: Final = 64
#: Seconds of processor time after which a thread reads the rest of what came at once: frames of two bytes each, or a
#: text of openers, take a hundred times as long as an answer's usual ones.
_MOST_SECONDS: Final = 0.01


def _end_of_events(data: bytes, most: int) -> int:
    """Return where to cut what is longer: behind an empty line, so that no event is cut; else behind a line."""
    for end in _ENDS:
        if (place := data.rfind(end, 0, most)) >= 0:
            return place + len(end)
    return most


def _is_usual(data: bytes) -> bool:
    """Return whether these bytes of an event stream are decoded as fast as usual."""
    return all(_is_rare(byte, data, len(data) // distance) for byte, distance in _RARE)


def _is_rare(byte: bytes, data: bytes, most: int) -> bool:
    """Return whether a byte occurs at most `most` times. To replace searches memory; `count` takes a step per byte."""
    return byte not in data.replace(byte, b" ", most)


def portions(events: list[Event]) -> Iterator[list[Event]]:
    """Yield events in lists that may be passed on at once, at least one list; others have their turn in between.

    A thread may read a hundred thousand. The end of an answer stays together, because its last text tells what its end
    cites.
    """
    start = 0
    while len(events) - start > MOST_EVENTS + _ENDING:
        yield events[start : start + MOST_EVENTS]
        start += MOST_EVENTS
    yield events[start:] if start else events


def _tell(events: list[Event], ahead: Callable[[list[Event]], None]) -> None:
    for portion in portions(events):
        ahead(portion)


@final
class ThreadedReader:
    """Takes the bytes of one answer, in order.

    Attributes:
        ahead: called in the thread that read them with events that `give` gets next: one frame of a MiB may hold a
            hundred thousand values, and to write them takes as long as to read them. None: nobody writes them.
        is_wanted: the receiver takes more.
        unread: bytes that came since the last event.
        size: bytes that did not come through here; the others are added.
    """

    __slots__ = (
        "_feed", "_has_worked", "_is_event_stream", "_is_packed", "_kept", "_most", "_problem", "_task", "ahead",
        "is_wanted", "size", "unread",
    )  # fmt: skip

    def __init__(self, feed: Callable[[bytes], list[Event]], most: int = USUAL_BOUNDS.apart) -> None:
        """Create it.

        Args:
            feed: the exchange's.
            most: pending bytes without an event yet (an incomplete frame, a call that must be read whole) above which a
                thread reads.
        """
        self._most = most
        self._feed = feed
        self._is_event_stream: bool | None = None  # until something came
        self._is_packed = self._has_worked = False
        self.ahead: Callable[[list[Event]], None] | None = None
        self._kept: list[bytes] = []
        self._problem: Exception | None = None
        self.is_wanted: bool = True
        self._task: asyncio.Task[None] | None = None
        self.size: int = 0
        self.unread: int = 0

    @property
    def is_busy(self) -> bool:
        """Whether a thread reads: nothing else may feed the exchange."""
        return self._task is not None

    def is_due(self, size: int) -> bool:
        """Return whether `size` further bytes must be read in a thread."""
        return self._task is not None or self._is_packed or (self.unread > 0 and self.unread + size > self._most)

    async def run(self, data: bytes) -> list[Event]:
        """Return the events of the next bytes, for a caller that awaits each read."""
        self._is_packed = self._is_packed or (self._is_event_stream is None and data.startswith(FIRST_BYTES))
        if self.is_due(len(data)):
            events, rest = list[Event](), data
        else:
            events, rest = self.some(data)
        if rest:
            self._has_worked = True
            events += await asyncio.to_thread(self._fed, rest)
        return events

    async def go_ahead(self, events: list[Event], ahead: Callable[[list[Event]], None] | None) -> None:
        """Call `ahead` in a thread for the first events, if a thread read any of them."""
        if self._has_worked and ahead is not None:
            await asyncio.to_thread(_tell, events, ahead)

    def some(self, data: bytes) -> tuple[list[Event], bytes]:
        """Return the events of the next bytes, and the bytes that a thread must read because they are too much work."""
        if self._is_event_stream is None:
            self._is_event_stream = data.startswith(_EVENT_STREAM)
        if len(data) < LONGEST:
            return self._fed(data), b""
        events: list[Event] = []
        until: float | None = None
        while data:
            is_usual = self._is_event_stream and _is_usual(data[:_USUAL_AT_ONCE])
            most = _USUAL_AT_ONCE if is_usual else AT_ONCE
            cut = len(data) if len(data) < max(most, LONGEST) else _end_of_events(data, most)
            if self.is_due(cut):
                break
            if cut == len(data):  # as all of a burst mostly is: nobody needs the time, which takes a system call
                return events + self._fed(data), b""
            until = until or time.thread_time() + _MOST_SECONDS
            events += self._fed(data[:cut])
            data = data[cut:]
            if time.thread_time() > until:
                break
        return events, data

    def _fed(self, data: bytes) -> list[Event]:
        events = self._feed(data)
        self.size += len(data)
        self.unread = 0 if events else self.unread + len(data)
        return events

    def _told_ahead(self, events: list[Event]) -> list[Event]:
        """Return the events. `ahead` has had them in the lists in which they are given on."""
        if (ahead := self.ahead) is not None and events:
            _tell(events, ahead)
        return events

    async def end(self, work: Callable[[], list[Event]]) -> list[Event]:
        """Return the last events: `work` reads the rest, and what was held until the end is judged."""
        if self.unread > self._most or self.size > _LONG:
            self._has_worked = True
            return await asyncio.to_thread(lambda: self._told_ahead(work()))
        return work()

    # ------------------------------------------------------------ while bytes are poured

    def take(self, data: bytes, response: Response, give: Callable[[list[Event]], None]) -> None:
        """Read as many of these bytes as may be read inline, and the rest in a thread; `give` as in `keep`."""
        if not self.is_due(len(data)):
            events, data = self.some(data)
            give(events)
        if data:
            self.keep(data, response, give)

    def keep(self, data: bytes, response: Response, give: Callable[[list[Event]], None]) -> None:
        """Read these bytes in a thread, after those being read. The connection waits until that is done.

        Args:
            give: called with the events, in the event loop; also with an empty list.
        """
        self._kept.append(data)
        if self._task is None:
            response.pause()
            self._task = asyncio.get_running_loop().create_task(self._work(response, give))

    def _fed_ahead(self, data: bytes) -> list[Event]:
        return self._told_ahead(self._fed(data))

    async def _work(self, response: Response, give: Callable[[list[Event]], None]) -> None:
        try:
            while self._kept:
                data = b"".join(self._kept)
                self._kept.clear()
                for portion in portions(await asyncio.to_thread(self._fed_ahead, data)):
                    give(portion)
                    await asyncio.sleep(0)
        except Exception as problem:  # an error of the reader's; it is told where it waits
            self._problem = problem
            response.abort()
        finally:
            self._task = None
            if self.is_wanted:
                response.resume()

    async def idle(self) -> None:
        """Wait until nothing is being read. Raises `Exception`: the thread's."""
        if self._task is not None:
            await asyncio.shield(self._task)
        if self._problem is not None:
            raise self._problem

    def stop(self) -> None:
        """Stop, because the answer is not wanted any more. The thread's current work ends by itself."""
        self.ahead = None  # it leads back here, which would be a circle
        if self._task is not None:
            self._task.cancel()
