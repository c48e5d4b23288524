"""The shortest way for a whole answer that passes: the request's bytes out, the answer's bytes in, one look at them.

Everything unusual (an error, a broken connection, an odd answer) goes the usual way, with all that came so far. Nothing
is asked twice for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, final

import msgspec

from dragoman.events import Failure, Finish
from dragoman.gathered import Gathered
from dragoman.http.response import BeforeSend, Response, Sink, TransportFailed
from dragoman.http.timeouts import Guard
from dragoman.http.transport import Transport
from dragoman.providers.endpoint import Outgoing
from dragoman.routing.attempts import Attempts
from dragoman.routing.target import Target
from dragoman.secret import name_alone

#: Bytes of an answer; a larger one is read while it comes.
_LARGEST: Final = 1024 * 1024


@final
class Plain(msgspec.Struct, frozen=True):
    """An answer with nothing odd in it. Names of `headers` are in lower case."""

    __repr__ = name_alone

    body: bytes
    headers: Mapping[str, str]
    finish: Finish


class WholePassthrough(msgspec.Struct, eq=False):
    """One request that goes the shortest way.

    Attributes:
        course: the attempts so far.
        limit: seconds for the whole answer.
        failure: with which the request was ended from outside, or None.
    """

    __repr__ = name_alone

    _target: Target
    _outgoing: Outgoing
    course: Attempts
    _transport: Transport
    limit: float
    _guard: Guard
    failure: Failure | None = None
    _response: Response | None = None
    _so_far: _SoFar | None = None  # for the usual way; None once it has taken it

    async def answer(self) -> Plain | None:
        """Send the request and return the answer.

        None: it was interrupted, or the usual way must continue, with this object in place of its transport.
        """
        loop, course, guard, outgoing = asyncio.get_running_loop(), self.course, self._guard, self._outgoing
        course.sent(loop.time())
        timer = loop.call_later(self.limit, guard.expire)
        body, kept = b"", None
        problem: TransportFailed | None = None
        is_given_up = True
        try:
            try:
                with guard:
                    before = course.before_send(outgoing)
                    response = self._response = await self._transport.open(outgoing, before)
                    if course.meter is not None:
                        course.meter.headers = response.headers
                    if is_plain_head(response.status, response.headers):
                        body = await response.read()
                        while body and (piece := await response.read()):  # most come at once
                            if kept is None:
                                kept = Gathered(body)
                            kept.add(piece)
                            if kept.size > _LARGEST:
                                break
            except TransportFailed as broken:
                problem = broken
            except TimeoutError:
                problem = TransportFailed(Failure("timeout", f"nothing of the answer came within {self.limit:g} s"))
            body = body if kept is None else kept.take()
            plain = self._judged(body) if problem is None and body else None
            if plain is None:
                self._so_far = _SoFar(self._response, body, problem)
            else:
                course.ended(plain.finish, loop.time())
            is_given_up = self.failure is not None
            return plain
        finally:
            timer.cancel()
            if is_given_up:
                if self._response is not None:
                    self._response.close()
                course.abandoned(loop.time())

    def _judged(self, body: bytes) -> Plain | None:
        """Return the answer if nothing in it is odd, else None."""
        assert self._response is not None
        finish = self._target.protocol.check_whole(body) if len(body) <= _LARGEST else None
        return None if finish is None else Plain(body, self._response.headers, finish)

    def interrupt(self, failure: Failure) -> None:
        """End the request with this failure now. No other target is asked."""
        self.failure = failure
        self._guard.expire()

    # ------------------------------------------------------------ in place of a transport

    async def open(self, outgoing: Outgoing, before: BeforeSend | None = None) -> Response:
        """As `Transport.open`. The first call returns the response to the request that was sent already."""
        so_far, self._so_far = self._so_far, None
        if so_far is None:
            return await self._transport.open(outgoing, before)
        if self._response is None:
            assert so_far.problem is not None
            raise so_far.problem
        return so_far


class _SoFar:
    """A partly read response: the part that was read comes first."""

    __slots__ = ("_body", "_response", "headers", "problem", "status")

    def __init__(self, response: Response | None, body: bytes, problem: TransportFailed | None) -> None:
        self._response = response
        self._body = body
        self.problem = problem
        self.status = 0 if response is None else response.status
        self.headers: Mapping[str, str] = {} if response is None else response.headers

    async def read(self) -> bytes:
        if self._body:
            return self._taken()
        if self.problem is not None:
            raise self.problem
        assert self._response is not None
        return await self._response.read()

    def _taken(self) -> bytes:
        body, self._body = self._body, b""
        return body

    async def pour(self, sink: Sink) -> None:
        if self._body:
            sink(self._taken())
        if self.problem is not None:
            raise self.problem
        assert self._response is not None
        await self._response.pour(sink)

    def pause(self) -> None:
        if self._response is not None:
            self._response.pause()

    def resume(self) -> None:
        if self._response is not None:
            self._response.resume()

    def abort(self) -> None:
        if self._response is not None:
            self._response.abort()

    def close(self) -> None:
        if self._response is not None:
            self._response.close()


def is_plain_head(status: int, headers: Mapping[str, str]) -> bool:
    """Return whether an unencoded JSON body follows."""
    kind = headers.get("content-type", "")
    return (
        status == 200
        and (kind == "application/json" or kind.partition(";")[0].strip().lower() == "application/json")
        and headers.get("content-encoding", "identity") == "identity"
    )
