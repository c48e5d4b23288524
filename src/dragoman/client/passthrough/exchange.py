"""Pass bytes through: client and target speak one protocol, and the target keeps to it.

The request is sent with the target's name of the model, the answer is passed on as it came; the decoder reads along. If
something shows before any of the answer has left (an error, a deviation, another form), the usual exchange takes over.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, final

import msgspec

from dragoman._json import Raw
from dragoman.client.exchange import Exchange, OnDeviation
from dragoman.client.failure_words import explained
from dragoman.client.passthrough.frames import Frames
from dragoman.client.request.forwarding import ClientHead, with_query
from dragoman.client.request.splicing import splice_sized
from dragoman.deviations import HARMLESS_TO_CALLS
from dragoman.errors import call_failure, is_explained
from dragoman.events import Deviation, Event, Failure, Finish, ToolCallEnd, ToolCallFailed
from dragoman.gathered import Gathered
from dragoman.proofs import is_of_the_wire
from dragoman.protocol import NewId, Parsed, Peek, Protocol
from dragoman.providers.endpoint import Outgoing, endpoint, fixed_headers, with_fields
from dragoman.routing.target import Target
from dragoman.secret import masked
from dragoman.stages.part_indices import of_kinds
from dragoman.types import Message, Request, Text

_MOST_FORMS: Final = 1_024
_LONGEST_CHOICE: Final = 512
_LAST: Final = 4096  # bytes at the end of a read in which the answer's end stands, where it is in it
#: Keys under which requests offer tools.
_TOOLS: Final = frozenset({"tools", "functions"})
#: Events that tell of something that may not pass, or of calls that clients run.
_ODD: Final = frozenset[type]({Deviation, Failure, ToolCallEnd, ToolCallFailed})
#: A deviation of calls that a client may run and that we do not deliver.
_UNREAD_CALL: Final = "ignored-call"
_BEHIND_END: Final = "after-end"


@final
class RawRequest:
    """A client's request as it came. `peek` is what is known of it without parsing."""

    __slots__ = ("_parsed", "body", "peek", "head", "path", "protocol")

    def __init__(
        self, protocol: Protocol, body: bytes, peek: Peek, *, path: str, head: ClientHead | None = None
    ) -> None:
        self.protocol: Protocol = protocol
        self.body: bytes = body
        self.peek: Peek = peek
        self.path: str = path
        self.head: ClientHead | None = head
        self._parsed: Parsed | None = None

    def parsed(self) -> Parsed:
        """Parse the request after all. Raises `WireError`: it is not the protocol."""
        if self._parsed is None:
            self._parsed = self.protocol.parse_request(self.body, path=self.path, fields=self.peek.fields)
        return self._parsed

    def skimmed(self) -> Parsed:
        """Return what is known of it so far."""
        if self._parsed is not None:
            return self._parsed
        return Parsed(Request(self.peek.model, (), stream=self.peek.stream))

    def release(self) -> None:
        """Drop its bytes: it is not parsed any more, nor sent again."""
        self.body = b""
        self.peek = msgspec.structs.replace(self.peek, fields={})

    def suits(self, target: Target) -> bool:
        """Return whether this target is clean, and neither the request nor its answer must be changed for it."""
        return target.keeps_bytes and target.protocol.name == self.protocol.name


def _choices(fields: dict[str, Raw]) -> dict[str, Raw]:
    """Return the request fields that may be choices; of long ones only that they exist."""
    return {key: value if len(value) < _LONGEST_CHOICE else Raw(b"null") for key, value in fields.items()}


def _whole(held: bytes | Gathered | None) -> bytes:
    return held if isinstance(held, bytes) else b"" if held is None else held.joined()


