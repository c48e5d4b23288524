"""An HTTP/1.1 client connection, used for one response after the other: an asyncio protocol over httptools.

No queue stands between the socket and the reader. What the parser finds in one read goes on whole, to a waiting `read`
or, after `pour`, straight to a callback.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, cast

import httptools
import msgspec

from dragoman.events import Failure
from dragoman.http.field_names import read_names
from dragoman.http.response import BUFFER, Sink, TransportFailed, broken, broken_body, no_answer, no_http
from dragoman.secret import name_alone

#: Bytes of a response's head, and of 1xx heads before it; of its trailers.
_HEAD_LIMIT: Final = 64 * 1024
READ_SIZE: Final = 64 * 1024
_MANY: Final = 64  # pieces that wait for a reader, before they become one
#: What a field counts beside its own bytes: thousands of one name are joined, each time all of them.
_FIELD_COSTS: Final = 32
_TOO_LARGE_HEAD: Final = "its head is larger than 64 KiB"


class HttpResponse(msgspec.Struct, eq=False):
    """A response whose body is still arriving; see `Response`. `head`: done when status and headers are there."""

    __repr__ = name_alone

    _connection: HttpConnection | None  # None when the response is over
    head: asyncio.Future[None]
    _pieces: list[bytes] = []
    _size: int = 0
    _waiter: asyncio.Future[None] | None = None
    status: int = 0
    headers: Mapping[str, str] = {}
    sink: Sink | None = None
    has_ended: bool = False
    failure: BaseException | None = None

    # ------------------------------------------------------------ for the reader

    async def read(self) -> bytes:
        while True:
            if self._pieces:
                return self._taken()
            if self.failure is not None:
                raise raised(self.failure)
            if self.has_ended:
                return b""
            await self._wait()

    async def pour(self, sink: Sink) -> None:
        if self._pieces:
            sink(self._taken())
        self.sink = sink
        while not self.has_ended and self.failure is None:
            await self._wait()
        if self.failure is not None:
            raise raised(self.failure)

    def pause(self) -> None:
        if self._connection is not None:
            self._connection.pause()

    def resume(self) -> None:
        if self._connection is not None:
            self._connection.resume()

    def abort(self) -> None:
        self.fail(TransportFailed(broken_body()))

    def close(self) -> None:
        self.sink = None
        if not self.has_ended:
            self.abort()

    def _taken(self) -> bytes:
        pieces = self._pieces
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        if self._size > BUFFER:
            self.resume()
        self._size = 0
        return data

    async def _wait(self) -> None:
        self._waiter = self.head.get_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    # ------------------------------------------------------------ for the connection

    def take(self, data: bytes) -> None:
        """Take bytes of the body."""
        if self.sink is not None:
            try:
                self.sink(data)
            except Exception as problem:  # an error of the reader's; it is told where it waits
                self.fail(problem)
            return
        pieces = self._pieces
        pieces.append(data)
        if len(pieces) > _MANY:  # each takes 33 bytes more
            pieces[:] = (b"".join(pieces),)
        self._size += len(data)
        if self._size > BUFFER:
            self.pause()
        self.wake()

    def end(self) -> None:
        """End the body. The connection may take another request."""
        self.has_ended = True
        self._connection = None
        self.wake()

    def fail(self, problem: BaseException) -> None:
        """End the response with an exception. The connection is closed."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        self.failure = problem
        connection.abort()
        self.wake()

    def wake(self) -> None:
        """Wake the waiting readers."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def raised(problem: BaseException) -> BaseException:
    """Return a copy of a kept exception to raise.

    A raised exception refers to the frames that it passed, and these refer to its keeper. All of them, the answer
    included, would stay until the garbage collector runs.
    """
    return TransportFailed(problem.failure) if isinstance(problem, TransportFailed) else problem


class HttpConnection(asyncio.BufferedProtocol):
    """One connection to a provider. `free` is called when it may take another request, `gone` when it is closed."""

    __slots__ = (
        "_buffer", "_count", "_fields", "_free", "_gone", "_has_head", "_head_size", "_is_complete", "_is_paused",
        "_keeps", "_lets_others", "_lines", "_loop", "_parser", "_pieces", "_response", "_transport", "_unheaded",
        "idle_since", "is_answered", "on_body", "place",
    )  # fmt: skip

    def __init__(
        self,
        place: str,
        *,
        free: Callable[[HttpConnection], None],
        gone: Callable[[HttpConnection], None],
        buffer: memoryview,
    ) -> None:
        """Create it.

        Args:
            place: the address as it may be shown.
            buffer: where the loop reads to. Its content is used before the next read, so all connections of a loop may
                share one. Its size bounds what one read adds to the backlog of a slow client.
        """
        self.place = place
        self._buffer = buffer
        self._free = free
        self._gone = gone
        self._loop = asyncio.get_running_loop()  # each look asks the system for the process
        self._transport: asyncio.Transport | None = None
        self._response: HttpResponse | None = None
        self._is_paused = self._lets_others = False
        self.idle_since = 0.0
        self.is_answered = False  # a byte of the answer to the last request came
        self._pieces: list[bytes] = []  # of the body, in the bytes that are just being parsed
        self.on_body = self._pieces.append  # the parser's callback
        self._count = 0  # pieces of the body's end
        self._begin()
        self._parser = httptools.HttpResponseParser(self)
        # What servers are known to send and no reader can take for anything else.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )

    def _begin(self) -> None:
        self._fields: dict[str, str] = {}
        self._lines: list[bytes] = []  # names and values of the head's fields, in turns, until it is whole
        self._head_size = self._unheaded = 0
        self._has_head = self._is_complete = self._keeps = False

    # ------------------------------------------------------------ for the pool and the response

    @property
    def is_open(self) -> bool:
        """Whether a request can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    async def send(self, head: bytes, body: bytes) -> HttpResponse:
        """Send a request and wait for the head of its response. Cancelling closes the connection.

        Raises:
            TransportFailed: the connection broke before the head, or before the request, or it is no HTTP.
        """
        self._begin()
        self.is_answered = False
        transport = self._transport
        if transport is None or transport.is_closing():  # lost while what comes before a request was awaited
            raise TransportFailed(no_answer(self.place))
        self._response = response = HttpResponse(self, self._loop.create_future())
        if len(body) < BUFFER:
            transport.write(head + body)
        else:
            transport.write(head)
            transport.write(body)
        try:
            await response.head
        except BaseException:
            response.close()
            raise
        if not response.status:
            assert response.failure is not None
            raise raised(response.failure)
        return response

    def pause(self) -> None:
        """Stop reading from the socket, unless all that was asked for has come."""
        if not self._is_paused and not self._is_complete and self.is_open and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()  # nothing, while others have their turn

    def resume(self) -> None:
        """Continue reading."""
        if self._is_paused:
            self._is_paused = False
            if not self._lets_others:
                self._read_on()

    def _let_others(self) -> None:
        """Pause reading once: more has come than one read takes, and no other connection would get a turn."""
        if self._transport is not None and not self._lets_others:
            self._lets_others = True
            self._transport.pause_reading()
            self._loop.call_soon(self._read_on)

    def _read_on(self) -> None:
        self._lets_others = False
        if not self._is_paused and self.is_open and self._transport is not None:
            self._transport.resume_reading()

    def shut(self) -> None:
        """Close now. Readers waiting for a response get an error."""
        if self._response is not None:
            self._fail(no_answer(self.place) if not self._has_head else broken_body())
        self.abort()

    def abort(self) -> None:
        """Close now."""
        self._response = None
        if self._transport is not None:
            self._transport.abort()

    # ------------------------------------------------------------ the connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are asyncio.Transport in all but name.
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        del self._parser  # it knows this connection: without this both would stay until somebody looks for garbage
        self._gone(self)
        if self._response is None:
            return
        if not self._has_head:
            self._fail(broken(self.place, exc) if exc is not None else no_answer(self.place))
        elif exc is None and self._reads_to_the_end():
            self._response.end()
            self._response = None
        else:
            self._fail(broken_body())

    def _reads_to_the_end(self) -> bool:
        """Return whether the end of the connection is the end of the body."""
        return "content-length" not in self._fields and "transfer-encoding" not in self._fields

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        data = self._buffer[:nbytes]
        response = self._response
        if response is None:  # nothing was asked
            self.abort()
            return
        self.is_answered = True
        failure: Failure | None = None
        try:
            self._parser.feed_data(data)
            if not self._has_head:
                self._unheaded += len(data)
                if self._unheaded > _HEAD_LIMIT or self._head_size > _HEAD_LIMIT:
                    failure = no_http(self.place, _TOO_LARGE_HEAD)
            elif self._head_size > _HEAD_LIMIT:
                failure = broken_body()
        except httptools.HttpParserUpgrade:
            failure = no_http(self.place, "it changes the protocol")
        except (httptools.HttpParserError, UnicodeDecodeError) as problem:
            self._keeps = False
            if not self._is_complete:
                failure = broken_body() if self._has_head else no_http(self.place, str(problem))
        pieces = self._pieces
        if self._is_complete:
            del pieces[self._count :]  # of a response that nobody asked for
        if nbytes == len(self._buffer):
            self._let_others()
        if len(pieces) == 1:
            response.take(pieces.pop())
        elif pieces:
            body = b"".join(pieces)
            pieces.clear()
            response.take(body)
        if self._response is not response:  # the reader left
            return
        if failure is not None:
            self._fail(failure)
        elif self._is_complete:
            self._complete(response)

    def _complete(self, response: HttpResponse) -> None:
        """Complete the response."""
        self._response = None
        if self._is_paused:
            self.resume()
        response.end()
        transport = self._transport
        # A server may answer before it has read all of a request.
        if (
            self._keeps
            and transport is not None
            and not transport.is_closing()
            and not transport.get_write_buffer_size()
        ):
            self._free(self)
        else:
            self.abort()

    def _fail(self, failure: Failure) -> None:
        response, self._response = self._response, None
        if response is not None:
            response.fail(TransportFailed(failure))
            if not response.head.done():
                response.head.set_result(None)

    # ------------------------------------------------------------ the parser's callbacks

    def on_message_begin(self) -> None:
        if self._is_complete:  # more than was asked for
            self._keeps = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._has_head:
            self._lines += name, value
        else:  # a trailer, or a response that nobody asked for
            self._head_size += len(name) + len(value) + _FIELD_COSTS

    def on_headers_complete(self) -> None:
        if self._has_head:
            return
        lines = self._lines
        self._head_size += sum(map(len, lines)) + _FIELD_COSTS * (len(lines) // 2)
        if self._head_size > _HEAD_LIMIT:
            return
        status = self._parser.get_status_code()
        if status < 200:  # 100 Continue, 103 Early Hints: the answer follows
            lines.clear()
            return
        self._fields = read_fields(lines)
        self._has_head, self._head_size = True, 0  # from here on of the trailers
        response = self._response
        if response is not None and not response.head.done():
            response.status = status
            response.headers = self._fields
            response.head.set_result(None)

    def on_message_complete(self) -> None:
        if self._has_head and not self._is_complete:
            self._is_complete = True
            self._count = len(self._pieces)
            self._keeps = self._parser.should_keep_alive()


def read_fields(lines: list[bytes]) -> dict[str, str]:
    """Return the fields of a head by lower-case name; the values of a repeated one are joined.

    `lines`: names and values alternating, as they came.
    """
    names = read_names(lines)
    # All at once, for hardly any has a line's end in it.
    values = b"\n".join(lines[1::2]).decode("latin-1").split("\n")
    fields = dict(zip(names, values, strict=False))
    if len(fields) == len(names) == len(values):
        return fields
    fields = {}
    for name, value in zip(lines[::2], lines[1::2], strict=True):
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        fields[key] = f"{fields[key]}, {text}" if key in fields else text
    return fields
