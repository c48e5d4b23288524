"""A proxy on this machine that passes bytes on as they come, and keeps each exchange."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from io import BufferedIOBase
from typing import Any, Final, Protocol, TypeVar, final
from urllib.parse import urlsplit

from dragoman.errors import DragomanError, UsageError
from dragoman.gathered import Gathered
from dragoman.http.response import Response
from dragoman.http.timeouts import Timeouts
from dragoman.http.transport import Transport, TransportFailed
from dragoman.providers.endpoint import Outgoing
from dragoman.recording.case import Exchange
from dragoman.recording.local_server import LARGEST, Asked, Served, read_body, refuse
from dragoman.recording.redact import REQUEST_HEADERS, RESPONSE_HEADERS, Redactor, Withheld
from dragoman.recording.upstream import Upstream

T = TypeVar("T")
#: What the proxy says of its own connection.
_OUR_HEADERS: Final = frozenset({"content-length", "transfer-encoding", "connection", "date", "server"})
_END_SECONDS: Final = 5.0
_LOCAL: Final = ("127.0.0.1", "localhost", "::1")


class Answer(Protocol):
    """An answer to a request: status, headers, pieces of the body as they come. `is_cut` is known at their end."""

    status: int
    headers: dict[str, str]
    is_cut: bool

    def pieces(self) -> Iterator[bytes]:
        """Yield the body."""
        ...


#: Takes method, path, headers and body.
Answering = Callable[[str, str, dict[str, str], bytes], Answer]


@final
class LoopThread:
    """An event loop in a thread, with the transport that lives in it."""

    __slots__ = ("_loop", "_thread", "_transport")

    def __init__(self, timeouts: Timeouts, *, proxy: str | None = None, ca_file: str | None = None) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._transport = Transport(timeouts=timeouts, proxy=proxy, ca_file=ca_file)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    @property
    def transport(self) -> Transport:
        """Return the transport. Use it inside coroutines of `run`."""
        return self._transport

    def close(self) -> None:
        """Stop the loop."""
        self.run(self._transport.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@final
class Recorder:
    """Sends requests to an upstream and passes each exchange to `keep`, without its secrets."""

    __slots__ = ("_is_idle", "_keep", "_loop", "_open", "_redactor", "_upstream")

    def __init__(
        self, upstream: Upstream, loop: LoopThread, redactor: Redactor, keep: Callable[[Exchange], None]
    ) -> None:
        self._upstream, self._loop, self._redactor, self._keep = upstream, loop, redactor, keep
        self._open: list[_Told] = []
        self._is_idle = threading.Condition()

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        """Send a request. Raises TransportFailed, ConfigError if there is no answer."""
        asked = Exchange(method, path, {}, body, 0, {}, b"")
        outgoing = self._upstream.outgoing(method, path, headers, body, asked.protocol)
        response = self._loop.run(self._ask(outgoing))
        told = _Told(self, response, (method, path, headers, body))
        with self._is_idle:
            self._open.append(told)
        return told

    async def _ask(self, outgoing: Outgoing) -> Response:
        """Send a request inside the loop, because the transport's connections belong to it."""
        return await self._loop.transport.open(outgoing)

    def close(self) -> None:
        """Abort what is still under way, and wait until it is kept: answers that hang are what people report."""
        with self._is_idle:
            for told in self._open:
                self._loop.run(_abort(told.response))
            self._is_idle.wait_for(lambda: not self._open, timeout=_END_SECONDS)

    def keep(self, told: _Told, received: Gathered) -> None:
        """Write the exchange down."""
        try:
            self._write(told, received)
        finally:
            with self._is_idle:
                self._open.remove(told)
                self._is_idle.notify_all()

    def _write(self, told: _Told, received: Gathered) -> None:
        method, path, headers, body = told.asked
        exchange = clean_exchange(
            self._redactor,
            Exchange(
                method, path, headers, body, told.status, told.headers, received.joined(), told.is_cut,
                f"recorded from {self._upstream.title}", "the answer is too large" if told.is_large else "",
            ),
        )  # fmt: skip
        self._keep(exchange)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a response's coroutine and wait for it."""
        return self._loop.run(coroutine)


