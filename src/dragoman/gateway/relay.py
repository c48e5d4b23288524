"""One request from its parsing to its last byte.

The head of a streamed answer leaves at the first event that says something of it, so that a failure before that keeps
its status; after 15 silent seconds it leaves anyhow, with a keep-alive. From then on a failure is told in the stream.
"""

from __future__ import annotations

import asyncio
import re
import time
from typing import Final

import msgspec

from dragoman.client import AsyncClient, AsyncStream
from dragoman.client.target import Target
from dragoman.contract import Encoder, Parsed, Protocol, ReplyStyle
from dragoman.errors import DragomanError, WireError, failure_kind
from dragoman.events import SEMANTIC, Event, Failure, Fold
from dragoman.gateway.http import Answer, Head, Outlet
from dragoman.gateway.names import Names, UnknownModel
from dragoman.gateway.observe import Record
from dragoman.identifiers import new_id
from dragoman.types import Native

#: Seconds of silence after which a streaming client is told that its connection lives.
KEEPALIVE_SECONDS: Final = 15.0
#: Zed before this version takes no key beside `function` in a call.
_ZED_WITH_IDS: Final = (0, 212)
_ZED: Final = re.compile(r"Zed/(\d+)\.(\d+)")


class Relay:
    """Answers requests to models."""

    __slots__ = ("_client", "_keepalive_seconds", "_names")

    def __init__(self, client: AsyncClient, names: Names, *, keepalive_seconds: float = KEEPALIVE_SECONDS) -> None:
        self._client = client
        self._names = names
        self._keepalive_seconds = keepalive_seconds

    async def respond(self, protocol: Protocol, head: Head, body: bytes, outlet: Outlet, record: Record) -> None:
        """Answer one request in the client's protocol; `record` is told what becomes of it."""
        try:
            parsed = protocol.parse_request(body, path=head.target)
            target = self._names.target(parsed.request.model)
            record.route, record.target = self._names.route(parsed.request.model), target.name
            record.stream = parsed.request.stream
            _check_history(parsed.request.native, target)
            stream = self._client.open(target, parsed.request, keeps_reply=False, on_deviation=record.deviate)
            style = style_for(head.headers.get("user-agent", ""), parsed.style)
            parsed = msgspec.structs.replace(parsed, style=style)
            async with stream:
                if parsed.request.stream:
                    await self._stream(protocol, parsed, stream, outlet, record)
                else:
                    await _whole(protocol, parsed, stream, outlet, record)
        except WireError as problem:
            _refuse(protocol, Failure(failure_kind(problem.status), str(problem), problem.status), outlet, record)
        except UnknownModel as problem:
            _refuse(protocol, problem.failure, outlet, record)
        except DragomanError as problem:
            # A setting or an extra is missing: no other try would mend it, and clients try again after 5xx.
            _refuse(protocol, Failure("bad_request", str(problem), 400), outlet, record)

    async def _stream(
        self, protocol: Protocol, parsed: Parsed, stream: AsyncStream, outlet: Outlet, record: Record
    ) -> None:
        style = parsed.style
        encoder = protocol.encoder(new_id=new_id, model=parsed.request.model, created=int(time.time()), style=style)
        content_type = "application/json" if style.array else protocol.stream_type
        flow = _Flow(encoder, outlet, content_type=content_type, keepalive_seconds=self._keepalive_seconds)
        held: list[Event] = []
        batch: list[Event] = []
        try:
            while came := await stream.next_batch():
                batch = came
                if not flow.is_begun:
                    held += batch
                    if not any(type(event) in SEMANTIC for event in batch):
                        failure = batch[-1]
                        if type(failure) is Failure:
                            _fail(protocol, failure, outlet, record)
                            return
                        continue
                    record.begin()
                    batch, held = held, []
                elif held:  # a keep-alive took the head along
                    batch, held = held + batch, []
                flow.write(batch)
                if outlet.is_full:
                    await outlet.drained()
            flow.end()
            record.end(batch[-1])
            if encoder.aborted:
                record.outcome = "cut"
        finally:
            flow.stop()


