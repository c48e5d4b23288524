"""HTTP over aiohttp: for proxies, and if httptools is not installed. Only this file imports it.

Redirects are not followed, cookies are not kept, environment proxies are not read.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import aiohttp

from dragoman.events import Failure
from dragoman.http.response import (
    BUFFER,
    IDLE_SECONDS,
    BeforeSend,
    Response,
    Sink,
    TransportFailed,
    broken,
    broken_body,
    no_address,
    no_answer,
    no_http,
    not_connected,
    not_in_time,
    place_of,
    unknown_host,
    untrusted,
)
from dragoman.providers.endpoint import Outgoing


class _Response:
    """A response of aiohttp."""

    __slots__ = ("_flowing", "_response", "headers", "status")

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._flowing = asyncio.Event()
        self._flowing.set()
        self.status = response.status
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in response.headers.items()}

    async def read(self) -> bytes:
        try:
            return await self._response.content.readany()
        except (aiohttp.ClientError, OSError, asyncio.IncompleteReadError, ValueError) as problem:
            raise TransportFailed(_failure(problem, self._response.url.host or "")) from None

    async def pour(self, sink: Sink) -> None:
        while data := await self.read():
            sink(data)
            await self._flowing.wait()

    def pause(self) -> None:
        self._flowing.clear()

    def resume(self) -> None:
        self._flowing.set()

    def abort(self) -> None:
        self._response.content.set_exception(TimeoutError("no time left"))
        self._flowing.set()
        self._response.close()

    def close(self) -> None:
        self._response.close()


class _Connection:
    """Whether a request's connection was used before, and the callback before the request is written."""

    __slots__ = ("is_reused", "tell")

    def __init__(self, tell: Callable[[], Awaitable[None] | None] | None) -> None:
        self.is_reused = False
        self.tell = tell


async def _note_reuse(session: object, context: Any, parameters: object) -> None:
    context.trace_request_ctx.is_reused = True
    await _tell(session, context, parameters)


async def _tell(session: object, context: Any, parameters: object) -> None:
    """Call the callback: there is a connection, and nothing was written to it."""
    if context.trace_request_ctx.tell is not None:
        waiting = context.trace_request_ctx.tell()
        if waiting is not None:
            await waiting


class AiohttpPool:
    """Connections that aiohttp keeps. Created and used in one event loop."""

    __slots__ = ("_hint", "_proxy", "_session")

    def __init__(self, *, connect: float, proxy: str | None, context: ssl.SSLContext, hint: str) -> None:
        """Create it. `connect`: seconds for a connection; `hint`: added to errors about connecting."""
        self._proxy = proxy
        self._hint = hint
        trace = aiohttp.TraceConfig()
        trace.on_connection_reuseconn.append(_note_reuse)
        trace.on_connection_create_end.append(_tell)
        self._session = aiohttp.ClientSession(
            trace_configs=[trace],
            connector=aiohttp.TCPConnector(limit=0, ssl=context, keepalive_timeout=IDLE_SECONDS),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect, sock_read=None),
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=BUFFER,
            trust_env=False,
            auto_decompress=False,  # the reader of the body knows gzip by its first bytes, with a size limit
            raise_for_status=False,
        )

    async def open(self, outgoing: Outgoing, before: BeforeSend | None = None) -> Response:
        tell = None if before is None else partial(before, outgoing)
        connection = _Connection(tell)
        try:
            try:
                response = await self._send(outgoing, connection)
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                # llama.cpp promises to keep a connection and closes it after a stream; a request that such a
                # connection swallowed without a byte of answer was not read.
                if not connection.is_reused:
                    raise
                response = await self._send(outgoing, _Connection(tell))
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            raise TransportFailed(_failure(problem, outgoing.url, hint=self._hint)) from None
        return _Response(response)

    async def _send(self, outgoing: Outgoing, connection: _Connection) -> aiohttp.ClientResponse:
        return await self._session.request(
            outgoing.method,
            outgoing.url,
            data=outgoing.body or None,
            headers={"accept-encoding": "identity"}
            | {name: value.encode(errors="replace").decode() for name, value in outgoing.headers.items()},
            allow_redirects=False,
            proxy=self._proxy,
            trace_request_ctx=connection,
        )

    @property
    def connections(self) -> int:
        return 0  # aiohttp does not tell

    async def close(self) -> None:
        await self._session.close()


def _failure(problem: BaseException, where: str, *, hint: str = "") -> Failure:
    """Return the failure of the library's exception. No URL's query, no header and no body is ever quoted."""
    place = place_of(where)
    match problem:
        case aiohttp.ClientConnectorDNSError():
            return unknown_host(place, hint)
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientConnectorSSLError() | aiohttp.ClientSSLError():
            return untrusted(place)
        case aiohttp.ConnectionTimeoutError():
            return not_in_time(place, hint)
        case aiohttp.ClientProxyConnectionError() | aiohttp.ClientHttpProxyError():
            return Failure(
                "connection", f"the proxy of [http] proxy does not take the connection to {place}", code="proxy"
            )
        case aiohttp.ClientConnectorError():
            return not_connected(place, problem.os_error.strerror or type(problem.os_error).__name__, hint)
        case aiohttp.InvalidURL():
            return no_address(place)
        case aiohttp.ServerDisconnectedError():
            return no_answer(place)
        case aiohttp.ClientPayloadError():
            return broken_body()
        case aiohttp.ClientResponseError():
            return no_http(place, problem.message)
        case _:
            return broken(place, problem)
