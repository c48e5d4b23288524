"""What a transport gives: a response whose body is still coming, and the one way in which it breaks."""

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


class Response(Protocol):
    """A response whose body is still coming. Names of `headers` are in lower case."""

    status: int
    headers: Mapping[str, str]

    async def read(self) -> bytes:
        """What has come, at least one byte; b"" at the end of the body.

        Raises:
            TransportFailed: the connection broke, or the body is not what its headers say.
        """
        ...

    async def pour(self, sink: Sink) -> None:
        """Give `sink` all that still comes, each piece as it is read from the socket; returns at the end of the body.

        Raises:
            TransportFailed: as `read`.
        """
        ...

    def pause(self) -> None:
        """Take no more from the network: the receiver has enough."""
        ...

    def resume(self) -> None:
        """Go on after `pause`."""
        ...

    def abort(self) -> None:
        """Close the connection at once; a `read` or `pour` that waits ends with `TransportFailed`."""
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
        """How many are open, as far as that is known."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


def place_of(url: str) -> str:
    """A URL as it may be shown: its query may hold a key."""
    return url.partition("?")[0]


def unknown_host(place: str, hint: str = "") -> Failure:
    """No such host."""
    return Failure("connection", f"the host name of {place} is not known{hint}", code="unknown_host")


def untrusted(place: str) -> Failure:
    """No TLS, or an authority that is not known."""
    message = f"no trusted TLS connection to {place}; an own authority goes into [http] ca_file"
    return Failure("connection", message, code="tls")


def not_in_time(place: str, hint: str = "") -> Failure:
    """No connection within the connect clock."""
    return Failure("timeout", f"no connection to {place} in time{hint}")


def not_connected(place: str, reason: str, hint: str = "") -> Failure:
    """Nobody listens, or no way there."""
    return Failure("connection", f"no connection to {place}: {reason}{hint}", code="refused")


def no_address(place: str) -> Failure:
    """The text is not a URL."""
    return Failure("bad_request", f"expected an address, got {place}")


def no_answer(place: str) -> Failure:
    """Closed before the head."""
    return Failure("connection", f"{place} closed the connection without an answer")


def no_http(place: str, problem: str) -> Failure:
    """Bytes that are not HTTP."""
    return Failure("wire", f"{place} does not answer in HTTP: {problem[:160]}")


def broken(place: str, problem: BaseException) -> Failure:
    """Broken before the head."""
    return Failure("connection", f"the connection to {place} broke: {type(problem).__name__}")


def broken_body() -> Failure:
    """Broken after the head."""
    return Failure("connection", "the body of the response broke off or is not what its headers say")
