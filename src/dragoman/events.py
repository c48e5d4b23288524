"""The steps of one response, and their sum.

A response is a list of parts; each part opens, grows, closes. Whole (non-streamed) responses are the same events,
all at once. Grammar of a decoder's output (part indices may interleave)::

    response := Start (part | Deviation | UsageUpdate)* (Finish | Failure)   |   Deviation* Failure
    part(i)  := TextStart TextDelta* TextEnd  |  ThinkingStart ThinkingDelta* ThinkingEnd
              | ToolCallStart ToolCallDelta* (ToolCallEnd | ToolCallFailed)  |  PartEvent

`Deviation` may stand anywhere, before `Start` too, and `NativeEvent` anywhere behind it. Every part is ended or failed
before `Finish` (not before `Failure`); nothing follows the terminal event. Encoders take the same with one part open at
a time (`dragoman.pipe` puts interleaved parts in order).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, Literal, TypeAlias, final, get_args

import msgspec

from dragoman._json import Raw
from dragoman.types import (
    NO_USAGE,
    Attempt,
    Cost,
    Media,
    Message,
    Native,
    Opaque,
    Origin,
    Output,
    Part,
    ProtocolName,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    Usage,
)
from dragoman.types import FailureKind as FailureKind

Severity: TypeAlias = Literal["fault", "note"]
CallFailureKind: TypeAlias = Literal["cut", "unreadable", "lost", "nameless", "refused", "contradicted"]


@final
class Start(msgspec.Struct, frozen=True):
    """The response has begun. `created` in Unix seconds; what the wire did not say is None.

    `origin`: who was asked; only who asks knows it.
    """

    id: str | None = None
    model: str | None = None
    created: int | None = None
    native: Native | None = None
    origin: Origin | None = None


@final
class TextStart(msgspec.Struct, frozen=True):
    """A text part opens."""

    index: int
    native: Native | None = None


@final
class TextDelta(msgspec.Struct, frozen=True, gc=False):
    """A text part grows by `text` (never empty)."""

    index: int
    text: str


@final
class TextEnd(msgspec.Struct, frozen=True):
    """A text part closes. `was_thinking`: a lone closing tag showed that it was thinking; `fold` moves it there.

    `native` are fields that only the part's end told; they stand over those of its start.
    """

    index: int
    was_thinking: bool = False
    signature: str | None = None
    native: Native | None = None


@final
class ThinkingStart(msgspec.Struct, frozen=True):
    """A thinking part opens."""

    index: int
    native: Native | None = None


@final
class ThinkingDelta(msgspec.Struct, frozen=True, gc=False):
    """A thinking part grows by `text` (never empty)."""

    index: int
    text: str


@final
class ThinkingEnd(msgspec.Struct, frozen=True):
    """A thinking part closes, with the provider's seal and, when its text was withheld, its sealed data.

    `native` are fields that only the part's end told; they stand over those of its start.
    """

    index: int
    signature: str | None = None
    redacted: str | None = None
    native: Native | None = None


@final
class ToolCallStart(msgspec.Struct, frozen=True):
    """A tool call opens: its id (made up when the wire had none) and its whole name are known."""

    index: int
    id: str
    name: str
    kind: Literal["function", "custom"] = "function"
    native: Native | None = None


@final
class ToolCallDelta(msgspec.Struct, frozen=True, gc=False):
    """The argument text of a call grows by `text` (never empty)."""

    index: int
    text: str


@final
class ToolCallEnd(msgspec.Struct, frozen=True):
    """A tool call is whole: `call.arguments` is closed JSON, and all that its deltas said."""

    index: int
    call: ToolCall


@final
class ToolCallFailed(msgspec.Struct, frozen=True):
    """A tool call that cannot be delivered, in place of `ToolCallEnd`; the response goes on.

    `kind`: "cut" (arguments end before they are closed), "unreadable" (not a JSON object), "lost" (more of it may have
    been in a frame that could not be read, or behind the end of the text it was written in), "nameless", "refused"
    (the provider withdrew it, or its text is not of its format), "contradicted" (it came in two ways). `arguments` is
    the raw text that came; `message` never holds it. A nameless call has no `ToolCallStart`.
    """

    index: int
    id: str
    name: str
    kind: CallFailureKind
    message: str
    arguments: str = ""


@final
class PartEvent(msgspec.Struct, frozen=True):
    """A part that comes whole: media, or one that only its protocol knows."""

    index: int
    part: Media | Opaque


@final
class NativeEvent(msgspec.Struct, frozen=True, gc=False):
    """An event that only its protocol has, as its JSON text: what a tool that the provider runs does meanwhile.

    It is written again in the same protocol; others, and a `Reply`, have no place for it. `of_part`: it tells of a part
    that comes whole as a `PartEvent`, which counts; another event is named when it is lost.
    """

    protocol: ProtocolName
    raw: Raw
    of_part: bool = False


@final
class UsageUpdate(msgspec.Struct, frozen=True):
    """Tokens so far, cumulative, at each report of the wire."""

    usage: Usage
    cost: Cost | None = None


@final
class Finish(msgspec.Struct, frozen=True):
    """The response ended as its protocol says. `native_reason` is the wire's own word; None when it had none.

    `native` are fields of the response that its end told; they stand over those of `Start`. What stands deeper in the
    response keeps its path there: `{"choices": [{"logprobs": …}]}`, `{"candidates": [{"groundingMetadata": …}]}`.
    """

    reason: StopReason
    native_reason: str | None = None
    usage: Usage = NO_USAGE
    cost: Cost | None = None
    native: Native | None = None


@final
class Failure(msgspec.Struct, frozen=True):
    """The response cannot go on. `status` is HTTP's or None, `retry_after` in seconds, `native` as in `Finish`."""

    kind: FailureKind
    message: str
    status: int | None = None
    retry_after: float | None = None
    usage: Usage = NO_USAGE
    cost: Cost | None = None
    code: str | None = None
    native: Native | None = None


