"""Keep and reuse connections of our own HTTP/1.1 client."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from base64 import b64encode
from collections.abc import Awaitable, Callable
from typing import Final, final
from urllib.parse import quote, unquote

from dragoman.events import Failure
from dragoman.http.connection import READ_SIZE, HttpConnection, HttpResponse
from dragoman.http.dns_lookups import DnsLookups
from dragoman.http.response import (
    IDLE_SECONDS,
    BeforeSend,
    TransportFailed,
    no_address,
    not_connected,
    not_in_time,
    place_of,
    unknown_host,
    untrusted,
)
from dragoman.providers.address import split_url
from dragoman.providers.endpoint import Outgoing

#: After so many seconds without a connection the host's next address is tried beside the first (RFC 8305).
_NEXT_ADDRESS_SECONDS: Final = 0.25
_HEADERS: Final = {"accept": "*/*", "accept-encoding": "identity", "user-agent": "dragoman"}
#: Addresses whose parts are remembered. Clients make some up: in Gemini's protocol the model is a part of them.
_PLACES: Final = 128


@final
class _Place:
    """A URL in parts. `target` stands in the request line; `headers` follow from the URL."""

    __slots__ = ("_fields", "_head", "_method", "headers", "host", "is_tls", "key", "port", "shown", "target")

    def __init__(self, key: tuple[bool, str, int], target: str, headers: dict[str, str], shown: str) -> None:
        """Create it.

        Args:
            key: whether it is TLS, host and port, which identify reusable connections.
            target: what stands in the request line.
            headers: those that follow from the URL.
            shown: the URL as errors show it.
        """
        self.key = key
        self.shown = shown
        self.is_tls, self.host, self.port = key
        self.target = target
        self.headers = headers
        self._method = ""  # of the last request, with its fields and its head: most requests have the same ones
        self._fields: dict[str, str] = {}
        self._head = b""

    def head(self, method: str, fields: dict[str, str], *, keeps: bool) -> bytes | None:
        """Return the head of a request with these fields and the place's own, without the length and the blank line.

        None if one of them cannot be sent. `keeps`: they may be cached.
        """
        if method == self._method and fields == self._fields:
            return self._head
        every = {**self.headers, **fields}
        every.pop("content-length", None)
        lines = "".join([f"{name}: {value}\r\n" for name, value in every.items()])
        if lines.count("\r") != len(every) or lines.count("\n") != len(every) or "\0" in lines:
            return None
        head = f"{method} {self.target} HTTP/1.1\r\n{lines}".encode(errors="surrogateescape")
        if keeps:
            self._method, self._fields, self._head = method, fields.copy(), head
        return head


class HttpPool:
    """Connections by host; see `Pool`. Created and used in one event loop."""

    __slots__ = (
        "_buffer",
        "_connect",
        "_context",
        "_hint",
        "_idle",
        "_lookups",
        "_loop",
        "_make_context",
        "_open",
        "_places",
        "_sweeping",
    )

    def __init__(self, *, connect: float, context: Callable[[], ssl.SSLContext], hint: str = "") -> None:
        """Create it.

        Args:
            connect: seconds for a connection.
            context: called at the first https address.
            hint: added to errors about connecting.
        """
        self._loop = asyncio.get_running_loop()
        self._connect = connect
        self._make_context = context
        self._context: ssl.SSLContext | None = None
        self._hint = hint
        self._lookups = DnsLookups()
        self._idle: dict[tuple[bool, str, int], list[HttpConnection]] = {}
        self._open: dict[HttpConnection, tuple[bool, str, int]] = {}
        self._places: dict[str, _Place] = {}
        self._sweeping: asyncio.TimerHandle | None = None
        self._buffer = memoryview(bytearray(READ_SIZE))

    async def open(self, outgoing: Outgoing, before: BeforeSend | None = None) -> HttpResponse:
        place = self._places.get(outgoing.url) or self._learn(outgoing.url)
        head = _rendered(outgoing, place)
        connection = self._kept(place)
        if connection is not None:
            connection.place = place.shown
            if before is not None and (waiting := _tell(before, outgoing, connection)) is not None:
                await _awaited(waiting, connection)
            try:
                return await connection.send(head, outgoing.body)
            except TransportFailed:
                # llama.cpp promises to keep a connection and closes it after a stream; a request that such a
                # connection swallowed without a byte of answer was not read.
                if connection.is_answered:
                    raise
        connection = await self._connected(place, place.shown)
        if before is not None and (waiting := _tell(before, outgoing, connection)) is not None:
            await _awaited(waiting, connection)
        return await connection.send(head, outgoing.body)

    @property
    def connections(self) -> int:
        return len(self._open)

    async def close(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
        for connection in tuple(self._open):
            connection.shut()
        self._idle.clear()
        await asyncio.sleep(0)  # transports close in the loop's next turn

    # ------------------------------------------------------------ connections that are kept

    def _kept(self, place: _Place) -> HttpConnection | None:
        kept = self._idle.get(place.key)
        while kept:
            connection = kept.pop()
            if connection.is_open:
                return connection
        return None

    def _free(self, connection: HttpConnection) -> None:
        key = self._open.get(connection)
        if key is None:
            connection.abort()
            return
        connection.idle_since = self._loop.time()
        self._idle.setdefault(key, []).append(connection)
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(IDLE_SECONDS, self._sweep)

    def _gone(self, connection: HttpConnection) -> None:
        key = self._open.pop(connection, None)
        kept = self._idle.get(key) if key is not None else None
        if kept and connection in kept:
            kept.remove(connection)

    def _sweep(self) -> None:
        """Close connections that were unused for long; the longest unused stand first."""
        oldest = self._loop.time() - IDLE_SECONDS
        next_look: float | None = None
        for key, kept in tuple(self._idle.items()):
            while kept and kept[0].idle_since <= oldest:
                kept.pop(0).abort()
            if kept:
                next_look = min(kept[0].idle_since, next_look or kept[0].idle_since)
            else:
                del self._idle[key]
        self._sweeping = None
        if next_look is not None:
            self._sweeping = self._loop.call_at(next_look + IDLE_SECONDS, self._sweep)

    # ------------------------------------------------------------ new connections

    def _learn(self, url: str) -> _Place:
        place = _split(url)
        if len(self._places) >= _PLACES:
            del self._places[next(iter(self._places))]
        self._places[url] = place
        return place

    async def _connected(self, place: _Place, shown: str) -> HttpConnection:
        if place.is_tls and self._context is None:
            # Reading this machine's authorities takes 20 ms and more; streams must not stand still for it.
            self._context = await asyncio.to_thread(self._make_context)
        try:
            async with asyncio.timeout(self._connect):
                literal = ":" in place.host or place.host.replace(".", "").isdigit()
                addresses = [place.host] if literal else await self._lookups.addresses(place.host)
                connection = await self._first_of(place, addresses, shown)
        except TimeoutError:
            self._lookups.forget(place.host)
            raise TransportFailed(not_in_time(shown, self._hint)) from None
        except socket.gaierror:
            raise TransportFailed(unknown_host(shown, self._hint)) from None
        except ssl.SSLError:
            raise TransportFailed(untrusted(shown)) from None
        except OSError as problem:
            self._lookups.forget(place.host)
            reason = os.strerror(problem.errno) if problem.errno else type(problem).__name__
            raise TransportFailed(not_connected(shown, reason, self._hint)) from None
        self._open[connection] = place.key
        return connection

    async def _first_of(self, place: _Place, addresses: list[str], shown: str) -> HttpConnection:
        """Return a connection to the first address that accepts one; each next one is tried a little later."""
        if len(addresses) == 1:
            return await self._dial(place, addresses[0], shown)
        waiting = list(addresses)
        tasks: set[asyncio.Task[HttpConnection]] = set()
        problem: BaseException = OSError("no address")
        try:
            while waiting or tasks:
                if waiting:
                    tasks.add(self._loop.create_task(self._dial(place, waiting.pop(0), shown)))
                patience = _NEXT_ADDRESS_SECONDS if waiting else None
                done, tasks = await asyncio.wait(tasks, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
                winner, problem = _won(done, problem)
                if winner is not None:
                    return winner
            raise problem
        finally:
            for task in tasks:
                task.add_done_callback(_abandon)
                task.cancel()

    async def _dial(self, place: _Place, address: str, shown: str) -> HttpConnection:
        _, connection = await self._loop.create_connection(
            lambda: HttpConnection(shown, free=self._free, gone=self._gone, buffer=self._buffer),
            address,
            place.port,
            ssl=self._context if place.is_tls else None,
            server_hostname=place.host if place.is_tls else None,
        )
        return connection


def _tell(before: BeforeSend, outgoing: Outgoing, connection: HttpConnection) -> Awaitable[None] | None:
    """Call the callback before a request is written. If that fails, no coroutine is left unawaited."""
    try:
        return before(outgoing)
    except BaseException:
        connection.abort()
        raise


async def _awaited(waiting: Awaitable[None], connection: HttpConnection) -> None:
    try:
        await waiting
    except BaseException:
        connection.abort()
        raise


def _abandon(task: asyncio.Task[HttpConnection]) -> None:
    """Close a connection that came too late."""
    if not task.cancelled() and task.exception() is None:
        task.result().abort()


def _won(
    done: set[asyncio.Task[HttpConnection]], problem: BaseException
) -> tuple[HttpConnection | None, BaseException]:
    """Return a connection if one was made, else the last problem."""
    winner = None
    for task in done:
        failed = task.exception()
        if failed is not None:
            problem = failed
        elif winner is None:
            winner = task.result()
        else:
            task.result().abort()
    return winner, problem


def _split(url: str) -> _Place:
    """Return the parts of a URL. Raises `TransportFailed`: it is no address."""
    found = split_url(url)
    if found is None:
        raise TransportFailed(no_address(place_of(url)))
    parts, host = found
    is_tls = parts.scheme == "https"
    port = parts.port or (443 if is_tls else 80)
    target = quote(parts.path or "/", safe="!#$%&'()*+,/:;=?@[]~")
    if parts.query:
        target += "?" + quote(parts.query, safe="!$%&'()*+,/:;=?@[]~")
    authority = f"[{host}]" if ":" in host else host
    headers = {"host": f"{authority}:{parts.port}" if parts.port else authority, **_HEADERS}
    if parts.username is not None:
        secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["authorization"] = f"Basic {b64encode(secret.encode()).decode()}"
    return _Place((is_tls, host, port), target, headers, place_of(url))


def _rendered(outgoing: Outgoing, place: _Place) -> bytes:
    """Return the head of a request. Raises `TransportFailed`: a field cannot be sent."""
    head = place.head(outgoing.method, outgoing.headers, keeps=not outgoing.has_login)
    if head is None:
        message = f"expected header fields of one line each for {place_of(outgoing.url)}"
        raise TransportFailed(Failure("bad_request", message))
    if outgoing.body or outgoing.method != "GET":
        return b"%bcontent-length: %d\r\n\r\n" % (head, len(outgoing.body))
    return head + b"\r\n"