def clean_exchange(redactor: Redactor, exchange: Exchange) -> Exchange:
    """Return the exchange without secrets, as it may be written down."""
    headers = redactor.headers(exchange.headers, REQUEST_HEADERS)
    answered = redactor.headers(exchange.response_headers, RESPONSE_HEADERS)
    path, request = redactor.path(exchange.path), redactor.request(exchange.request)
    body, withheld = b"", exchange.withheld
    if not withheld:
        try:
            body = redactor.response(exchange.body)
        except Withheld as problem:
            withheld = str(problem)
    return Exchange(
        exchange.method, path, headers, request, exchange.status, answered, body, exchange.is_cut,
        redactor.text(exchange.source), withheld,
    )  # fmt: skip


@final
class _Told:
    """A response that is passed on and kept."""

    def __init__(self, recorder: Recorder, response: Response, asked: tuple[str, str, dict[str, str], bytes]) -> None:
        self.status, self.headers = response.status, dict(response.headers)
        self.is_cut = self.is_large = False
        self.response, self.asked = response, asked
        self._recorder = recorder

    def pieces(self) -> Iterator[bytes]:
        """Yield the body. If the client leaves, it is read to its end, so that it is not kept as a broken one."""
        received = Gathered()
        size = 0
        try:
            while data := self._next():
                size += len(data)
                self.is_large = size > LARGEST
                if self.is_large:
                    received.clear()
                else:
                    received.add(data)
                yield data
        finally:
            self._recorder.run(_close(self.response))
            self._recorder.keep(self, received)

    def _next(self) -> bytes:
        try:
            return self._recorder.run(self.response.read())
        except TransportFailed:
            self.is_cut = True
            return b""


async def _close(response: Response) -> None:
    response.close()


async def _abort(response: Response) -> None:
    response.abort()


def _may_ask(headers: Mapping[str, str]) -> bool:
    """Return whether the request comes from a program of this machine, not from a web page."""
    origin = headers.get("origin")
    if headers.get("sec-fetch-site") == "cross-site":  # pictures, scripts and links of a page come without an Origin
        return False
    return _is_local(headers.get("host") or "") and (not origin or _is_local(origin.partition("://")[2]))


def _is_local(host: str) -> bool:
    try:
        return (urlsplit(f"//{host}").hostname or "") in _LOCAL
    except ValueError:
        return False


def _answered(
    answering: Answering, method: str, path: str, headers: dict[str, str], source: BufferedIOBase
) -> Answer | tuple[int, str]:
    """Return the answer to a request, or the status and message of its refusal."""
    headers = {name.lower(): value for name, value in headers.items()}
    if not _may_ask(headers):
        return 403, "this is a recorder for programs on this machine, not for web pages"
    if path[:1] != "/":  # behind an address without a path it would go on with the host's name
        return 400, "expected a path that begins with /"
    body = read_body(headers, source)
    if body is None:
        return 413, f"the request is larger than {LARGEST} bytes, or its length is not told"
    try:
        return answering(method, path, headers, body)
    except (TransportFailed, DragomanError) as problem:
        return 500 if isinstance(problem, UsageError) else 502, f"dragoman: {problem}"


def _reaches_client(write: Callable[..., object], *data: bytes) -> bool:
    """Write to a client. Return False if it has left."""
    try:
        write(*data)
    except OSError:
        return False
    return True


def serve(answering: Answering, port: int = 0) -> Served:
    """Start a server on this machine that passes every request to `answering`.

    It accepts requests for this machine's names only, and none of another origin: web pages must not use it.

    Raises:
        UsageError: the port is taken.
    """

    def respond(asked: Asked) -> None:
        answer = _answered(answering, asked.command, asked.path, dict(asked.headers.items()), asked.rfile)
        if isinstance(answer, tuple):
            refuse(asked, *answer)
        else:
            _send(asked, answer)

    return Served(respond, port)


def _send(asked: Asked, answer: Answer) -> None:
    has_body = asked.command != "HEAD" and answer.status not in (204, 304)
    asked.send_response(answer.status)
    for name, value in answer.headers.items():
        if name not in _OUR_HEADERS:
            asked.send_header(name, value)
    if has_body:
        asked.send_header("transfer-encoding", "chunked")
    is_gone = not _reaches_client(asked.end_headers)
    write = asked.wfile.write
    for piece in answer.pieces():  # to the end, also where nobody listens: it is kept
        is_gone = is_gone or not has_body or not _reaches_client(write, b"%x\r\n%b\r\n" % (len(piece), piece))
    if has_body and not is_gone and not answer.is_cut:
        _reaches_client(write, b"0\r\n\r\n")
    asked.close_connection = answer.is_cut or is_gone
