"""One request from its parsing to its last byte.

The head of a streamed answer leaves at the first event of the answer, so that a failure before that keeps its status.
After 15 silent seconds it leaves anyhow, with a keep-alive. From then on a failure is reported in the stream.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

import msgspec

from dragoman._json import Raw
from dragoman.client.offload import LARGE, run_sized, weight_of
from dragoman.client.passthrough.exchange import RawRequest
from dragoman.client.passthrough.whole import WholePassthrough
from dragoman.client.request.forwarding import ClientHead
from dragoman.client.requester import Requester
from dragoman.client.streaming.response_stream import ResponseStream
from dragoman.codec.json_fields import read_fields
from dragoman.errors import NOT_STORED, DragomanError, WireError, call_failure, failure_kind, is_unusable
from dragoman.events import Deviation, Event, Failure, fold
from dragoman.gateway.messages import Answer, Head, ResponseWriter
from dragoman.gateway.model_names import ModelNames, UnknownModel
from dragoman.gateway.stream_writer import StreamWriter, pass_on
from dragoman.gateway.telemetry.record import AttemptOutcome, Record
from dragoman.history.stored_at_server import PASSED_OVER, stored_at_server
from dragoman.ids import new_id
from dragoman.protocol import Encoder, Parsed, Peek, Protocol, ReplyStyle
from dragoman.protocols import PROTOCOLS
from dragoman.routing.target import Chain
from dragoman.types import Attempt, Native, Outcome, Request

#: Seconds of silence after which a streaming client is told that its connection lives.
KEEPALIVE_SECONDS: Final = 15.0
#: Answers after which clients try again, and after how many seconds when nobody said.
_SAY_WHEN: Final = frozenset({429, 503, 529})
_USUAL_WAIT: Final = 2.0
#: How the log names the result of an attempt.
_OUTCOMES: Final[dict[Outcome, AttemptOutcome]] = {
    "answered": "done", "failed": "failed", "broken": "failed", "cancelled": "cancelled", "skipped": "skipped",
}  # fmt: skip
_PLAIN: Final = ReplyStyle()


class Relay:
    """Answers requests to models."""

    __slots__ = ("_client", "_keepalive_seconds", "_names", "_streams")

    def __init__(self, client: Requester, names: ModelNames, *, keepalive_seconds: float = KEEPALIVE_SECONDS) -> None:
        self._client = client
        self._names = names
        self._keepalive_seconds = keepalive_seconds
        self._streams: set[ResponseStream | WholePassthrough] = set()

    def interrupt(self, failure: Failure) -> None:
        """End all current answers. Their clients get this failure, in the stream if one began."""
        for stream in tuple(self._streams):
            stream.interrupt(failure)

    async def respond(
        self, protocol: Protocol, head: Head, body: bytes, response_writer: ResponseWriter, record: Record, *,
        is_light: bool = False,
    ) -> None:  # fmt: skip
        """Answer one request in the client's protocol. `record` is filled in on the way."""
        try:
            size = len(body) if is_light else weight_of(body)
            client_head = ClientHead(protocol.name, head.headers, query=head.query)
            if size <= LARGE:
                peek = protocol.peek(body, path=head.target)
            else:
                peek = await run_sized(size, partial(protocol.peek, body, path=head.target))
            original, found = self._passable(protocol, head, body, peek, client_head)
            straight = None
            if original is not None and found is not None:
                straight = self._straight(original, found, size, record)
                if straight is not None and await self._passed(protocol, straight, response_writer, record):
                    return
                parsed, chain = original.skimmed(), found[1]
            else:
                read = partial(_read, protocol, head, body, peek, client_head, record)
                parsed = read() if size <= LARGE else await run_sized(size, read)
                if found is None or peek is None or parsed.request.model != peek.model:
                    found = self._names.answering(parsed.request.model)
                _admit(record, parsed.request, found, max_tokens=parsed.request.params.max_tokens)
                chain = _with_history(parsed.request.native, found[1])
            stream = self._client.open(
                chain, parsed.request, keeps_reply=False, on_deviation=record.deviate, owner=record.owner,
                trace_parent=record.trace_parent, original=original, head=client_head, begun=straight, size=size,
                meter=record.meter,
            )  # fmt: skip
            style = protocol.style_for(head.headers.get("user-agent", ""), parsed.style)
            # What was asked is held by the stream alone, which lets go of it when the answer begins.
            parsed = Parsed(Request(parsed.request.model, (), stream=parsed.request.stream), style=style)
            # A request that was to pass may have been read since, for another target.
            asked = partial(_asked, parsed) if original is None else original.skimmed
            del body, original, client_head
            self._streams.add(stream)
            try:
                async with stream:
                    if parsed.request.stream:
                        await self._stream(protocol, asked, stream, response_writer, record)
                    else:
                        await _whole(protocol, asked, stream, response_writer, record, advised=self._names.advised)
            finally:
                self._streams.discard(stream)
                note_attempts(stream.attempts, record)
        except (DragomanError, UnknownModel) as problem:
            _refuse(protocol, _failure_of(problem), response_writer, record)

    def _passable(
        self, protocol: Protocol, head: Head, body: bytes, peek: Peek | None, client_head: ClientHead
    ) -> tuple[RawRequest | None, tuple[str, Chain] | None]:
        """Return the request if its bytes may pass to the first target of its route, and what answers to its model.

        Otherwise it must be parsed.

        Raises:
            UnknownModel: nothing answers to its model's name.
        """
        if peek is None or protocol.style_for(head.headers.get("user-agent", ""), _PLAIN) is not _PLAIN:
            return None, None
        found = self._names.answering(peek.model)
        original = RawRequest(protocol, body, peek, path=head.target, head=client_head)
        return (original if self._client.target_states.passes(found[1].targets[0], original) else None), found

    def _straight(
        self, original: RawRequest, found: tuple[str, Chain], size: int, record: Record
    ) -> WholePassthrough | None:
        """Return the shortest way for a request whose bytes may pass, if there is one."""
        peek = original.peek
        _admit(record, peek, found, max_tokens=peek.max_tokens)
        if peek.stream or size > LARGE:
            return None
        return self._client.straight(found[1], original, trace_parent=record.trace_parent, meter=record.meter)

    async def _passed(
        self, protocol: Protocol, straight: WholePassthrough, response_writer: ResponseWriter, record: Record
    ) -> bool:
        """Answer by the shortest way. Return whether that worked."""
        self._streams.add(straight)
        plain = None
        is_over = True
        try:
            plain = await straight.answer()
            is_over = plain is not None or straight.failure is not None
        finally:
            self._streams.discard(straight)
            if is_over:
                note_attempts(straight.course.attempts, record)
        if plain is not None:
            record.begin()
            record.passed = True
            pass_on(plain.headers, response_writer, record)
            response_writer.send(Answer(200, plain.body))
            record.end(plain.finish)
        elif straight.failure is not None:
            answer = refusal(protocol, straight.failure)
            response_writer.send(answer)
            record.end(straight.failure, answer.status)
        return is_over

    async def _stream(
        self,
        protocol: Protocol,
        asked: Callable[[], Parsed],
        stream: ResponseStream,
        response_writer: ResponseWriter,
        record: Record,
    ) -> None:
        def make_encoder() -> Encoder:
            parsed = asked()
            return protocol.encoder(
                new_id=new_id, model=parsed.request.model, created=int(time.time()), style=parsed.style
            )

        content_type = "application/json" if asked().style.array else protocol.stream_type
        stream_writer = StreamWriter(
            stream,
            make_encoder,
            response_writer,
            content_type=content_type,
            keepalive_seconds=self._keepalive_seconds,
            record=record,
        )
        await stream_writer.run()
        if stream_writer.refused is not None:
            _fail(protocol, self._names.advised(stream_writer.refused), stream, response_writer, record)


