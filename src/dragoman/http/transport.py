"""Send requests to providers: with our own HTTP/1.1 client, through a proxy with aiohttp.

Each turns its exceptions into failures by one table, so that nothing above knows which of them it was.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import ssl
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, Protocol

from dragoman.errors import ConfigError, MissingExtra, UsageError
from dragoman.http.response import BeforeSend, Pool, Response, TransportFailed
from dragoman.http.timeouts import Timeouts
from dragoman.providers.endpoint import Outgoing


def _has(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ValueError, ModuleNotFoundError):  # somebody hides it
        return False


_HAS_HTTPTOOLS = _has("httptools")
_HAS_AIOHTTP = _has("aiohttp")
if not (_HAS_HTTPTOOLS or _HAS_AIOHTTP):  # pragma: no cover - the extra is part of the test environment
    raise MissingExtra('talking to a model needs httptools, or the extra "proxy": pip install "dragoman[proxy]"')


class StandIn(Protocol):
    """A replacement for every provider while a program is tested: `dragoman.testing.FakeModel` and `Recording`."""

    def chain(self, target: str | tuple[str, ...], config: Any, resolve: Callable[[Any], Any], retries: int) -> Any:
        """Return the `Chain` of a name. `resolve` returns the one of a configuration, or raises."""
        ...

    async def open(self, outgoing: Outgoing, forward: Callable[[Outgoing], Awaitable[Response]]) -> Response:
        """As `Transport.open`. `forward` sends the request to its provider."""
        ...


#: The last one answers; only `dragoman.testing` changes this, from the beginning of a `with` block to its end.
STAND_INS: Final[list[StandIn]] = []


class Transport:
    """A pool of connections, for one event loop at a time."""

    __slots__ = ("_ca_file", "_connect", "_loop", "_pool", "_proxy")

    def __init__(self, *, timeouts: Timeouts, proxy: str | None = None, ca_file: str | None = None) -> None:
        """Create it. `proxy`: an http:// URL; `ca_file`: PEM file of further authorities."""
        self._pool: Pool | None = None
        self._loop: asyncio.AbstractEventLoop | None = None  # that of the pool
        self._connect = timeouts.connect
        self._proxy = proxy
        self._ca_file = ca_file

    def open(self, outgoing: Outgoing, before: BeforeSend | None = None) -> Coroutine[Any, Any, Response]:
        """Send a request and wait for the head of its response. `before`: called before it is written.

        Raises:
            TransportFailed: no connection, or it broke before the head.
            ConfigError: the file of authorities cannot be read.
            MissingExtra: a proxy is set, and aiohttp is not installed.
            UsageError: another event loop, which still runs, uses it.
        """
        if STAND_INS:
            return self._stood_in(outgoing, before)
        return self._here().open(outgoing, before)

    async def _stood_in(self, outgoing: Outgoing, before: BeforeSend | None) -> Response:
        if before is not None:
            waiting = before(outgoing)
            if waiting is not None:
                await waiting
        return await STAND_INS[-1].open(outgoing, self._forward)

    async def _forward(self, outgoing: Outgoing) -> Response:
        """As `open`, without the stand-in. Separate, because every request runs through `open`."""
        return await self._here().open(outgoing)

    def _here(self) -> Pool:
        """Return the pool of this event loop. The connections of a loop that has ended are forgotten."""
        loop = asyncio.get_running_loop()
        if self._pool is None or self._loop is not loop:
            if self._loop is not None and self._loop is not loop and self._loop.is_running():
                raise UsageError("an AsyncClient is used by one event loop at a time; make one for each loop")
            self._pool, self._loop = self._open_pool(), loop
        return self._pool

    @property
    def connections(self) -> int:
        """Return how many are open."""
        return self._pool.connections if self._pool is not None else 0

    async def close(self) -> None:
        """Close all connections."""
        pool, self._pool = self._pool, None
        if pool is not None and self._loop is asyncio.get_running_loop():
            await pool.close()

    def _open_pool(self) -> Pool:
        hint = ""
        if self._proxy is None and _proxied():
            hint = "; the environment names a proxy, which dragoman uses only when [http] proxy says so"
        if self._proxy is None and _HAS_HTTPTOOLS:
            from dragoman.http.pool import HttpPool

            return HttpPool(connect=self._connect, context=self._context, hint=hint)
        if not _HAS_AIOHTTP:
            raise MissingExtra('a proxy needs the extra "proxy": pip install "dragoman[proxy]"')
        from dragoman.http.aiohttp_pool import AiohttpPool

        return AiohttpPool(connect=self._connect, proxy=self._proxy, context=self._context(), hint=hint)

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        if self._ca_file:
            try:
                context.load_verify_locations(self._ca_file)
            except OSError as problem:
                raise ConfigError(f"http.ca_file {self._ca_file}: {problem}") from None
        return context


def _proxied() -> bool:
    return any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"))


__all__ = ["Response", "Transport", "TransportFailed"]
