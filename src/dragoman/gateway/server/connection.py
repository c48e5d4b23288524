"""The HTTP/1.1 server: an asyncio protocol over httptools. Only this file and `response_writer.py` use a transport.

One task per connection serves its requests; it is cancelled when the client leaves. Bodies are read whole before a
request is served, and bounded. Writes never wait, `ResponseWriter.drained` does.
"""

from __future__ import annotations

import asyncio
import io
import logging
from typing import Final, NamedTuple, cast

from dragoman.errors import DragomanError
from dragoman.events import Failure
from dragoman.gateway.messages import Answer, Application, Head, Limits
from dragoman.gateway.server import request_heads
from dragoman.gateway.server.backpressure import Backpressure, waiting
from dragoman.gateway.server.body_memory import BodyMemory, Charge
from dragoman.gateway.server.client_addresses import ClientAddresses, network
from dragoman.gateway.server.received import Received
from dragoman.gateway.server.request_heads import Answered, BrokenRequest
from dragoman.gateway.server.response_writer import HttpResponseWriter
from dragoman.gateway.telemetry.log import place_of

try:
    import httptools
except ModuleNotFoundError:  # pragma: no cover - the extra is part of the test environment
    raise DragomanError('the gateway needs the extra "server": pip install "dragoman[server]"') from None

_LOG: Final = logging.getLogger("dragoman.gateway")
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
#: Requests that may wait on one connection while another is answered (pipelining; hardly any client does it).
_WAITING: Final = 4
#: For the first request on a connection that was made just before the end, in seconds.
_FIRST_SECONDS: Final = 0.5
_NEVER: Final = float("inf")
#: Bytes that are read of a connection before others have their turn; a chunk may be one of six of them.
READ_AT_ONCE: Final = 256 * 1024
#: Bytes of a body, and pieces, from which on it is gathered in place: chunks of two bytes take 27 times their size.
_LARGE: Final = 512 * 1024
_MANY: Final = 64


class Shared(NamedTuple):
    """The shared state of a gateway's connections. `peers` contains the open ones."""

    limits: Limits
    peers: set[Connection]
    addresses: ClientAddresses
    memory: BodyMemory


