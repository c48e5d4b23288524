"""The only file that imports the HTTP library. Its exceptions become failures here, by one table.

Redirects are not followed, cookies are not kept, environment proxies are not read.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import Any, Final

from dragoman.client.clocks import Clocks
from dragoman.errors import ConfigError, MissingExtra
from dragoman.events import Failure
from dragoman.providers.endpoint import Outgoing

try:
    import aiohttp
except ModuleNotFoundError:  # pragma: no cover - the extra is part of the test environment
    raise MissingExtra('talking to a model needs the extra "client": pip install "dragoman[client]"') from None

#: Most bytes of a response that may wait to be read.
_BUFFER: Final = 256 * 1024


class TransportFailed(Exception):
    """The exchange broke below HTTP; `failure` says how."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Response:
    """A response whose body is still coming."""

    __slots__ = ("_response", "headers", "status")

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in response.headers.items()}

    async def read(self) -> bytes:
        """What has come, at least one byte; b"" at the end of the body.

        Raises:
            TransportFailed: the connection broke, or the body is not what its headers say.
        """
        try:
            return await self._response.content.readany()
        except (aiohttp.ClientError, OSError, asyncio.IncompleteReadError, ValueError) as problem:
            raise TransportFailed(_failure(problem, self._response.url.host or "")) from None

    def abort(self) -> None:
        """Close the connection at once; a `read` that waits ends with `TransportFailed`."""
        self._response.content.set_exception(TimeoutError("no time left"))
        self._response.close()

    def close(self) -> None:
        """Close the connection at once, unless the body was read to its end: then it goes back to the pool."""
        self._response.close()


class _Connection:
    """Whether a request went over a connection that had served another one."""

    __slots__ = ("is_reused",)

    def __init__(self) -> None:
        self.is_reused = False


async def _note_reuse(session: object, context: Any, parameters: object) -> None:
    context.trace_request_ctx.is_reused = True


class Transport:
    """A pool of connections. Made and used in one event loop."""

    __slots__ = ("_ca_file", "_connect", "_proxy", "_session")

    def __init__(self, *, clocks: Clocks, proxy: str | None = None, ca_file: str | None = None) -> None:
        """`proxy`: an http:// URL; `ca_file`: PEM file of further authorities."""
        self._session: aiohttp.ClientSession | None = None
        self._connect = clocks.connect
        self._proxy = proxy
        self._ca_file = ca_file

    async def open(self, outgoing: Outgoing) -> Response:
        """Send a request and wait for the head of its response.

        Raises:
            TransportFailed: no connection, or it broke before the head.
        """
        session = self._session or self._open_session()
        connection = _Connection()
        try:
            try:
                response = await self._send(session, outgoing, connection)
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                # llama.cpp promises to keep a connection and closes it after a stream; a request that such a
                # connection swallowed without a byte of answer was not read.
                if not connection.is_reused:
                    raise
                response = await self._send(session, outgoing, _Connection())
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            raise TransportFailed(_failure(problem, outgoing.url, proxy=self._proxy)) from None
        return Response(response)

    async def _send(
        self, session: aiohttp.ClientSession, outgoing: Outgoing, connection: _Connection
    ) -> aiohttp.ClientResponse:
        return await session.request(
            outgoing.method,
            outgoing.url,
            data=outgoing.body or None,
            headers={"accept-encoding": "identity", **outgoing.headers},
            allow_redirects=False,
            proxy=self._proxy,
            trace_request_ctx=connection,
        )

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open_session(self) -> aiohttp.ClientSession:
        context: ssl.SSLContext | bool = True
        if self._ca_file:
            try:
                context = ssl.create_default_context()
                context.load_verify_locations(self._ca_file)
            except OSError as problem:
                raise ConfigError(f"http.ca_file {self._ca_file}: {problem}") from None
        trace = aiohttp.TraceConfig()
        trace.on_connection_reuseconn.append(_note_reuse)
        self._session = aiohttp.ClientSession(
            trace_configs=[trace],
            connector=aiohttp.TCPConnector(limit=0, ssl=context, keepalive_timeout=30),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._connect, sock_read=None),
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=_BUFFER,
            trust_env=False,
            auto_decompress=False,  # the reader of the body knows gzip by its first bytes, with a size limit
            raise_for_status=False,
        )
        return self._session


def _failure(problem: BaseException, where: str, *, proxy: str | None = None) -> Failure:
    """The library's exception in our words, with a code where a fix depends on it. No URL's query, no header and no
    body is ever quoted."""
    place = where.partition("?")[0]
    hint = ""
    if proxy is None and _proxied():
        hint = "; the environment names a proxy, which dragoman uses only when [http] proxy says so"
    match problem:
        case aiohttp.ClientConnectorDNSError():
            return Failure("connection", f"the host name of {place} is not known{hint}", code="unknown_host")
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientConnectorSSLError() | aiohttp.ClientSSLError():
            message = f"no trusted TLS connection to {place}; an own authority goes into [http] ca_file"
            return Failure("connection", message, code="tls")
        case aiohttp.ConnectionTimeoutError():
            return Failure("timeout", f"no connection to {place} in time{hint}")
        case aiohttp.ClientProxyConnectionError() | aiohttp.ClientHttpProxyError():
            return Failure(
                "connection", f"the proxy of [http] proxy does not take the connection to {place}", code="proxy"
            )
        case aiohttp.ClientConnectorError():
            reason = problem.os_error.strerror or type(problem.os_error).__name__
            return Failure("connection", f"no connection to {place}: {reason}{hint}", code="refused")
        case aiohttp.InvalidURL():
            return Failure("bad_request", f"expected an address, got {place}")
        case aiohttp.ServerDisconnectedError():
            return Failure("connection", f"{place} closed the connection without an answer")
        case aiohttp.ClientPayloadError():
            return Failure("connection", "the body of the response broke off or is not what its headers say")
        case aiohttp.ClientResponseError():
            return Failure("wire", f"{place} does not answer in HTTP: {problem.message[:160]}")
        case _:
            return Failure("connection", f"the connection to {place} broke: {type(problem).__name__}")


def _proxied() -> bool:
    import os

    return any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"))
