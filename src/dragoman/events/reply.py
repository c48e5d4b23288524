"""The sum of a response's events: a whole reply, and its events again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Generic, Literal, final

import msgspec

from dragoman.events.steps import (
    Deviation,
    Event,
    Failure,
    Finish,
    NativeEvent,
    PartEvent,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallFailed,
    ToolCallStart,
    UsageUpdate,
)
from dragoman.gathered import GatheredText
from dragoman.misuse import UsageError, kind_of
from dragoman.secret import name_alone
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
    StopReason,
    Text,
    Thinking,
    ToolCall,
    Usage,
)


@final
class Reply(msgspec.Struct, Generic[Output], frozen=True, repr_omit_defaults=True):
    """A whole response: the fold of its events.

    `stop_reason` is "error" if the response failed, or if its only calls did. `error` is the `Failure`, else the first
    `ToolCallFailed`. Text and complete calls that came before a failure are kept; do not run the calls. `native` has
    the fields of `Start` and those of `Finish`. A client adds `output`, the answer as the requested `output_type`, and
    `attempts`, the result of each target.
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
        """Return its text, or its calls as `get_weather(city="Paris")`, one per line."""
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
        """The complete calls, in order."""
        return [part for part in self.parts if type(part) is ToolCall]

    @property
    def message(self) -> Message:
        """Return the answer as a turn of the conversation."""
        is_cut = self.stop_reason == "error" and type(self.error) is not ToolCallFailed
        return Message("assistant", self.parts, origin=self.origin, is_cut=is_cut)


