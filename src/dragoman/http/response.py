"""A transport's response, whose body is still arriving, and the one exception with which it breaks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol, TypeAlias

from dragoman.events import Failure
from dragoman.providers.endpoint import Outgoing

#: Most bytes of a response that may wait to be read, and one read of the socket more.
BUFFER: Final = 32 * 1024
#: Seconds that a connection without a request is kept.
IDLE_SECONDS: Final = 30.0

#: Takes the bytes of a body as they come.
Sink: TypeAlias = Callable[[bytes], None]
#: Called right before the first byte of a request is written, every time: a pool writes it again when a kept
#: connection died. What it gives is awaited before. When one of them raises `TransportFailed` nothing is written.
BeforeSend: TypeAlias = Callable[[Outgoing], Awaitable[None] | None]


class TransportFailed(Exception):
    """The exchange broke below HTTP; `failure` says how."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class NotAsked(TransportFailed):
    """Nobody was asked, by our own decision: no provider's name or address belongs to its words."""


class Response(Protocol):
    """A response whose body is still arriving. Names of `headers` are in lower case."""

    status: int
    headers: Mapping[str, str]

    async def read(self) -> bytes:
        """Return what has come, at least one byte; b"" at the end of the body.

        Raises:
            TransportFailed: the connection broke, or the body does not match its headers.
        """
        ...

    async def pour(self, sink: Sink) -> None:
        """Pass everything that still comes to `sink`, each piece as it is read from the socket; return at the end of
        the body.

        Raises:
            TransportFailed: as `read`.
        """
        ...

    def pause(self) -> None:
        """Stop reading from the network: the receiver has a backlog."""
        ...

    def resume(self) -> None:
        """Continue after `pause`."""
        ...

    def abort(self) -> None:
        """Close the connection at once. A waiting `read` or `pour` ends with `TransportFailed`."""
        ...

    def close(self) -> None:
        """Close the connection at once, unless the body was read to its end: then it goes back to the pool."""
        ...


class Pool(Protocol):
    """Connections to providers."""

    async def open(self, outgoing: Outgoing, before: BeforeSend | None = None) -> Response:
        """Send a request and wait for the head of its response. `before`: called before it is written.

        Raises:
            TransportFailed: no connection, or it broke before the head.
        """
        ...

    @property
    def connections(self) -> int:
        """Return how many are open, as far as that is known."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


def place_of(url: str) -> str:
    """Return a URL as it may be shown: without its query, which may contain a key."""
    return url.partition("?")[0]


def unknown_host(place: str, hint: str = "") -> Failure:
    """Return the failure for an unknown host."""
    return Failure("connection", f"the host name of {place} is not known{hint}", code="unknown_host")


def untrusted(place: str) -> Failure:
    """Return the failure for no TLS, or an unknown certificate authority."""
    message = f"no trusted TLS connection to {place}; an own authority goes into [http] ca_file"
    return Failure("connection", message, code="tls")


def not_in_time(place: str, hint: str = "") -> Failure:
    """Return the failure for no connection within the timeout."""
    return Failure("timeout", f"no connection to {place} in time{hint}")


def not_connected(place: str, reason: str, hint: str = "") -> Failure:
    """Return the failure for a refused connection, or no route."""
    return Failure("connection", f"no connection to {place}: {reason}{hint}", code="refused")


def no_address(place: str) -> Failure:
    """Return the failure for a text that is not a URL."""
    return Failure("bad_request", f"expected an address, got {place}")


def no_answer(place: str) -> Failure:
    """Return the failure for a connection that closed before the head."""
    return Failure("connection", f"{place} closed the connection without an answer")


def no_http(place: str, problem: str) -> Failure:
    """Return the failure for bytes that are not HTTP."""
    return Failure("wire", f"{place} does not answer in HTTP: {problem[:160]}")


def broken(place: str, problem: BaseException) -> Failure:
    """Return the failure for a connection that broke before the head."""
    return Failure("connection", f"the connection to {place} broke: {type(problem).__name__}")


def broken_body() -> Failure:
    """Return the failure for a connection that broke after the head."""
    return Failure("connection", "the body of the response broke off or is not what its headers say")
