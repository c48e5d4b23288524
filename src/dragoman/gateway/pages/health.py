"""The operator's pages: liveness, readiness, metrics, live log lines.

`/livez`, `/readyz` and `/startupz` say yes or no and need no key. `/metrics` and `/tail` concern all clients: they are
served at the admin listener, and here if clients need no key. A client with a key sees only its own lines.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from contextlib import ExitStack
from typing import Final

import msgspec

from dragoman.gateway.messages import Answer, Head, ResponseWriter
from dragoman.gateway.telemetry.metrics import CONTENT_TYPE
from dragoman.gateway.telemetry.record import Observer, is_of
from dragoman.gateway.telemetry.siblings import Siblings

#: What may be asked without a client key.
HEALTH: Final = frozenset({"/livez", "/readyz", "/startupz"})
PATHS: Final = HEALTH | {"/metrics", "/tail"}
_TEXT: Final = "text/plain; charset=utf-8"
_LINES: Final = "application/x-ndjson"
#: Lines that wait for one listener; one that is slower loses the oldest.
_WAITING: Final = 1000
#: Listeners that one owner of keys may have at a worker, or all where no key is needed, or all of `[admin]`.
_MOST_LISTENERS: Final = 16
#: Seconds of silence after which a listener gets an empty line, which shows whether it is still there.
_SILENCE: Final = 15.0


class State(msgspec.Struct, eq=False):
    """The state of the process between its start and its end."""

    is_started: bool = False
    draining: asyncio.Event = msgspec.field(default_factory=asyncio.Event)


class Operations:
    """Serves the pages."""

    __slots__ = ("_listening", "_observer", "_siblings", "_state")

    def __init__(self, observer: Observer, state: State, siblings: Siblings | None = None) -> None:
        self._observer = observer
        self._state = state
        self._siblings = siblings
        self._listening: Counter[str | None] = Counter()  # listeners by the owner whose lines they get; None: all lines

    @property
    def is_draining(self) -> bool:
        """Whether the process ends."""
        return self._state.draining.is_set()

    async def respond(self, head: Head, response_writer: ResponseWriter, *, only: str | None = None) -> None:
        """Serve one of `PATHS`. `only`: the owner to which the lines are restricted."""
        if head.method not in ("GET", "HEAD"):
            response_writer.send(Answer(405, b"expected GET\n", _TEXT, {"allow": "GET, HEAD"}))
        elif head.path == "/metrics" and only is not None:
            response_writer.send(
                Answer(403, b"the numbers of all clients are served at the address of [admin]\n", _TEXT)
            )
        elif head.path == "/metrics":
            others = self._siblings.others() if self._siblings is not None else ()
            response_writer.send(Answer(200, self._observer.metrics.render(others), CONTENT_TYPE))
        elif head.path == "/tail":
            await self._listen(response_writer, only)
        else:
            response_writer.send(self._health(head.path))

    def _health(self, path: str) -> Answer:
        state = self._state
        if path != "/livez" and not state.is_started:
            return Answer(503, b"starting\n", _TEXT)
        if path == "/readyz" and state.draining.is_set():
            return Answer(503, b"draining\n", _TEXT)
        if path == "/readyz" and self._observer.is_refusing:
            return Answer(503, b"the ledger cannot be written\n", _TEXT)
        notices = self._observer.notices.items() if path == "/readyz" else ()
        return Answer(200, "".join(["ok\n", *(f"{about}: {text}\n" for about, text in notices)]).encode(), _TEXT)

    async def _listen(self, response_writer: ResponseWriter, only: str | None) -> None:
        """Run `_tail` for a bounded number of concurrent listeners."""
        if self._listening[only] >= _MOST_LISTENERS:
            said = f"{_MOST_LISTENERS} listeners are connected to /tail, expected at most as many: close one\n"
            response_writer.send(Answer(503, said.encode(), _TEXT, {"retry-after": "15"}))
            return
        self._listening[only] += 1
        try:
            await self._tail(response_writer, only)
        finally:
            self._listening[only] -= 1

    async def _tail(self, response_writer: ResponseWriter, only: str | None) -> None:
        """Send every line from now on, or every one of this owner, until the listener leaves or the gateway ends."""
        lines: deque[bytes] = deque(maxlen=_WAITING)
        came = asyncio.Event()

        def take(line: bytes) -> None:
            if only is None or is_of(line, only):
                lines.append(line)
                came.set()

        listeners = self._observer.log.listeners
        draining = asyncio.create_task(self._state.draining.wait())
        try:
            with ExitStack() as stack:
                if self._siblings is not None:
                    stack.enter_context(self._siblings.heard(take))
                listeners.add(take)
                response_writer.start(200, _LINES)
                while not draining.done():
                    coming = asyncio.create_task(came.wait())
                    try:
                        await asyncio.wait((coming, draining), timeout=_SILENCE, return_when=asyncio.FIRST_COMPLETED)
                    finally:
                        coming.cancel()
                    came.clear()
                    response_writer.write(b"".join(lines) or b"\n")
                    lines.clear()
                    if response_writer.is_full:
                        await response_writer.drained()
                response_writer.end()
        finally:
            listeners.discard(take)
            draining.cancel()