class _Flow:
    """Events to the client as they come, keep-alives where none do."""

    __slots__ = ("_content_type", "_encoder", "_handle", "_interval", "_last", "_loop", "_outlet", "is_begun")

    def __init__(self, encoder: Encoder, outlet: Outlet, *, content_type: str, keepalive_seconds: float) -> None:
        self._encoder = encoder
        self._outlet = outlet
        self._content_type = content_type
        self._interval = keepalive_seconds
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._handle = self._loop.call_later(keepalive_seconds, self._tick)
        self.is_begun = False

    def write(self, events: list[Event]) -> None:
        """Write what the events say; the first time with the head before it."""
        if not self.is_begun:
            self._begin()
        data = self._encoder.encode(events)
        if data:
            self._last = self._loop.time()
            self._outlet.write(data)

    def end(self) -> None:
        """No event follows."""
        if self._encoder.aborted:
            self._outlet.cut()
        else:
            self._outlet.end()

    def stop(self) -> None:
        """No keep-alive follows."""
        self._handle.cancel()

    def _begin(self) -> None:
        self.is_begun = True
        self._outlet.start(200, self._content_type)

    def _tick(self) -> None:
        due = self._last + self._interval
        now = self._loop.time()
        if now >= due:
            if not self.is_begun:
                self._begin()
            if not self._outlet.is_full:
                self._outlet.write(self._encoder.keepalive())
            self._last, due = now, now + self._interval
        self._handle = self._loop.call_at(due, self._tick)


async def _whole(protocol: Protocol, parsed: Parsed, stream: AsyncStream, outlet: Outlet, record: Record) -> None:
    """An answer in one piece: the sum of its events. A client that waits for one gets no keep-alive."""
    fold = Fold()
    batch: list[Event] = []
    while came := await stream.next_batch():
        batch = came
        for event in batch:
            fold.add(event)
    record.begin()
    reply = fold.reply()
    if isinstance(reply.error, Failure):
        _fail(protocol, reply.error, outlet, record)
        return
    body = protocol.render_response(
        reply, new_id=new_id, model=parsed.request.model, created=int(time.time()), style=parsed.style
    )
    outlet.send(Answer(200, body))
    record.end(batch[-1])


def _fail(protocol: Protocol, failure: Failure, outlet: Outlet, record: Record) -> None:
    """The target's failure, before anything of its answer left."""
    answer = refusal(protocol, failure)
    outlet.send(answer)
    record.end(failure, answer.status)


def _refuse(protocol: Protocol, failure: Failure, outlet: Outlet, record: Record) -> None:
    """No target was asked."""
    answer = refusal(protocol, failure)
    outlet.send(answer)
    record.refuse(failure.kind, answer.status)


def refusal(protocol: Protocol, failure: Failure) -> Answer:
    """A failure before the first byte, in the client's form."""
    status, body = protocol.render_error(failure)
    headers = {} if failure.retry_after is None else {"retry-after": str(max(0, -int(-failure.retry_after // 1)))}
    return Answer(status, body, headers=headers)


def style_for(user_agent: str, style: ReplyStyle) -> ReplyStyle:
    """The style for a client that says who it is: old Zed takes bare calls, litellm's Ollama reader only calls that
    come together."""
    zed = _ZED.search(user_agent)
    if zed is not None and (int(zed[1]), int(zed[2])) < _ZED_WITH_IDS:
        return msgspec.structs.replace(style, bare_calls=True)
    if user_agent.startswith("litellm/"):
        return msgspec.structs.replace(style, batch_calls=True)
    return style


def _check_history(native: Native | None, target: Target) -> None:
    """Refuse a conversation that only another server has in full; without it the model would answer blindly.

    Raises:
        WireError: the request goes on from a stored response, and the target's protocol has no such thing.
    """
    if native is None or native.protocol == target.protocol.name:
        return
    stored = native.fields.get("previous_response_id")
    if stored is not None and bytes(stored) != b"null":
        raise WireError("responses are not stored here: send the whole conversation", path="previous_response_id")
