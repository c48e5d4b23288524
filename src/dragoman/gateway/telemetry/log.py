"""Log lines of requests, one each, to standard error or a file, written by a thread so that a full pipe stops no
request.

Failures of one kind get ten lines a second; further ones are counted, and the count gets a line. Listeners (`dragoman
tail`) get the same lines.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

from dragoman import _json

#: A line of JSON in another form, with its end.
Render: TypeAlias = Callable[[bytes], bytes]

LINES_A_SECOND: Final = 10
_WAITING: Final = 1 << 20  # bytes that may wait for a slow disk or pipe
_PAUSE: Final = 0.05  # seconds that lines are gathered
_WRITE: Final = 4096  # a pipe takes so many bytes in one piece, so that lines of several workers stay whole


class Sink:
    """Writes to standard error or a file. A file that was moved away is opened again."""

    __slots__ = ("_done", "_file", "_number", "_put", "_queue", "_thread")

    def __init__(self, file: Path | None) -> None:
        """Open it. `file`: appended to, readable by its owner only; None is standard error.

        Raises:
            OSError: it cannot be opened.
        """
        self._file = file
        self._number = sys.stderr.fileno() if file is None else _open(file)
        self._put = self._done = 0  # bytes
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="dragoman-log", daemon=True)
        self._thread.start()

    def put(self, line: bytes) -> bool:
        """Queue a line. Return False if the queue is full. Never waits."""
        if self._put - self._done > _WAITING:
            return False
        self._put += len(line)
        self._queue.put(line)
        return True

    def close(self, seconds: float = 0.5) -> None:
        """Write the queue, for at most `seconds`."""
        self._queue.put(None)
        self._thread.join(seconds)

    def _work(self) -> None:
        is_open = True
        while is_open:
            lines = [self._queue.get()]
            if lines[0] is not None:
                time.sleep(_PAUSE)
            with contextlib.suppress(queue.Empty):
                while True:
                    lines.append(self._queue.get_nowait())
            is_open = None not in lines
            self._write([line for line in lines if line is not None])

    def _write(self, lines: list[bytes]) -> None:
        if self._file is not None and _is_elsewhere(self._file, self._number):
            with contextlib.suppress(OSError):
                number = _open(self._file)
                os.close(self._number)
                self._number = number
        batch = b""
        for line in [*lines, b""]:
            if batch and (not line or len(batch) + len(line) > _WRITE):
                with contextlib.suppress(OSError):  # a full disk or a closed terminal ends no answer
                    _write_all(self._number, batch)
                batch = b""
            batch += line
        self._done += sum(map(len, lines))


class Log:
    """Decides what gets a line."""

    __slots__ = ("_dropped", "_render", "_second", "_sink", "_stamp", "_when", "listeners")

    def __init__(self, sink: Sink | None, *, render: Render | None = None) -> None:
        """Create it. `sink` None: lines go to listeners only. `render`: another form than JSON, for the sink."""
        self._sink = sink
        self._render = render
        self._when: dict[str, tuple[int, int]] = {}  # by kind: the second, and how many came in it
        self._dropped: dict[str, int] = {}
        self._second = 0
        self._stamp = ""
        self.listeners: set[Callable[[bytes], None]] = set()

    @property
    def is_read(self) -> bool:
        """Whether any reader would see a line."""
        return self._sink is not None or bool(self.listeners)

    def allows(self, kind: str) -> bool:
        """Return whether one more line of this kind may be written now; count it if not."""
        now = int(time.monotonic())
        second, count = self._when.get(kind, (now, 0))
        count = count + 1 if second == now else 1
        self._when[kind] = (now, count)
        if count <= LINES_A_SECOND:
            return True
        self._dropped[kind] = self._dropped.get(kind, 0) + 1
        return False

    def write(self, entry: object) -> bool:
        """Write a line of JSON now. Return False if there was no room for it."""
        line = _json.encode(entry) + b"\n"
        for listener in tuple(self.listeners) if self.listeners else ():
            listener(line)
        return self._sink is None or self._sink.put(line if self._render is None else self._render(line))

    def now(self) -> str:
        """Return the time in UTC with milliseconds, in the form of RFC 3339."""
        seconds = time.time()
        second = int(seconds)
        if second != self._second:
            self._second = second
            self._stamp = time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(second))
        return f"{self._stamp}{int((seconds - second) * 1_000):03}Z"

    def settle(self) -> int:
        """Log how many lines were suppressed since the last call. Return their number. Call it once a second."""
        left_out, self._dropped = self._dropped, {}
        for kind, count in left_out.items():
            self.write({"time": self.now(), "kind": "left-out", "of": kind, "count": count})
        return sum(left_out.values())

    def close(self) -> None:
        """Write the queue."""
        self.settle()
        if self._sink is not None:
            self._sink.close()


class Warnings(logging.Handler):
    """Turns `logging` records into our lines. An exception's message may quote a prompt: only kind and place count."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line, unless there are too many of the kind."""
        if self._log.is_read and self._log.allows(f"{record.name} {record.msg}"):
            self._log.write({"time": self._log.now(), "kind": record.levelname.lower(), "text": record.getMessage()})


def place_of(problem: BaseException) -> str:
    """Return the kind of an exception and where it was raised, without its message."""
    trace = problem.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f" at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace is not None else ""
    return f"{type(problem).__name__}{place}"


def _open(file: Path) -> int:
    return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o600)


def _is_elsewhere(file: Path, number: int) -> bool:
    try:
        return not os.path.samestat(file.stat(), os.fstat(number))
    except OSError:
        return True


def _write_all(number: int, data: bytes) -> None:
    while data:
        data = data[os.write(number, data) :]