class Connection(asyncio.Protocol):
    """One client's connection."""

    __slots__ = (
        "_address", "_application", "_body", "_body_before", "_body_size", "_charge", "_due", "_fields", "_gate",
        "_head", "_head_size", "_idle", "_is_admitted", "_is_closing", "_is_discarding", "_is_new", "_large", "_lines",
        "_limits", "_looks_at", "_loop", "_next", "_parser", "_patience", "_read", "_running", "_shared", "_target",
        "_task", "_timer", "_transport", "_unheaded", "_unsent", "_version", "_waiting", "_worker",
    )  # fmt: skip

    def __init__(self, application: Application, shared: Shared) -> None:
        self._application = application
        self._shared = shared
        self._limits = shared.limits
        self._address = ""
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None  # the worker, while a request is answered
        self._worker: asyncio.Task[None] | None = None
        self._idle: asyncio.Future[None] | None = None  # while it waits for one
        self._next: tuple[Received, HttpResponseWriter] | None = None  # which it has not begun
        self._timer: asyncio.TimerHandle | None = None
        self._due = self._looks_at = _NEVER  # when the clock runs out; when the timer goes off
        self._patience = 0.0  # seconds for what is being read, to be set where it does not come at once
        self._waiting: list[Received] = []
        self._is_new = True  # no request came yet
        self._read = 0  # bytes since others had their turn
        self._is_closing = self._is_discarding = False  # no more is taken; the rest of a refused request is read away
        self._parser = httptools.HttpRequestParser(self)
        self._gate = Backpressure(shared.limits.stall_seconds)
        self._begin()

    def _begin(self) -> None:
        """Begin to read a new request."""
        self._charge = Charge(self._shared.memory)
        self._target, self._version, self._is_admitted = b"", "", False
        self._fields: dict[str, str] = {}
        self._lines: list[bytes] = []  # names and values of the head's fields, in turns, until it is whole
        self._head: Head | None = None
        self._head_size = self._unheaded = self._body_size = self._body_before = 0
        self._body: list[bytes] = []
        self._large: io.BytesIO | None = None

    # ------------------------------------------------------------ the connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are asyncio.Transport in all but name.
        self._transport = transport = cast(asyncio.Transport, transport)
        self._address = network(str((transport.get_extra_info("peername") or ("",))[0]))
        if not self._shared.addresses.enter(self._address):
            self._is_closing = True
            transport.abort()
            return
        transport.set_write_buffer_limits(high=self._limits.unsent, low=self._limits.unsent // 4)
        self._shared.peers.add(self)
        self._arm(self._limits.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        if self in self._shared.peers:
            self._shared.peers.discard(self)
            self._shared.addresses.leave(self._address)
        if self._timer is not None:
            self._timer.cancel()
        self._is_closing, self._transport = True, None
        del self._parser  # it knows this connection: without this both would stay until somebody looks for garbage
        self._let_go()
        self._gate.open()
        if self._worker is not None:
            self._worker.cancel()
            if self._task is not None:
                self._worker.add_done_callback(self._running.release)  # a task that never ran does not
        self._worker = self._idle = None  # they hold a trace of where they were cancelled, and that this connection

    def eof_received(self) -> bool:
        """Close: a client that closes its side is gone, and nothing that it could read is worth a model's time."""
        if self._task is not None:
            self._task.cancel()
        return False

    def pause_writing(self) -> None:
        if self._transport is not None:
            self._gate.shut(self._transport)

    def resume_writing(self) -> None:
        self._gate.open()

    def drain(self) -> None:
        """Close after the current response; at once between two requests. A request that has begun is answered."""
        if self._task is None and not self._is_discarding and (self._is_new or self._head_size or self._unheaded):
            if not (self._head_size or self._unheaded):
                self._arm(_FIRST_SECONDS)
            return
        self._is_closing = True
        if self._task is None and not self._is_discarding:
            self._close()

    def abort(self) -> None:
        """Close now."""
        if self._transport is not None:
            self._transport.abort()

    def _close(self) -> None:
        """Answer no more. Drop further data until the client has read its answers: closing at once would lose them."""
        self._is_closing = True
        self._let_go()
        if self._transport is not None:
            if not self._is_discarding or self._transport.is_closing():
                self._transport.close()
            elif self._transport.can_write_eof():
                self._transport.write_eof()
            self._arm(self._limits.linger_seconds)

    def _arm(self, seconds: float) -> None:
        """Set the clock. An earlier timer stays and looks again when it fires."""
        transport = self._transport
        self._unsent = waiting(transport) if transport is not None and transport.get_write_buffer_size() else 0
        self._due = due = self._loop.time() + seconds
        if self._timer is None or self._looks_at > due:
            if self._timer is not None:
                self._timer.cancel()
            self._looks_at = due
            self._timer = self._loop.call_at(due, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._loop.time() >= self._due:
            self._expire()
        elif self._due < _NEVER:
            self._looks_at = self._due
            self._timer = self._loop.call_at(self._due, self._look)

    def _expire(self) -> None:
        """Close a connection that is too slow, without an answer between two requests."""
        if self._gate.is_shut or (self._transport is not None and 0 < waiting(self._transport) < self._unsent):
            self._arm(self._limits.linger_seconds)  # it still reads the last response, or the gate gives it up
            return
        if self._body_size - self._body_before >= self._limits.body_least:
            self._body_before = self._body_size
            self._arm(self._limits.body_seconds)
            return
        begun = self._head is not None or self._head_size or self._unheaded
        if begun and not self._is_closing and not self._is_discarding:
            self._refuse(Failure("timeout", "the request took too long to arrive", 408))
        else:
            self.abort()

    # ------------------------------------------------------------ reading

    def data_received(self, data: bytes) -> None:
        if self._is_discarding or self._is_closing:
            self._is_discarding = True
            return
        try:
            self._feed(data)
            if self._patience:
                seconds, self._patience = self._patience, 0.0
                self._arm(seconds)
        except httptools.HttpParserCallbackError as problem:
            cause = request_heads.cause_of(problem)
            if isinstance(cause, BrokenRequest):
                self._refuse(cause.failure)
            elif not isinstance(cause, Answered):
                raise
        except (httptools.HttpParserError, UnicodeDecodeError):
            self._refuse(Failure("bad_request", "expected an HTTP/1.1 request", 400))
        except BrokenRequest as refused:
            self._refuse(refused.failure)
        self._read += len(data)
        if self._read >= READ_AT_ONCE and self._transport is not None and not self._transport.is_closing():
            # The event loop would go on reading what has come, and let nobody else in between.
            self._read = 0
            self._transport.pause_reading()
            self._loop.call_soon(self._read_on)

    def _feed(self, data: bytes) -> None:
        rest, lines = data, self._lines  # others are begun where a request ends: then the next one's share is unknown
        while rest:
            try:
                self._parser.feed_data(rest)
                break
            except httptools.HttpParserUpgrade as upgrade:
                # No upgrade is ever taken, as HTTP allows: Java's client asks for HTTP/2 with every request. The
                # parser would leave the body unread, so it reads the head again without that wish.
                if "upgrade" not in self._fields:
                    raise BrokenRequest(Failure("bad_request", "expected no CONNECT: this is no proxy", 405)) from None
                version = self._parser.get_http_version()
                again = request_heads.without_upgrade(self._parser.get_method(), self._target, version, self._fields)
                rest = again + rest[upgrade.args[0] :]
                self._parser = httptools.HttpRequestParser(self)
        if self._head is None and self._lines is lines and (self._task is None or self._head_size):
            self._unheaded += len(data)
            if self._unheaded > self._limits.head:
                raise BrokenRequest(request_heads.too_large_head(self._limits))

    def on_message_begin(self) -> None:
        if self._head_size or self._unheaded:  # else nothing came since the last request's end
            self._charge.release()
            self._begin()
        self._patience = self._limits.head_seconds

    def on_url(self, url: bytes) -> None:
        self._target += url
        self._head_size += len(url)
        if self._head_size > self._limits.head:
            raise BrokenRequest(request_heads.too_large_head(self._limits))

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head is None:
            self._lines += name, value
            return
        # A trailer is no header (RFC 9110 section 6.5.1), and takes of the head's room all the same.
        self._head_size += len(name) + len(value) + 4
        if self._head_size > self._limits.head:
            raise BrokenRequest(request_heads.too_large_head(self._limits))

    def on_headers_complete(self) -> None:
        parser, limits = self._parser, self._limits
        self._head_size += sum(map(len, self._lines)) + 2 * len(self._lines)
        if self._head_size > limits.head:
            raise BrokenRequest(request_heads.too_large_head(limits))
        self._fields = fields = request_heads.read_fields(self._lines, limits)
        if parser.should_upgrade():
            return
        self._version = version = parser.get_http_version()
        target = self._target.decode("ascii", "replace")
        if target[:1] != "/":
            target = request_heads.origin_form(target, fields)
        self._is_new = False
        self._head = head = Head(parser.get_method().decode("ascii"), target, fields, self._address)
        self._unheaded = 0
        if version != "1.1" or "transfer-encoding" in fields:
            request_heads.check_framing(version, fields)
        length = fields.get("content-length", "0")
        size = int(length) if length.isdigit() else 0
        if size > limits.body:
            raise BrokenRequest(request_heads.too_large_body(limits, str(size)))
        if size > _LARGE:
            self._charge.check(size)
        if self._task is None and not self._waiting:
            refused = self._application.admit(head)
            if refused is not None:
                self._answer_and_close(head, refused)
                raise Answered
            self._is_admitted = True
            expects = "expect" in fields and version != "1.0" and fields["expect"].lower() == "100-continue"
            if expects and self._transport is not None:  # HTTP/1.0 knows no answer before the answer
                self._transport.write(_CONTINUE)
        self._patience = limits.body_seconds

    def on_body(self, body: bytes) -> None:
        self._body_size = size = self._body_size + len(body)
        if size > self._limits.body:
            raise BrokenRequest(request_heads.too_large_body(self._limits, f"{size} or more"))
        self._charge.cover(size)  # what its head says may never come
        if self._large is not None:
            self._large.write(body)
            return
        self._body.append(body)
        if size > _LARGE or len(self._body) > _MANY:
            self._gather()

    def _gather(self) -> None:
        """Keep a large body in one buffer from now on: joining its pieces would stop the loop and double its memory."""
        self._large = io.BytesIO()
        self._large.writelines(self._body)
        self._body = []

    def _read_on(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def on_message_complete(self) -> None:
        head = self._head
        if head is None:
            return
        self._due, self._patience = _NEVER, 0.0
        is_chunked = self._version != "1.0"
        keeps = is_chunked and not self._application.is_draining and self._parser.should_keep_alive()
        body = b"".join(self._body) if self._large is None else self._large.getvalue()
        received = Received(head, body, keeps, is_chunked, self._is_admitted, self._charge)
        self._begin()
        if self._task is None:
            self._answer(received)
            return
        self._waiting.append(received)
        if len(self._waiting) > _WAITING:
            raise BrokenRequest(Failure("bad_request", "too many requests on one connection at once", 400))

    # ------------------------------------------------------------ answering

    def _answer(self, received: Received) -> None:
        assert self._transport is not None
        charge = self._running = received.charge
        response_writer = HttpResponseWriter(
            self._transport,
            self._gate,
            received.head.method != "HEAD",
            received.is_chunked,
            received.keeps,
            charge.release,  # from its first byte on nobody holds the request
        )
        self._next = received, response_writer
        if self._worker is None:
            self._worker = self._loop.create_task(self._serve())
        elif self._idle is not None:
            self._idle.set_result(None)
        self._task = self._worker

    def _let_go(self, *, and_waiting: bool = True) -> None:
        """Drop the request being read, and the waiting ones."""
        while and_waiting and self._waiting:
            self._waiting.pop().charge.release()
        self._charge.release()
        self._body, self._large = [], None

    async def _serve(self) -> None:
        """Answer one request after the other in one task: a task for each takes twice the time to start and end."""
        while True:
            while self._next is None:
                if self._is_closing:
                    return
                self._idle = self._loop.create_future()
                await self._idle
                self._idle = None
            received, response_writer = self._next
            self._next = None
            responding = self._respond(received, response_writer)
            del received, response_writer  # the answer holds the body for as long as it needs it
            await responding

    async def _respond(self, received: Received, response_writer: HttpResponseWriter) -> None:
        head, charge = received.head, received.charge
        try:
            # One that came behind another was not asked about while it was read.
            refused = None if received.is_admitted else self._application.admit(head)
            if refused is not None:
                await asyncio.sleep(refused.pause)
                response_writer.send(refused)
            else:
                answering = self._application.respond(head, received.body, response_writer)
                del received  # the answer holds the body for as long as it needs it
                await answering
        except (asyncio.CancelledError, ConnectionAbortedError):
            response_writer.cut()  # the client went, or the server stops; nobody awaits this task
        except Exception as problem:
            _LOG.error("answering %s failed: %s", head.method, place_of(problem))  # its message may quote a prompt
            if response_writer.is_begun:
                response_writer.cut()
            else:
                response_writer.send(self._application.refuse(head, Failure("internal", "an error in the gateway")))
        finally:
            charge.release()
            self._task = None
            self._settle(response_writer)

    def _settle(self, response_writer: HttpResponseWriter) -> None:
        """Finish a response: take the next request, or close."""
        if self._transport is None:
            return
        is_last = not (response_writer.is_whole and response_writer.keeps)
        if is_last or (self._is_closing and not self._waiting):
            self._close()
        elif self._waiting:  # they came whole, whatever came behind them
            self._answer(self._waiting.pop(0))
        elif self._head is None and not self._head_size:
            self._arm(self._limits.idle_seconds)

    def _refuse(self, failure: Failure) -> None:
        if self._task is not None:  # a later request on the connection is broken: answer those before it, take no more
            self._is_closing, self._is_discarding, self._due = True, True, _NEVER
            self._let_go(and_waiting=False)
            return
        fields = self._fields or dict(zip(*request_heads.decoded(self._lines), strict=False))
        method = request_heads.method_of(self._parser.get_method(), self._target)
        head = self._head or Head(method, self._target.decode("ascii", "replace"), fields, self._address)
        self._answer_and_close(head, self._application.refuse(head, failure))

    def _answer_and_close(self, head: Head, answer: Answer) -> None:
        """Refuse a request whose body may still be coming."""
        self._is_discarding, self._patience = True, 0.0
        self._let_go()
        if answer.pause:
            self._due = _NEVER
            self._loop.call_later(answer.pause, self._send_and_close, head, answer)
        else:
            self._send_and_close(head, answer)

    def _send_and_close(self, head: Head, answer: Answer) -> None:
        if self._transport is not None:
            has_body = head.method != "HEAD"
            HttpResponseWriter(self._transport, self._gate, has_body, is_chunked=True, keeps=False).send(answer)
            self._close()