@final
class Deviation(msgspec.Struct, frozen=True, gc=False):
    """The wire broke its specification, and dragoman went on. `code` is one of `dragoman.deviations`.

    `where` is a JSON path or a place in words; `seen` is clipped to 200 bytes and never holds argument values.
    `severity` "note": what the protocol's usual servers leave out without harm; no reason to call a wire unclean.
    """

    code: str
    where: str = ""
    seen: str = ""
    severity: Severity = "fault"


Event: TypeAlias = (
    Start
    | TextStart | TextDelta | TextEnd
    | ThinkingStart | ThinkingDelta | ThinkingEnd
    | ToolCallStart | ToolCallDelta | ToolCallEnd | ToolCallFailed
    | PartEvent | NativeEvent | UsageUpdate | Finish | Failure | Deviation
)  # fmt: skip

EVERY_KIND: frozenset[type] = frozenset(get_args(Event))

#: Events that carry something of the answer; the first one commits a fallback (architecture: the commit point).
SEMANTIC: frozenset[type] = frozenset(
    {TextDelta, ThinkingDelta, ToolCallStart, ToolCallDelta, ToolCallEnd, ToolCallFailed, PartEvent, NativeEvent,
     Finish}
)  # fmt: skip
#: Events that only let a text or a call grow: none of them opens, ends or marks anything.
GROWTH: frozenset[type] = frozenset({TextDelta, ToolCallDelta})
_STARTS: frozenset[type] = frozenset({TextStart, ThinkingStart, ToolCallStart})


def settle_reason(wire: StopReason | None, *, usable_calls: int, failed_calls: int) -> StopReason:
    """The stop reason of a response that reached its end, from what the wire said and what calls it holds.

    length and content_filter are kept; else a usable call makes it tool_use; a claim of tool use without any call is
    a plain stop; a response whose only calls failed is "other" (`fold` reports "error").
    """
    if wire == "length" or wire == "content_filter":
        return wire
    if usable_calls:
        return "tool_use"
    if failed_calls:
        return "other"
    return "stop" if wire is None or wire == "tool_use" else wire