class Fold(msgspec.Struct, eq=False):
    """`fold`, step by step: `add` events as they come, take `reply()` at any time. Linear in the text."""

    _start: Start = Start()
    _parts: dict[int, Part | None] = {}  # None while open
    _pieces: dict[int, GatheredText] = {}
    _natives: dict[int, tuple[type, Native | None]] = {}
    _calls: dict[int, ToolCallStart] = {}  # that started
    _failed: list[ToolCallFailed] = []
    _deviations: list[Deviation] = []
    _usage: Usage = NO_USAGE
    _cost: Cost | None = None
    _end: Finish | Failure | None = None

    __repr__ = name_alone

    def add(self, event: Event) -> None:
        """Add the next event."""
        if type(event) is TextDelta or type(event) is ToolCallDelta:  # as most are
            self._pieces[event.index].add(event.text)
        else:
            _TAKES[type(event)](self, event)

    def _grow(self, event: TextDelta | ToolCallDelta | ThinkingDelta) -> None:
        self._pieces[event.index].add(event.text)

    def _start_part(self, event: TextStart | ThinkingStart | ToolCallStart) -> None:
        index = event.index
        self._parts[index] = None
        self._pieces[index] = GatheredText()
        self._natives[index] = (type(event), event.native)
        if type(event) is ToolCallStart:
            self._calls[index] = event

    def _end_call(self, event: ToolCallEnd) -> None:
        self._parts[event.index] = event.call

    def _fail_call(self, event: ToolCallFailed) -> None:
        self._parts.pop(event.index, None)
        self._failed.append(event)

    def _take_part(self, event: PartEvent) -> None:
        self._parts[event.index] = event.part

    def _end_text(self, event: TextEnd) -> None:
        self._close(event, was_thinking=event.was_thinking)

    def _end_thinking(self, event: ThinkingEnd) -> None:
        self._close(event, redacted=event.redacted)

    def _take_usage(self, event: UsageUpdate | Finish | Failure) -> None:
        self._usage = self._usage.merged(event.usage)
        self._cost = event.cost or self._cost
        if type(event) is not UsageUpdate:
            self._end = event

    def _begin(self, event: Start) -> None:
        self._start = event

    def _deviate(self, event: Deviation) -> None:
        self._deviations.append(event)

    def _leave_out(self, event: NativeEvent) -> None:
        pass

    def _close(self, event: TextEnd | ThinkingEnd, *, was_thinking: bool = False, redacted: str | None = None) -> None:
        index, native = event.index, event.native
        text = self._pieces.pop(index).text()
        kind, at_start = self._natives[index]
        native = _both(at_start, native)
        if kind is TextStart and not was_thinking:
            self._parts[index] = Text(text, event.signature, native)
        else:
            self._parts[index] = Thinking(text, event.signature, redacted, native)

    def _never_ended(self, call: ToolCallStart) -> ToolCallFailed:
        message = f"tool call {call.name}: the response ended before the call did"
        return ToolCallFailed(call.index, call.id, call.name, "cut", message, self.arguments(call.index))

    def arguments(self, index: int) -> str:
        """Return the argument text of an open call so far; "" if there is none."""
        pieces = self._pieces.get(index)
        return pieces.text() if pieces is not None else ""

    def reply(self) -> Reply:
        """Return the response so far.

        Open text counts, open calls do not: once the response has ended they have failed.
        """
        parts: list[Part] = []
        failed = list(self._failed)
        for index in sorted(self._parts):
            part = self._parts[index]
            if part is not None:
                parts.append(part)
            elif index in self._calls:
                failed += [self._never_ended(self._calls[index])] if self._end is not None else []
            else:
                opened, native = self._natives[index]
                text = self._pieces[index].text()
                parts.append(Text(text, None, native) if opened is TextStart else Thinking(text, None, None, native))
        end = self._end
        if failed:
            failed.sort(key=lambda event: event.index)
        reason: StopReason | Literal["error"] = end.reason if type(end) is Finish else "error"
        if failed and reason not in ("length", "content_filter") and not any(type(part) is ToolCall for part in parts):
            reason = "error"
        return Reply(
            id=self._start.id,
            model=self._start.model,
            created=self._start.created,
            parts=tuple([part for part in parts if type(part) is not Text or part.text or part.signature]),
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


_TAKES: Final[dict[type, Callable[[Fold, Any], None]]] = {
    Start: Fold._begin,
    TextStart: Fold._start_part,
    ThinkingStart: Fold._start_part,
    ToolCallStart: Fold._start_part,
    ThinkingDelta: Fold._grow,
    TextDelta: Fold._grow,
    ToolCallDelta: Fold._grow,
    TextEnd: Fold._end_text,
    ThinkingEnd: Fold._end_thinking,
    ToolCallEnd: Fold._end_call,
    ToolCallFailed: Fold._fail_call,
    PartEvent: Fold._take_part,
    UsageUpdate: Fold._take_usage,
    Finish: Fold._take_usage,
    Failure: Fold._take_usage,
    Deviation: Fold._deviate,
    NativeEvent: Fold._leave_out,
}


def _both(start: Native | None, end: Native | None) -> Native | None:
    """Return the fields of a beginning and an end. Those of the end win."""
    if start is None or end is None:
        return start or end
    return Native(end.protocol, start.fields | end.fields)


def fold(events: Iterable[Event]) -> Reply:
    """Sum up a response. Parts stand in the order in which they started, not in that of their ends.

    Raises:
        UsageError: something is no event, or continues a part that did not begin.
    """
    if not isinstance(events, Iterable):
        raise UsageError(f"fold: expected the events of a response, got {kind_of(events)}")
    state = Fold()
    for event in events:
        try:
            _TAKES[type(event)](state, event)
        except KeyError:
            raise UsageError(f"fold: expected the events of a response, in order, got {kind_of(event)}") from None
    return state.reply()


def unfold(reply: Reply) -> list[Event]:
    """Return the events of a whole response. `fold` of them is the reply again (its deviations first).

    All native fields of the response stand in `Start`, as in a decoded whole response: an encoder keeps those that its
    protocol writes at the end.

    Raises:
        UsageError: it is no reply, or has a part that no answer has.
    """
    if not isinstance(reply, Reply):
        raise UsageError(f"unfold: expected a Reply, got {kind_of(reply)}")
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
                raise UsageError(f"unfold: expected a part of an answer, got {kind_of(part)} at parts[{index}]")
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
