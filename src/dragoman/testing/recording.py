"""`Recording`: real answers, kept once in a folder and replayed in every later run of a test."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias, final, get_args
from urllib.parse import urlsplit

import msgspec

from dragoman import _json
from dragoman.config import Config
from dragoman.errors import UsageError
from dragoman.gathered import Gathered
from dragoman.http.response import Response, TransportFailed
from dragoman.http.timeouts import Timeouts
from dragoman.http.transport import STAND_INS
from dragoman.inputs.keywords import read_word, seen
from dragoman.providers.endpoint import Outgoing
from dragoman.recording.case import Exchange, check_folder, load_cases, remove_cases, write_case
from dragoman.recording.local_server import Served
from dragoman.recording.proxy import LoopThread, Recorder, clean_exchange, serve
from dragoman.recording.redact import Redactor
from dragoman.recording.upstream import upstream_at
from dragoman.routing.target import Chain
from dragoman.secret import Secret
from dragoman.testing.known_response import KnownResponse

Mode: TypeAlias = Literal["auto", "record", "replay"]
#: Set to anything, recordings are made anew.
VARIABLE: Final = "DRAGOMAN_RECORD"
_PIECE: Final = 48  # bytes of an answer that come at once
#: What a key is while nothing goes out.
_NO_KEY: Final = "replayed"
#: Ids that dragoman makes up are others in every run.
_MADE_UP: Final = re.compile(r"\b(?:call|toolu|fc|msg|rs|resp)_[A-Za-z0-9]{24}\b")


@final
class Recording:
    """Answers of real models, kept in a folder: inside its `with` block every request is recorded or replayed.

    If the folder has no recording, requests go out, and each exchange is written there without its keys, in the form
    that `dragoman record` writes. If it has one, no request goes out: a request gets the recorded answer to the same
    request, byte by byte; no key is needed. A request that was not recorded raises UsageError.

    Args:
        folder: where the recording is.
        mode: "auto" records if the folder has none, or if the variable DRAGOMAN_RECORD is set; "record" and "replay" do
            just that.

    Attributes:
        is_recording: whether requests go out.

    Raises:
        UsageError: there is no such mode, nothing to replay, or no folder that a recording can be written to.
    """

    def __init__(self, folder: str | os.PathLike[str], mode: Mode = "auto") -> None:
        if not isinstance(folder, str | os.PathLike):
            raise UsageError(f"folder: expected a path, got {seen(folder)}")
        read_word("mode", mode, get_args(Mode))
        self._folder = Path(folder)
        try:
            cases = load_cases(self._folder)
        except (OSError, ValueError) as problem:  # ValueError: no file can have such a name
            raise UsageError(f"folder: expected one that can be read: {problem}") from None
        anew = mode == "record" or (mode == "auto" and (not cases or bool(os.environ.get(VARIABLE))))
        if not anew and not cases:
            raise UsageError(f"nothing is recorded in {self._folder}; run this once with {VARIABLE}=1")
        if anew:
            check_folder(self._folder)
        self.is_recording: bool = anew
        self._cases = [] if anew else cases
        self._kept: list[Exchange] = []
        self._redactor = Redactor()
        self._lock = threading.Lock()
        self._servers: list[Callable[[], None]] = []

    def __enter__(self) -> Self:
        """Record or replay from now on."""
        STAND_INS.append(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *problem: object) -> None:
        """Write what was recorded. A failed test leaves the folder as it was.

        Raises:
            UsageError: an answer contains a secret that cannot be removed.
        """
        STAND_INS.remove(self)
        for close in self._servers:
            close()
        self._servers.clear()
        if self.is_recording and kind is None:
            self._write()

    def __repr__(self) -> str:
        word = "recording" if self.is_recording else "replaying"
        return f"Recording({str(self._folder)!r}, {word}, {len(self._kept) or len(self._cases)} exchanges)"

    def serve(self, upstream: str | None = None, port: int = 0) -> Served:
        """Start a server on this machine that records or replays, for programs that do not use dragoman.

        Args:
            upstream: the address of the real server, as `http://127.0.0.1:11434`; needed to record.
            port: 0 takes a free one.

        Raises:
            UsageError: there is no upstream to record from, or no such port.
        """
        if not self.is_recording:
            served = serve(lambda method, path, headers, body: _Played(self._replay(method, path, body)), port)
            self._servers.append(served.close)
            return served
        if not isinstance(upstream, str):
            raise UsageError("upstream: expected the address of the server to record, as http://127.0.0.1:11434")
        loop = LoopThread(Timeouts())
        recorder = Recorder(upstream_at(upstream), loop, self._redactor, self._keep)
        served = serve(recorder.answer, port)
        self._servers += [recorder.close, served.close, loop.close]
        return served

    # ------------------------------------------------------------ before providers

    def chain(
        self, target: str | tuple[str, ...], config: Config, resolve: Callable[[Config], Chain], retries: int
    ) -> Chain:
        """Return what answers to a name, as without a recording. Replaying needs no key."""
        if self.is_recording:
            return resolve(config)
        keys = {provider: Secret(_NO_KEY) for provider in config.catalog.providers}
        return resolve(msgspec.structs.replace(config, keys={**keys, **config.keys}, unread_keys={}))

    async def open(self, outgoing: Outgoing, forward: Callable[[Outgoing], Awaitable[Response]]) -> Response:
        """Act as a transport. Raises UsageError if the request was not recorded."""
        parts = urlsplit(outgoing.url)
        path = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
        if not self.is_recording:
            kept = self._replay(outgoing.method, path, outgoing.body)
            cut = "the connection was cut, as it was when this was recorded" if kept.is_cut else ""
            return KnownResponse(kept.status, kept.response_headers, kept.body, piece=_PIECE, cut=cut)
        response = await forward(outgoing)
        asked = Exchange(
            outgoing.method, path, outgoing.headers, outgoing.body, response.status, dict(response.headers), b"",
            source=f"recorded from {parts.scheme}://{parts.netloc.rpartition('@')[2]}",
        )  # fmt: skip
        return _Recorded(response, asked, lambda exchange: self._keep(clean_exchange(self._redactor, exchange)))

    def _keep(self, exchange: Exchange) -> None:
        with self._lock:
            self._kept.append(exchange)

    def _write(self) -> None:
        for exchange in self._kept:
            if exchange.withheld:
                raise UsageError(f"{exchange.path.partition('?')[0]} cannot be recorded: {exchange.withheld}")
        remove_cases(self._folder)
        for number, exchange in enumerate(self._kept, 1):
            write_case(exchange, self._folder, number)

    def _replay(self, method: str, path: str, body: bytes) -> Exchange:
        """Return the next recorded answer to this request. Raises UsageError if there is none."""
        wanted = _asked(method, self._redactor.path(path), self._redactor.request(body))
        with self._lock:
            for place, case in enumerate(self._cases):
                if _asked(case.method, case.path, case.request) == wanted:
                    return self._cases.pop(place)
        where = f"{method} {path.partition('?')[0]}"
        raise UsageError(
            f"{where}: this request is not in the recording {self._folder}, or was answered already; "
            f"record again with {VARIABLE}=1"
        )


def _asked(method: str, path: str, body: bytes) -> tuple[str, str, str]:
    """Return the identity of a request: members in any order, generated ids numbered as they come."""
    value = _json.decode(body)
    text = body.decode("utf-8", "replace") if isinstance(value, _json.Malformed) else _json.indented(value)
    numbers: dict[str, int] = {}
    text = _MADE_UP.sub(lambda found: f"id {numbers.setdefault(found[0], len(numbers))}", text)
    return method, path, text


@final
class _Played:
    """A recorded answer, for a port or a client."""

    def __init__(self, exchange: Exchange) -> None:
        self.status, self.headers, self.is_cut = exchange.status, exchange.response_headers, exchange.is_cut
        self._body = exchange.body

    def pieces(self) -> Iterator[bytes]:
        return (self._body[at : at + _PIECE] for at in range(0, len(self._body), _PIECE))


@final
class _Recorded:
    """A response that is passed on and kept, once, when it has ended or the client has enough."""

    __slots__ = ("_asked", "_is_kept", "_keep", "_received", "_response", "headers", "status")

    def __init__(self, response: Response, asked: Exchange, keep: Callable[[Exchange], None]) -> None:
        self.status, self.headers = response.status, response.headers
        self._response, self._asked, self._keep = response, asked, keep
        self._received = Gathered()
        self._is_kept = False

    async def read(self) -> bytes:
        try:
            data = await self._response.read()
        except TransportFailed:
            self._end(is_cut=True)
            raise
        if data:
            self._received.add(data)
        else:
            self._end()
        return data

    async def pour(self, sink: Any) -> None:
        while data := await self.read():
            sink(data)

    def pause(self) -> None:
        self._response.pause()

    def resume(self) -> None:
        self._response.resume()

    def abort(self) -> None:
        self._response.abort()
        self._end()

    def close(self) -> None:
        self._response.close()
        self._end()

    def _end(self, *, is_cut: bool = False) -> None:
        if not self._is_kept:
            self._is_kept = True
            body = self._received.take()
            self._keep(msgspec.structs.replace(self._asked, body=body, is_cut=is_cut))