@final
class Reply(msgspec.Struct, Generic[Output], frozen=True):
    """A whole response: the fold of its events.

    `stop_reason` is "error" when the response failed, or when its only calls did. `error` is the `Failure`, else the
    first `ToolCallFailed`. Text and whole calls that came before a failure are kept; run none of them. `native` holds
    the fields of `Start` and those of `Finish`. A client adds `output`, the answer as the `output_type` that was asked
    for, and `attempts`, what came of each target.
    """

    id: str | None
    model: str | None
    created: int | None
    parts: tuple[Part, ...]
    stop_reason: StopReason | Literal["error"]
    native_reason: str | None
    usage: Usage
    cost: Cost | None
    error: Failure | ToolCallFailed | None
    failed_calls: tuple[ToolCallFailed, ...]
    deviations: tuple[Deviation, ...]
    native: Native | None = None
    origin: Origin | None = None
    output: Output = None  # type: ignore[assignment]
    attempts: tuple[Attempt, ...] = ()

    def __str__(self) -> str:
        """Its text, or its calls as `get_weather(city="Paris")`, one a line."""
        return self.text or "\n".join(map(str, self.tool_calls))

    @property
    def text(self) -> str:
        """The text parts, joined with nothing between."""
        return "".join(part.text for part in self.parts if type(part) is Text)

    @property
    def thinking(self) -> str:
        """The thinking parts, joined with nothing between."""
        return "".join(part.text for part in self.parts if type(part) is Thinking)

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The calls that came whole, in order."""
        return [part for part in self.parts if type(part) is ToolCall]

    @property
    def message(self) -> Message:
        """The answer as a turn of the conversation."""
        is_cut = self.stop_reason == "error" and type(self.error) is not ToolCallFailed
        return Message("assistant", self.parts, origin=self.origin, is_cut=is_cut)


class Fold:
    """`fold`, step by step: `add` events as they come, take `reply()` at any time. Linear in the text."""

    __slots__ = ("_cost", "_deviations", "_end", "_failed", "_natives", "_parts", "_pieces", "_start", "_usage")

    def __init__(self) -> None:
        self._start = Start()
        self._parts: dict[int, Part | None] = {}  # None while open
        self._pieces: dict[int, list[str]] = {}
        self._natives: dict[int, tuple[type, Native | None]] = {}
        self._failed: list[ToolCallFailed] = []
        self._deviations: list[Deviation] = []
        self._usage = NO_USAGE
        self._cost: Cost | None = None
        self._end: Finish | Failure | None = None

    def add(self, event: Event) -> None:
        """Take the next event."""
        if type(event) is TextDelta or type(event) is ThinkingDelta or type(event) is ToolCallDelta:
            self._pieces[event.index].append(event.text)
        elif type(event) not in _STARTS:
            self._add_rare(event)
        elif type(event) is TextStart or type(event) is ThinkingStart or type(event) is ToolCallStart:
            self._parts[event.index] = None
            self._pieces[event.index] = []
            self._natives[event.index] = (type(event), event.native)

    def _add_rare(self, event: Event) -> None:
        if type(event) is ToolCallEnd:
            self._parts[event.index] = event.call
        elif type(event) is TextEnd:
            self._close(event, was_thinking=event.was_thinking)
        elif type(event) is ThinkingEnd:
            self._close(event, redacted=event.redacted)
        elif type(event) is UsageUpdate or type(event) is Finish or type(event) is Failure:
            self._usage = self._usage.merged(event.usage)
            self._cost = event.cost or self._cost
            if type(event) is not UsageUpdate:
                self._end = event
        elif type(event) is Start:
            self._start = event
        elif type(event) is Deviation:
            self._deviations.append(event)
        elif type(event) is PartEvent:
            self._parts[event.index] = event.part
        elif type(event) is not NativeEvent:
            assert type(event) is ToolCallFailed, f"not an event: {type(event).__name__}"
            self._parts.pop(event.index, None)
            self._failed.append(event)

    def _close(self, event: TextEnd | ThinkingEnd, *, was_thinking: bool = False, redacted: str | None = None) -> None:
        index, native = event.index, event.native
        text = "".join(self._pieces.pop(index))
        kind, at_start = self._natives[index]
        native = _both(at_start, native)
        if kind is TextStart and not was_thinking:
            self._parts[index] = Text(text, event.signature, native)
        else:
            self._parts[index] = Thinking(text, event.signature, redacted, native)

    def arguments(self, index: int) -> str:
        """The argument text of an open call so far; "" when there is none."""
        return "".join(self._pieces.get(index, ()))

    def reply(self) -> Reply:
        """The response so far. Text that is still open counts, calls that are still open do not."""
        parts: list[Part] = []
        for index in sorted(self._parts):
            part = self._parts[index]
            if part is not None:
                parts.append(part)
            elif self._natives[index][0] is not ToolCallStart:
                opened, native = self._natives[index]
                text = "".join(self._pieces[index])
                parts.append(Text(text, None, native) if opened is TextStart else Thinking(text, None, None, native))
        end, failed = self._end, sorted(self._failed, key=lambda event: event.index)
        reason: StopReason | Literal["error"] = end.reason if type(end) is Finish else "error"
        if failed and reason not in ("length", "content_filter") and not any(type(part) is ToolCall for part in parts):
            reason = "error"
        return Reply(
            id=self._start.id,
            model=self._start.model,
            created=self._start.created,
            parts=tuple(part for part in parts if type(part) is not Text or part.text or part.signature),
            stop_reason=reason,
            native_reason=end.native_reason if type(end) is Finish else None,
            usage=self._usage,
            cost=self._cost,
            error=end if type(end) is Failure else failed[0] if failed else None,
            failed_calls=tuple(failed),
            deviations=tuple(self._deviations),
            native=_both(self._start.native, end.native if end is not None else None),
            origin=self._start.origin,
        )


def _both(start: Native | None, end: Native | None) -> Native | None:
    """The fields that a beginning and an end told; those of the end stand over the others."""
    if start is None or end is None:
        return start or end
    return Native(end.protocol, start.fields | end.fields)


def fold(events: Iterable[Event]) -> Reply:
    """Sum up a response. Parts stand in the order in which they started, never in that of their ends."""
    state = Fold()
    for event in events:
        state.add(event)
    return state.reply()


def unfold(reply: Reply) -> list[Event]:
    """The events of a whole response; `fold` of them is the reply again (its deviations first).

    All native fields of the response stand in `Start`, as with a whole response that was decoded: an encoder keeps
    those that its protocol tells at the end.
    """
    events: list[Event] = [*reply.deviations, Start(reply.id, reply.model, reply.created, reply.native, reply.origin)]
    add = events.append
    for index, part in enumerate(reply.parts):
        match part:
            case Text(text, signature, native):
                add(TextStart(index, native))
                if text:
                    add(TextDelta(index, text))
                add(TextEnd(index, signature=signature))
            case Thinking(text, signature, redacted, native):
                add(ThinkingStart(index, native))
                if text:
                    add(ThinkingDelta(index, text))
                add(ThinkingEnd(index, signature, redacted))
            case ToolCall(id, name, arguments, kind, _, native):
                add(ToolCallStart(index, id, name, kind, native))
                if arguments:
                    add(ToolCallDelta(index, arguments))
                add(ToolCallEnd(index, part))
            case Media() | Opaque():
                add(PartEvent(index, part))
            case _:
                raise ValueError(f"expected a part of an answer, got {type(part).__name__} at parts[{index}]")
    for index, failed in enumerate(reply.failed_calls, len(reply.parts)):
        if failed.name:
            add(ToolCallStart(index, failed.id, failed.name))
        add(msgspec.structs.replace(failed, index=index))
    if type(reply.error) is Failure:
        add(reply.error)
    elif reply.stop_reason == "error":
        add(Finish("other", reply.native_reason, reply.usage, reply.cost))
    else:
        add(Finish(reply.stop_reason, reply.native_reason, reply.usage, reply.cost))
    return events