class PassthroughExchange:
    """An `Exchange` that sends the client's bytes and keeps the provider's. `outgoing`: what to send."""

    __slots__ = (
        "_decoder", "_doubt", "_end_has_left", "_end_marks", "_expectation", "_failed_call", "_frames", "_has_calls",
        "_headers", "_held", "_is_odd", "_is_stream", "_is_stopping", "_kept_back", "_make_usual", "_on_deviation",
        "_original", "_said", "_status", "_stop_mark", "_target", "_usual", "_withdraw", "_writes_on", "outgoing",
    )  # fmt: skip

    def __init__(
        self,
        target: Target,
        original: RawRequest,
        addresses: EndpointCache,
        *,
        new_id: NewId,
        usual: Callable[[], Exchange],
        on_deviation: OnDeviation,
        withdraw: OnDeviation,
        said: tuple[Deviation, ...] = (),
        trace_parent: str = "",
    ) -> None:
        """Create it. `usual` creates the exchange that takes over."""
        protocol = target.protocol
        self._original = original
        peek = original.peek
        self._is_stream = peek.stream
        asks_usage = bool(peek.usage) and target.dialect.usage_in_stream
        self.outgoing: Outgoing = addresses.outgoing(target, original, asks_usage=asks_usage)
        if trace_parent:
            self.outgoing.headers["traceparent"] = trace_parent
        self._target = target
        self._decoder = protocol.decoder(new_id=new_id, dialect=target.dialect, bounds=target.bounds)
        self._expectation = protocol.expect(_choices(peek.fields)) if peek.fields else peek.expectation
        self._frames = Frames(
            by_lines=protocol.stream_type.endswith("ndjson"),
            without_usage=protocol.without_usage if asks_usage else None,
        )
        self._make_usual = usual
        self._on_deviation = on_deviation
        self._withdraw = withdraw
        self._said: list[Event] = list(said)
        self._usual: Exchange | None = None
        self._status = 200
        self._headers: Mapping[str, str] = {}
        self._held: bytes | Gathered | None = b""  # the body so far; None when it flows
        self._failed_call: ToolCallFailed | None = None
        self._doubt: Deviation | None = None  # with which its client may read calls otherwise
        self._has_calls = False  # that clients run
        self._is_odd = False  # so its end tells whether a call of it failed
        self._end_has_left = False  # what comes behind it is read before it leaves
        self._writes_on = False  # something came behind it, which does not leave
        self._end_marks = protocol.end_marks
        # Without tools no call is waited for, so nothing is lost that hangs on the reason.
        self._stop_mark = protocol.stop_mark if not _TOOLS.isdisjoint(peek.fields) else None
        self._is_stopping = False
        self._kept_back: list[bytes] = []

    @property
    def passes(self) -> bool:
        """Whether the answer's bytes are passed on. It may turn False until something of it has left."""
        return self._usual is None

    # ------------------------------------------------------------ as an exchange

    @property
    def ended(self) -> bool:
        return self._decoder.ended if self._usual is None else self._usual.ended

    @property
    def has_error(self) -> bool:
        return self._usual is not None and self._usual.has_error

    @property
    def headers(self) -> Mapping[str, str]:
        return self._headers

    @property
    def should_retry(self) -> bool | None:
        return None if self._usual is None else self._usual.should_retry

    def keep(self) -> Awaitable[None] | None:
        return None if self._usual is None else self._usual.keep()

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        """As `Exchange.head`. An error, or a body that is not what the client expects, does not pass."""
        self._status, self._headers = status, headers
        expected = self._target.protocol.stream_type if self._is_stream else "application/json"
        is_expected = _kind(headers.get("content-type", "")) == _kind(expected)
        if status != 200 or not is_expected or headers.get("content-encoding", "identity") != "identity":
            self._turn()

    def release(self) -> None:
        self.outgoing = msgspec.structs.replace(self.outgoing, body=b"", fields=None)
        if self._usual is not None:
            self._usual.release()

    def feed(self, data: bytes) -> list[Event]:
        """As `Exchange.feed`. Once the answer flows its bytes are with the client already."""
        if self._usual is not None:
            return self._usual.feed(data)
        held = self._held
        if held is not None:
            if not held:
                self._held = data
            elif isinstance(held, Gathered):
                held.add(data)
            else:
                self._held = Gathered(held, data)
        return self._judged(self._decoder.feed(data))

    def close(self) -> list[Event]:
        if self._usual is not None:
            return self._usual.close()
        events = self._judged(self._decoder.close())
        return events if self._usual is None else [*events, *self._usual.close()]

    def fail(self, failure: Failure) -> list[Event]:
        begun = self._turn() if self._usual is None and self._held is not None else []
        if self._usual is not None:
            return [*begun, *self._usual.fail(failure)]
        return self._judged(self._decoder.fail(failure))

    def again(self, events: Sequence[Event]) -> Exchange | None:
        return None if self._usual is None else self._usual.again(events)

    # ------------------------------------------------------------ bytes

    def begin(self) -> bytes:
        """Start to pass bytes, because something of the answer was decoded. Return those that came so far."""
        held, self._held = _whole(self._held), None
        self._original.release()
        del self._make_usual
        data = self.pass_on(held)
        return self.released(data, is_read=True) if self.may_end(data) else data

    def may_end(self, data: bytes) -> bool:
        """Return whether these bytes may contain the answer's end, or its stop reason, after which a client may run its
        calls.

        They, and all that follow, are read before they leave.
        """
        stop_mark, size = self._stop_mark, len(data)
        if stop_mark is not None and not self._is_stopping and (
            (size > _LAST and stop_mark.search(data, size - _LAST)) or stop_mark.search(data)
        ):  # fmt: skip
            self._is_stopping = True
        if self._is_stopping or self._end_has_left:
            return True
        return max(map(data.rfind, self._end_marks), default=-1) >= 0

    def released(self, data: bytes, *, is_read: bool) -> bytes:
        """Return what leaves after bytes that may end the answer.

        These are they and the held bytes, once the end was read and nothing was odd. Otherwise they are held until the
        body's end, and `rest` returns them if no call failed. `is_read`: the decoder has had them.
        """
        has_ended = is_read and self._decoder.ended
        if not (self._is_odd if has_ended else self._is_stopping or not is_read):
            self._end_has_left = has_ended
            data = b"".join([*self._kept_back, data]) if self._kept_back else data
            self._kept_back.clear()
            return data
        self._is_stopping = True
        before = 0 if self._kept_back else self._frames.before(data, self._stop_mark, self._end_marks)
        self._kept_back.append(data[before:])
        return data[:before]

    def pass_on(self, data: bytes) -> bytes:
        """Return the bytes that leave for the next ones that came; `feed` is called with them afterwards.

        They are the same object if they leave unchanged and contain no error.
        """
        whole = self._frames.feed(data)
        return whole if whole.rfind(b'"error"') < 0 else self._without_secrets(whole)

    def rest(self, events: Sequence[Event]) -> bytes:
        """Return the remaining bytes when the body ended with these events.

        A cut frame is dropped, and so is everything behind the answer's end but usage: clients that read on would take
        it for the answer.
        """
        if events and type(events[-1]) is Failure:
            return b""
        kept = b"".join([*self._kept_back, self._frames.close()])
        if not self._writes_on:
            return kept
        return b"" if self._end_has_left else self._frames.up_to_end(kept, self._target.protocol.decoder(new_id=str))

    def body(self) -> bytes:
        """Return the whole answer of a request that was not streamed."""
        return _whole(self._held)

    # ------------------------------------------------------------ inside

    def _without_secrets(self, frames: bytes) -> bytes:
        """Return error frames without secrets: some quote the key that they refuse."""
        text = frames.decode("utf-8", "surrogateescape")
        return masked(text, self._target.secrets()).encode("utf-8", "surrogateescape")

    def _judged(self, events: list[Event]) -> list[Event]:
        for event in of_kinds(events, _ODD):  # a burst has hundreds of others
            if type(event) is Deviation:
                if self._expectation.explains(event):
                    continue
                self._is_odd = True
                if self._held is not None and event.severity != "note" and is_of_the_wire(event.code):
                    return self._turn()
                if event.severity != "note" and is_of_the_wire(event.code) and event.code not in HARMLESS_TO_CALLS:
                    self._doubt = self._doubt or event
                    self._has_calls = self._has_calls or event.code == _UNREAD_CALL
                self._writes_on = self._writes_on or event.code == _BEHIND_END
                self._on_deviation(self._target.name, event)
                if type(events[-1]) is not Failure:
                    self._withdraw(self._target.name, event)
            elif self._held is not None and (type(event) is Failure or type(event) is ToolCallFailed):
                return self._turn()
            elif type(event) is Failure:  # the last event
                events = [*events[:-1], explained(event, self._target, self.outgoing.url)]
            elif type(event) is ToolCallFailed:
                if self._failed_call is None or self._failed_call.kind == "cut":
                    self._failed_call = event
                self._is_odd = True
            elif type(event) is ToolCallEnd:
                self._has_calls = True
        if events and type(end := events[-1]) is Finish:
            events = self._ended(events, end)
        if self._said:
            events, self._said = [*self._said, *events], []
        return events

    def _ended(self, events: list[Event], end: Finish) -> list[Event]:
        """Return the last events: an error if calls have left and failed, or may have been read differently."""
        failed = self._failed_call
        if self._doubt is not None and self._has_calls and (failed is None or is_explained(failed, end)):
            failed = _misread(self._doubt)
            events = [*events[:-1], failed, end]
        if failed is None or is_explained(failed, end):
            return events
        return [*events[:-1], call_failure([failed], end.usage)]

    def _turn(self) -> list[Event]:
        """Let the usual exchange take over, with all that came."""
        self._usual = usual = self._make_usual()
        usual.head(self._status, self._headers)
        held, self._held = _whole(self._held), None
        return usual.feed(held) if held else []