def _as_sibling(protocol: Protocol, body: bytes) -> Parsed | None:
    """Parse a body of another protocol that came to this one's path. Return None for a body of this protocol.

    Raises:
        WireError: it is one that cannot be read.
    """
    sibling = protocol.sibling
    fields = read_fields(Raw(body)) if sibling is not None else None
    if sibling is None or fields is None or sibling.has not in fields or sibling.lacks in fields:
        return None
    parsed = PROTOCOLS[sibling.name].parse_request(body, fields=fields)
    said = Deviation("sibling-key", sibling.has, f"a request of {sibling.name}")
    return Parsed(parsed.request, ReplyStyle(), (said, *parsed.deviations))


def _read(
    protocol: Protocol, head: Head, body: bytes, peek: Peek | None, client_head: ClientHead, record: Record
) -> Parsed:
    """Parse the request. Its bytes are kept for a target for which nothing of it changes.

    Raises:
        WireError: it is not the protocol.
    """
    seen = None if peek is None else peek.fields
    try:
        parsed = protocol.parse_request(body, path=head.target, fields=seen)
    except WireError:
        other = _as_sibling(protocol, body)
        if other is None:
            raise
        parsed, seen = other, None
    record.note(parsed.deviations)
    if seen is not None and not parsed.deviations:
        client_head.keep_body(body, seen)
    return parsed


def _asked(parsed: Parsed) -> Parsed:
    return parsed


