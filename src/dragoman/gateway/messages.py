"""The gateway's view of HTTP: a request's head, a whole answer, and the writer of a streamed one.

`gateway/server/connection.py` implements it with sockets; a program that embeds the gateway may use something else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, final
from urllib.parse import unquote_plus

import msgspec

from dragoman.config import LimitsConfig
from dragoman.events import Failure
from dragoman.gateway.request_bodies import USUAL_BOUNDS, BodyBounds
from dragoman.secret import name_alone

_MIB: Final = 1024 * 1024
#: Values of one field of a query that are looked at.
_MOST_VALUES: Final = 8


@final
class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one request. Sizes in bytes, times in seconds; `unsent`: the backlog at which writing waits."""

    head: int = 64 * 1024
    fields: int = 100
    body: int = 32 * 1024 * 1024
    shape: BodyBounds = USUAL_BOUNDS
    #: the kernel has as much again to send in the meantime; one read of the provider's socket (64 KiB) comes on top
    unsent: int = 16 * 1024
    #: for a whole head, for `body_least` bytes of a body that is not whole, for the next request on a kept connection
    #: (a little below the 10 seconds after which it must be over; a body at less than 1 KiB/s is too slow)
    head_seconds: float = 9.5
    body_seconds: float = 9.5
    body_least: int = 9_728
    idle_seconds: float = 75.0
    #: how long a client may take nothing of what waits for it: at the end of a connection; before it
    linger_seconds: float = 5.0
    stall_seconds: float = 30.0


def read_limits(config: LimitsConfig) -> Limits:
    """Return the limits of the configuration."""
    shape = BodyBounds(
        config.depth, config.values, config.messages, config.tools, config.media_mib * _MIB, config.members
    )
    return Limits(body=config.body_mib * _MIB, shape=shape)


@final
class Head(msgspec.Struct, frozen=True):
    """A request without its body. `target` is path and query as sent; names of `headers` are in lower case.

    `address` is the client's, in the form of `client_addresses.network`. `path` and `query` are the target's, as sent.
    """

    method: str
    target: str
    headers: dict[str, str]
    address: str = ""
    path: str = ""
    query: str = ""

    def __post_init__(self) -> None:
        path, _, query = self.target.partition("?")
        msgspec.structs.force_setattr(self, "path", path)
        if query:
            msgspec.structs.force_setattr(self, "query", query)

    def __repr__(self) -> str:
        return f"Head({self.method} {self.path}, {len(self.headers)} headers)"


def query_values(query: str, name: str) -> list[str]:
    """Return the first few values of a query's field, without empty ones. Never raises, whatever the query is."""
    found: list[str] = []
    for field in query.split("&") if name in query or "%" in query else ():
        key, _, value = field.partition("=")
        if value and (key == name or ("%" in key and unquote_plus(key) == name)):
            found.append(unquote_plus(value))
            if len(found) == _MOST_VALUES:
                break
    return found


@final
class Answer(msgspec.Struct, frozen=True):
    """A whole response. `pause`: seconds until it is sent, to slow down guessing of keys."""

    __repr__ = name_alone

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: dict[str, str] = {}
    pause: float = 0.0


class ResponseWriter(Protocol):
    """Writes the response to one request: one `send`, or `start`, `write`…, then `end` or `cut`.

    Attributes:
        headers: sent with the head in either case; names in lower case.
    """

    headers: dict[str, str]

    def send(self, answer: Answer) -> None:
        """Send a whole response."""
        ...

    def start(self, status: int, content_type: str, first: bytes = b"") -> None:
        """Send the head of a streamed response, in one packet with the first piece if there is one."""
        ...

    def write(self, data: bytes) -> None:
        """Send the next piece of the body. Never waits; see `drained`."""
        ...

    def end(self, last: bytes = b"") -> None:
        """End the body, in one packet with its last piece if there is one."""
        ...

    def cut(self) -> None:
        """Close the connection after what was written, so that the client sees a body without its end."""
        ...

    @property
    def is_full(self) -> bool:
        """Whether more than `Limits.unsent` bytes wait for the client: await `drained` before reading on."""
        ...

    async def drained(self) -> None:
        """Wait until the client has read enough.

        Raises:
            ConnectionAbortedError: it does not read; nothing can be written any more.
        """
        ...

    def when_drained(self, go_on: Callable[[], None]) -> None:
        """As `drained`, for a caller that cannot await: call `go_on` once. A client that does not read is closed."""
        ...


class Application(Protocol):
    """Answers requests, and errors too, because each client expects them in its own form."""

    @property
    def is_draining(self) -> bool:
        """Whether the process ends: each connection is closed after its current or next response."""
        ...

    def admit(self, head: Head) -> Answer | None:
        """Refuse a request before its body is read, or return None."""
        ...

    def refuse(self, head: Head, failure: Failure) -> Answer:
        """Return the answer to a request that broke a limit or is not HTTP. `head` is then what could be read of it."""
        ...

    async def respond(self, head: Head, body: bytes, response_writer: ResponseWriter) -> None:
        """Answer one request. Cancelled when the client leaves."""
        ...