def _misread(doubt: Deviation) -> ToolCallFailed:
    """Return the failure of calls that left with a deviation in them: only our own reading mends them."""
    where = f"{doubt.code} at {doubt.where}" if doubt.where else doubt.code
    message = f"the calls of this answer came in a form that clients read otherwise ({where}): ask again"
    return ToolCallFailed(0, "", "", "contradicted", message)


def _kind(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def is_cut(events: Sequence[Event]) -> bool:
    """Return whether an answer ended within a call, so that its client's connection must not end well."""
    return any(type(event) is ToolCallFailed for event in events)


class EndpointCache:
    """The addresses of requests that pass, by target and by whether they stream: they are costly to compute."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[tuple[str, bool], tuple[Target, Outgoing, dict[str, str]]] = {}

    def outgoing(self, target: Target, original: RawRequest, *, asks_usage: bool) -> Outgoing:
        """Return the request for a target."""
        form, fixed = self._form(target, is_stream=original.peek.stream)
        body, fields = _spliced(target, original, asks_usage)
        if target.provider.body:
            body, fields = with_fields(body, target.provider), None
        head = original.head
        if head is None:
            return Outgoing(form.method, form.url, {**form.headers}, body, fields=fields)
        headers = {**form.headers, **head.passing(), **fixed}
        return Outgoing(form.method, with_query(form.url, head.query()), headers, body, target.client_login, fields)

    def _form(self, target: Target, *, is_stream: bool) -> tuple[Outgoing, dict[str, str]]:
        """Return the request without its body, and those of its headers that no client's replace.

        Only the model and whether it streams decide these.
        """
        kept = self._kept.get((target.name, is_stream))
        if kept is not None and kept[0] is target:
            return kept[1], kept[2]
        question = Request(target.model, (Message("user", (Text("?"),)),), stream=is_stream)
        http = target.protocol.render_request(question, dialect=target.dialect, limits=target.limits).http
        key = target.key.reveal() if target.key is not None else None
        form = endpoint(target.provider, http, model=target.model, key=key)
        fixed = fixed_headers(target.provider, key)
        if target.client_login:  # the key may be a client's own, which is not kept
            return form, fixed
        if len(self._kept) >= _MOST_FORMS:
            self._kept.clear()
        self._kept[target.name, is_stream] = (target, form, fixed)
        return form, fixed


def _spliced(target: Target, original: RawRequest, asks_usage: bool) -> tuple[bytes, dict[str, Raw] | None]:
    """Return the client's body with the target's name of the model, and what was written, as `Outgoing.fields`."""
    peek = original.peek
    changes = dict(peek.usage) if asks_usage else {}
    if peek.names_model and peek.model != target.model:
        changes["model"] = target.model
    body = original.body
    return splice_sized(len(body), peek.fields, changes) if changes else (body, None)