async def _whole(
    protocol: Protocol,
    asked: Callable[[], Parsed],
    stream: ResponseStream,
    response_writer: ResponseWriter,
    record: Record,
    *,
    advised: Callable[[Failure], Failure],
) -> None:
    """Send an answer that is not streamed: the sum of its events. Its client gets no keep-alive.

    `advised` adds advice to a failure.
    """
    events: list[Event] = []
    while batch := await stream.next_batch():
        events += batch
    record.begin()
    pass_on(stream.headers, response_writer, record)
    last = events[-1]
    if isinstance(last, Failure):
        _fail(protocol, advised(last), stream, response_writer, record)
        return
    record.passed = stream.passes
    if record.passed:
        body = stream.body()
    else:
        if stream.size <= LARGE:
            rendered = _rendered(protocol, asked(), events, record)
        else:
            rendered = await run_sized(stream.size, partial(_rendered, protocol, asked(), events, record))
        if isinstance(rendered, Failure):
            _fail(protocol, rendered, stream, response_writer, record)
            return
        body = rendered
    response_writer.send(Answer(200, body))
    record.end(last)


def _rendered(protocol: Protocol, parsed: Parsed, events: list[Event], record: Record) -> bytes | Failure:
    """Render the body of an answer from its events; return a failure if it has nothing but failed calls."""
    reply = fold(events)
    if is_unusable(reply) and not protocol.tells_failed_calls:
        return call_failure(reply.failed_calls)
    lost: list[Deviation] = []
    body = protocol.render_response(
        reply, new_id=new_id, model=parsed.request.model, created=int(time.time()), style=parsed.style, lost=lost
    )
    if lost:
        record.note(lost)
    return body


def _fail(
    protocol: Protocol, failure: Failure, stream: ResponseStream, response_writer: ResponseWriter, record: Record
) -> None:
    """Send the last target's failure, before anything of its answer left."""
    pass_on(stream.headers, response_writer, record)
    answer = refusal(protocol, failure)
    if stream.retries_itself:  # SDKs try again too, and the tries would multiply
        answer.headers["x-should-retry"] = "false"
    response_writer.send(answer)
    record.end(failure, answer.status)


def note_attempts(attempts: Iterable[Attempt], record: Record) -> None:
    """Record the outcomes of the targets that were asked."""
    for attempt in attempts:
        reason = "skipped" if attempt.outcome == "skipped" else attempt.kind or ""
        record.attempt(attempt.target, _OUTCOMES[attempt.outcome], reason, attempt.status)


def _failure_of(problem: DragomanError | UnknownModel) -> Failure:
    """Return the failure for a request that reached no target."""
    if isinstance(problem, UnknownModel):
        return problem.failure
    if isinstance(problem, WireError):
        return Failure(failure_kind(problem.status), str(problem), problem.status, code=problem.code)
    # A setting or an extra is missing: no other try would mend it, and clients try again after 5xx.
    return Failure("bad_request", str(problem), 400)


def _admit(record: Record, asked: Peek | Request, found: tuple[str, Chain], *, max_tokens: int | None) -> None:
    """Record what is asked for, and of whom. Raises WireError as `check_permission`."""
    check_permission(record, asked.model)
    record.route, record.target = found[0], found[1].targets[0].name
    record.stream, record.max_tokens = asked.stream, max_tokens


def check_permission(record: Record, name: str) -> None:
    """Check whether the client's key may ask for what it asks. Raises `WireError`: it may not."""
    if not record.permits(name):
        raise WireError("this key may not ask for this model", status=403)


def _refuse(protocol: Protocol, failure: Failure, response_writer: ResponseWriter, record: Record) -> None:
    """Refuse a request for which no target was asked."""
    answer = refusal(protocol, failure)
    response_writer.send(answer)
    record.refuse(failure.kind, answer.status)


def refusal(protocol: Protocol, failure: Failure) -> Answer:
    """Return a failure before the first byte, in the client's form."""
    status, body = protocol.render_error(failure)
    wait = failure.retry_after
    if wait is None and status in _SAY_WHEN and failure.kind != "quota":
        wait = _USUAL_WAIT
    headers = {} if wait is None else {"retry-after": str(max(0, -int(-wait // 1)))}
    if failure.kind in ("quota", "answer_too_large"):  # no other try mends it; each would be paid
        headers["x-should-retry"] = "false"
    return Answer(status, body, headers=headers)


def _with_history(native: Native | None, chain: Chain) -> Chain:
    """Return the targets that have the whole conversation: a model without what only another server stores would answer
    blindly.

    Raises:
        WireError: the request goes on with what a server stores, and no target supports that.
    """
    stored = stored_at_server(native)
    if native is None or not stored:
        return chain
    targets = tuple(
        target
        for target in chain.targets
        if target.protocol.name == native.protocol
        and (target.dialect.supports_vendor_fields or stored not in PASSED_OVER)
    )
    if not targets:
        raise WireError("this conversation is not stored here: send the whole of it", path=stored, code=NOT_STORED)
    return msgspec.structs.replace(chain, targets=targets)
