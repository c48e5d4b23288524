"""One response while it is put together: its parts, its ends, and the policies that hold for every protocol.

A protocol's decoder says what it reads (`text`, `open_call`, `add_arguments`, `usage`, `finish`, `end`, `fail`);
the assembly turns that into events in the grammar of `dragoman.events` and decides

- when a call is whole: its arguments are a closed JSON object and its block's end was seen or nothing more can come;
- how the response ends: `Finish` is held until the body's end, so that parts and usage after a stop reason count;
- what a stop reason is worth against the calls that came.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from dragoman._json import whole_characters
from dragoman.bounds import USUAL_BOUNDS, AnswerBounds, exceeded
from dragoman.codec.parts.argument_text import GATHERED, ArgumentText
from dragoman.codec.parts.open_parts import OpenCall, OpenPart
from dragoman.codec.parts.settled_arguments import Settled, is_placeholder, is_plain_object, is_same
from dragoman.deviations import clip
from dragoman.events import (
    CallFailureKind,
    Deviation,
    Event,
    Failure,
    FailureKind,
    Finish,
    NativeEvent,
    PartEvent,
    Severity,
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
    settle_reason,
)
from dragoman.protocol import NewId, TakesNothing, takes_nothing
from dragoman.types import NO_USAGE, Cost, Media, Native, Opaque, StopReason, ToolCall, Usage

#: Distinct deviations reported for one response; a wire that breaks more rules is reported as far as this.
_MOST_DEVIATIONS: Final = 200
_FEW: Final = 8  # fragments that are not worth a look at them all
Phase: TypeAlias = Literal["open", "ended", "closed"]


class Assembly:
    """Collects one response. Methods append to `events`; `take` hands them out."""

    __slots__ = (
        "_before_surrogate", "_bounds", "_calls", "_contradiction", "_cost", "_failed_calls", "_has_strays",
        "_high_surrogate", "_most", "_names_tool_use", "_native_reason", "_needs_ids", "_new_id",
        "_next_index", "_parts", "_reported", "_ripe", "_run", "_semantic", "_unreadable",
        "_usable_calls", "_usage", "calls_by_id", "end_native", "events", "offered_names", "opened_calls",
        "phase", "reason", "started", "takes_nothing",
    )  # fmt: skip

    def __init__(
        self, new_id: NewId, offered_names: frozenset[str], *, takes_nothing: TakesNothing = takes_nothing,
        names_tool_use: bool = True, needs_ids: Severity | None = "fault", bounds: AnswerBounds = USUAL_BOUNDS,
    ) -> None:  # fmt: skip
        """`names_tool_use`: the protocol has a stop reason for tool calls, so another one beside calls is a lie.
        `needs_ids`: its calls have ids; the severity of one that has none."""
        self._needs_ids = needs_ids
        self._bounds, self._most = bounds, bounds.arguments
        self.events: list[Event] = []
        self._names_tool_use = names_tool_use
        self.offered_names, self.takes_nothing = offered_names, takes_nothing
        self.phase: Phase = "open"
        self.reason: StopReason | None = None
        self._native_reason: str | None = None
        self.end_native: Native | None = None  # fields that only the end of the response tells
        self._new_id = new_id
        self.started = False  # whether `Start` was given
        self._next_index = 0
        self._run: OpenPart | None = None  # the text or thinking that goes on until something else comes
        self._parts: dict[int, OpenPart] = {}
        self._calls: dict[int, OpenCall] = {}
        self._ripe: dict[int, OpenCall] = {}  # calls that another part's opening closes
        self.calls_by_id: dict[str, OpenCall] = {}
        self.opened_calls = self._usable_calls = self._failed_calls = 0
        self._has_strays = self._semantic = False
        self._usage = NO_USAGE
        self._cost: Cost | None = None
        self._unreadable = self._contradiction = ""  # what no frame said; why a call that has left may be another one
        self._reported: set[tuple[str, str]] = set()
        self._high_surrogate = ""
        self._before_surrogate = ""  # the text that `_high_surrogate` was cut from

    def take(self) -> list[Event]:
        """The events since the last call."""
        events, self.events = self.events, []
        return events

    def deviate(self, code: str, where: str = "", seen: object = "", *, severity: Severity = "fault") -> None:
        """Report a deviation, once for each code and place."""
        if self.phase == "closed" or (code, where) in self._reported or len(self._reported) >= _MOST_DEVIATIONS:
            return
        self._reported.add((code, where))
        self.events.append(Deviation(code, where, clip(seen), severity))

    def start(
        self,
        id: str | None = None,
        model: str | None = None,
        created: int | None = None,
        *,
        native: Native | None = None,
    ) -> None:
        """The response begins; later calls do nothing."""
        if not self.started and self.phase != "closed":
            self.started = True
            id, model = whole_characters(id or ""), whole_characters(model or "")
            self.events.append(Start(id or None, model or None, created, native))

    @property
    def is_empty(self) -> bool:
        """Whether nothing of an answer has come."""
        return not self._semantic

    # ------------------------------------------------------------ text and thinking

    def text(self, text: str) -> None:
        """Text that belongs to no named part: it joins the text that is running."""
        run = self._run
        if run is not None and run.kind is TextStart and not self._high_surrogate:
            self.events.append(TextDelta(run.index, text))
        else:
            self._grow_run(TextStart, text)

    def texts(self, texts: list[str]) -> None:
        """The same for texts that came together, none of them empty."""
        self.text(texts[0])
        if self._run is not None and self._run.kind is TextStart:
            self.add_many(self._run, texts[1:])

    def thinking(self, text: str) -> None:
        """Thinking that belongs to no named part."""
        run = self._run
        if run is not None and run.kind is ThinkingStart and not self._high_surrogate:
            self.events.append(ThinkingDelta(run.index, text))
        else:
            self._grow_run(ThinkingStart, text)

    def _grow_run(self, kind: type[TextStart] | type[ThinkingStart], text: str) -> None:
        if self._is_late():
            return
        run = self._run
        if run is None or run.kind is not kind:
            self.end_run()
            run = self._run = self.open_part(kind)
        self.add(run, text)

    def running(self, kind: type[TextStart] | type[ThinkingStart]) -> OpenPart | None:
        """The run that is open, if it is of this kind."""
        return self._run if self._run is not None and self._run.kind is kind else None

    def end_run(self) -> None:
        """What runs ends; what comes next opens a part of its own."""
        if self._run is not None:
            self.end_part(self._run)

    def open_part(self, kind: type[TextStart] | type[ThinkingStart], *, native: Native | None = None) -> OpenPart:
        """Open a text or thinking part that the protocol delimits. After the response's end it gives no event."""
        if not self._has_room():
            return OpenPart(-1, kind)
        self._open()
        part = OpenPart(self._index(), kind)
        self._parts[part.index] = part
        self.events.append(kind(part.index, native))
        return part

    def add(self, part: OpenPart, text: str) -> None:
        """Let a part grow. Empty text and closed parts are passed over."""
        if self._high_surrogate and text is not self._before_surrogate:
            text = self._join_surrogates(text)
        if text and part.index in self._parts:
            self.events.append((TextDelta if part.kind is TextStart else ThinkingDelta)(part.index, text))

    def add_many(self, part: OpenPart, texts: list[str]) -> None:
        """Let a part grow by texts that came together, none of them empty."""
        if self._high_surrogate or part.index not in self._parts:
            for text in texts:
                self.add(part, text)
            return
        index = part.index
        if part.kind is TextStart:
            self.events += [TextDelta(index, text) for text in texts]
        else:
            self.events += [ThinkingDelta(index, text) for text in texts]

    def lenient_text(self, text: str) -> str:
        """Text from the lenient reader: half of a surrogate pair at its end waits for the next text."""
        text = self._join_surrogates(text)
        half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        clean = whole_characters(text[: len(text) - len(half)])
        if half:
            self._high_surrogate, self._before_surrogate = half, clean
        if clean != text:
            self.deviate("lone-surrogate", "text")
        return clean

    def _join_surrogates(self, text: str) -> str:
        if self._high_surrogate and text:
            text = _join_halves(self._high_surrogate, text)
            self._high_surrogate = ""
        return text

    def end_part(self, part: OpenPart) -> None:
        """A part is whole."""
        if self._parts.pop(part.index, None) is None:
            return
        if self._high_surrogate:
            self._high_surrogate = ""
            self.events.append((TextDelta if part.kind is TextStart else ThinkingDelta)(part.index, "\ufffd"))
        if part is self._run:
            self._run = None
        if part.kind is TextStart:
            self.events.append(TextEnd(part.index, False, part.signature, part.native))
        else:
            self.events.append(ThinkingEnd(part.index, part.signature, part.redacted, part.native))

    def whole_part(self, part: Media | Opaque) -> None:
        """A part that comes whole."""
        if not self._has_room():
            return
        self._open()
        self.events.append(PartEvent(self._index(), part))

    def native_event(self, event: NativeEvent) -> None:
        """An event that only its protocol has."""
        if self.phase == "open":
            if not self.started:
                self.start()
            self.events.append(event)

    # ------------------------------------------------------------ calls

    def open_call(
        self,
        id: str | None,
        name: str | None,
        *,
        kind: Literal["function", "custom"] = "function",
        native: Native | None = None,
        wait: bool = False,
    ) -> OpenCall:
        """A call begins. After the response's end it gives no event.

        Args:
            id: as the wire has it; one is made up when it has none.
            name: "" or None while unknown; the call opens when it is known.
            wait: hold the start event until `announce` (its id or name may still change).
        """
        if not self._has_room(is_call=True):
            late = OpenCall(-1, id=id or "", name=name or "", kind=kind)
            late.state = "failed"
            return late
        self._open()
        call = OpenCall(self._index(), id=id or "", name=name or "", kind=kind)
        call.native = native
        earlier = self.calls_by_id.get(call.id) if call.id else None
        if earlier is not None:
            call.repeats = earlier
        elif call.id:
            self.calls_by_id[call.id] = call
        self._calls[call.index] = call
        if name and not wait:
            self.announce(call)
        return call

    def announce(self, call: OpenCall) -> None:
        """Let a call's start event leave. A call that repeats another's id stays held until it is whole."""
        if call.state != "waiting" or not call.name or call.repeats is not None:
            return
        if call.name not in self.offered_names and not call.is_settled and self._glued(call.name) > 1:
            return  # how many calls this is, its arguments tell
        if not call.id or self.calls_by_id.setdefault(call.id, call) is not call:  # none, or a late one of another
            if call.id:
                self.deviate("duplicate-id", f"call {call.name}")
            elif self._needs_ids:
                self.deviate("missing-id", f"call {call.name}", severity=self._needs_ids)
            made = f"call_{self._new_id()}"
            while made in self.calls_by_id:  # by the wire, which made it up likewise
                made += f"_{call.index}"  # whatever makes ids, this ends
            self.calls_by_id[made], call.id = call, made
        call.id, call.name = whole_characters(call.id), whole_characters(call.name)
        if self.offered_names and call.name not in self.offered_names:
            self.deviate("unknown-tool", f"call {call.index}", call.name)
        call.state = "announced"
        self.events.append(ToolCallStart(call.index, call.id, call.name, call.kind, call.native))
        if call.pending:
            self.events.append(ToolCallDelta(call.index, "".join(call.pending)))
            call.pending.clear()

    def add_arguments(self, call: OpenCall, text: str) -> None:
        """Let a call's arguments grow."""
        call.fragments = fragments = call.fragments + 1
        call.size = size = call.size + len(text)
        if size > self._most:
            wanted = f"arguments of at most {self._most} characters"
            return self.fail("too_large", exceeded(wanted, "arguments_mib", f"{size} or more"))
        if not text and call.kind == "function":
            return
        live = call.live
        if live is not None and "}" not in text and text[0] != "{" and text.isascii():  # nothing can end or change here
            live.append(text)
            if not fragments % GATHERED:
                call.text.gather()
            self.events.append(ToolCallDelta(call.index, text))
            return
        if call.state == "whole" and not (is_placeholder(text) or is_same(text, call.arguments)):
            return self.contradict(call, f"call {call.index}")  # it goes on behind its end
        if call.half or not text.isascii():
            text = self._whole_characters(call, text)
        if call.kind == "function":
            text = call.text.add(text)
        else:
            call.text.phase = "odd"
            call.text.add(text)
        if call.text.phase == "closed":
            self._ripe[call.index] = call
        if call.state == "announced":
            if text:
                self.events.append(ToolCallDelta(call.index, text))
            call.live = call.text.live_pieces() if not call.half else None
        elif text and call.state == "waiting":
            call.pending.append(text)

    def add_many_arguments(self, call: OpenCall, texts: list[str]) -> None:
        """Let a call's arguments grow by fragments that came together, none of them empty, all of whole characters."""
        is_first = not call.size and call.state == "announced" and call.kind == "function"
        joined = "".join(texts) if is_first or call.live is not None else ""
        size = call.size + len(joined)
        if joined and size <= self._most and call.text.add_many(texts, joined):
            index = call.index
            if call.text.phase == "closed":
                self._ripe[index] = call
            call.size = size
            call.fragments += len(texts)
            self.events += [ToolCallDelta(index, text) for text in texts]
        elif len(texts) < _FEW:
            for text in texts:
                self.add_arguments(call, text)
        else:  # the object opens or closes somewhere in them
            middle = len(texts) // 2 if call.live is not None else 1
            self.add_many_arguments(call, texts[:middle])
            self.add_many_arguments(call, texts[middle:])

    def _whole_characters(self, call: OpenCall, text: str) -> str:
        """Arguments without half surrogate pairs: one at the end waits for its other half."""
        if call.half and text:
            text = _join_halves(call.half, text)
            call.half = ""
        if "\ud800" <= text[-1:] <= "\udbff":
            call.half = text[-1]
            text = text[:-1]
            self.deviate("lone-surrogate", f"call {call.index}")
        return whole_characters(text)

    def whole_call(
        self,
        id: str | None,
        name: str | None,
        arguments: str,
        *,
        kind: Literal["function", "custom"] = "function",
        native: Native | None = None,
        signature: str | None = None,
        is_plain: bool = False,
    ) -> OpenCall:
        """A call that the protocol sends whole: start, one delta, end. `is_plain`: its arguments are known to be one
        JSON object with something in it."""
        call = self.open_call(id, name, kind=kind, native=native)
        call.signature = signature
        is_short = len(arguments) <= self._bounds.arguments
        is_usual = is_short and call.state == "announced" and kind == "function"
        if is_usual and (is_plain or is_plain_object(arguments)):
            self.events.append(ToolCallDelta(call.index, arguments))
            self._deliver(call, arguments)
        else:
            self.add_arguments(call, arguments)
            self.end_call(call)
        return call

    def end_call(self, call: OpenCall) -> None:
        """A call's own end was seen. One without arguments waits for the next part or the response's end: a length
        limit may have cut it."""
        call.block_ended = True
        if call.is_open() and not (call.kind == "function" and call.text.is_blank()):
            self._settle(call, proven=True)
        else:
            self._ripe[call.index] = call

    def call_of(self, id: str) -> OpenCall | None:
        """The call that was given this id by the wire (or by us)."""
        return self.calls_by_id.get(id)

    def goes_on(self, name: str, text: ArgumentText) -> bool:
        """Whether the same name under a new id goes on with a call: its arguments are not whole and must come."""
        return not text.is_whole() and (text.is_started() or not self.takes_nothing(name))

    def register(self, call: OpenCall) -> None:
        """Know a call by the id that it has got."""
        self.calls_by_id.setdefault(call.id, call)

    def drop_call(self, call: OpenCall, kind: CallFailureKind, message: str) -> None:
        """The provider withdrew a call, or it cannot be read."""
        if call.is_open():
            self._fail_call(call, kind, message)

    def tell_whole(self, call: OpenCall, text: str, where: str) -> None:
        """The whole arguments of a call, after their pieces or in their place: what the pieces did not say is added.
        Otherwise than they, it contradicts them."""
        said = call.text.raw() or call.arguments
        if call.kind == "function":
            text = text.lstrip()
        if call.is_open() and text.startswith(said):
            if len(text) > len(said):
                self.add_arguments(call, text[len(said) :])
        elif call.is_open() and call.kind == "function" and call.text.is_whole() and not call.text.is_closed():
            self.add_arguments(call, text)  # `{}` was a placeholder
        elif call.kind == "custom" or is_placeholder(text):
            if call.kind == "custom" and text.strip() and text != said:
                self.contradict(call, where)
        elif not (is_same(text, said) or is_same(text, call.arguments)):
            self.contradict(call, where)

    def contradict(self, call: OpenCall, where: str) -> None:
        """The wire tells a call in two ways. It fails; where it has left, the answer fails at its end."""
        if self.phase != "open":
            return
        self.deviate("final-differs", where)
        message = f"tool call {call.name or '(no name)'}: it came twice, with contents that contradict each other"
        if call.is_open():
            self._fail_call(call, "contradicted", message)
        elif call.state == "whole":
            self._contradiction = self._contradiction or message

    def settle_whole_calls(self) -> None:
        """Close the calls that are whole: another part opens, or a stop reason was seen (more may still come)."""
        ripe, self._ripe = self._ripe, {}
        for index in sorted(ripe):
            if not ripe[index].name:
                self._ripe[index] = ripe[index]
            elif ripe[index].is_open():
                self._settle(ripe[index], proven=True)

    def _settle(self, call: OpenCall, *, proven: bool) -> None:
        """Close a call: deliver it, or say why not."""
        if call.kind == "function":
            settled = call.text.settle(proven=proven)
        elif proven:
            settled = Settled(call.text.raw())
        else:
            settled = Settled(None, kind="cut", problem="the response ended before the call did")
        if call.repeats is not None and self._is_repeated(call, call.repeats, settled):
            return
        if call.kind == "function" and call.name and call.text.is_blank() and self.has_strays:
            problem = "arguments came that name no call; they may be its own"
            self._fail_call(call, "lost", f"tool call {call.name}: {problem}")
            return
        if settled.text is None:
            self._fail_call(call, settled.kind, f"tool call {call.name or '(no name)'}: {settled.problem}")
            return
        if not call.name:
            self._fail_call(call, "nameless", "a tool call has no name")
            return
        call.is_settled = True
        more = settled.more
        if more and (
            waiting := [other for other in self._calls.values() if other is not call and not other.text.is_closed()]
        ):
            for owner in (call, *waiting):
                self._fail_call(owner, "lost", f"tool call {owner.name}: another one has arguments for two")
            return
        if call.state == "waiting" and settled.objects and self._glued(call.name) == len(settled.objects):
            self.deviate("mangled-name", f"call {call.index}", call.name)
            call.name = call.name[: len(call.name) // len(settled.objects)]
            more = settled.objects[1:]
        self.announce(call)
        for code, seen in settled.codes:
            self.deviate(code, f"call {call.index}", seen)
        if settled.delta:
            self.events.append(ToolCallDelta(call.index, settled.delta))
        self._deliver(call, settled.text)
        for text in more:
            self.whole_call(None, call.name, text)
        if settled.cut_after:
            further = self.open_call(None, call.name)
            self._fail_call(further, "cut", f"tool call {call.name}: further arguments in the same call are cut")

    @property
    def has_strays(self) -> bool:
        """Whether arguments came that belong to no call."""
        return self._has_strays or any(not call.name and not call.text.is_blank() for call in self._calls.values())

    def _glued(self, name: str) -> int:
        """How many times an offered name a name is, where it is none itself; 0 when it is no such thing."""
        period = (name + name).find(name, 1)
        return len(name) // period if 0 < period < len(name) and name[:period] in self.offered_names else 0

    def _is_repeated(self, call: OpenCall, earlier: OpenCall, settled: Settled) -> bool:
        """Whether a call sent under a used id is the earlier one again; else it gets an id of its own."""
        blank = call.text.is_empty() or not call.text.raw().strip()
        is_named = call.name in ("", earlier.name)
        if blank and is_named and earlier.arguments not in ("", "{}"):
            same = True
        else:
            same = settled.text is not None and is_named and is_same(settled.text, earlier.arguments)
        if same:
            self.deviate("duplicate-call", f"call {earlier.index}")
            del self._calls[call.index]
            call.state = "failed"
            return True
        self.deviate("duplicate-id", f"call {call.index}", call.id)
        call.id = ""
        call.name = call.name or earlier.name
        call.repeats = None
        return False

    def _deliver(self, call: OpenCall, text: str) -> None:
        del self._calls[call.index]
        call.state, call.live = "whole", None
        call.arguments = text
        self._usable_calls += 1
        whole = ToolCall(call.id, call.name, text, call.kind, call.signature, call.native)
        self.events.append(ToolCallEnd(call.index, whole))

    def _fail_call(self, call: OpenCall, kind: CallFailureKind, message: str) -> None:
        if call.repeats is not None:
            call.repeats, call.id = None, ""
        call.is_settled = True
        self.announce(call)
        del self._calls[call.index]
        call.state = "failed"
        call.live = None
        self._failed_calls += 1
        self._has_strays = self._has_strays or (kind == "nameless" and not call.text.is_blank())
        self.events.append(ToolCallFailed(call.index, call.id, call.name, kind, message, call.text.raw()))

    # ------------------------------------------------------------ counts and ends

    def usage(self, usage: Usage, cost: Cost | None = None) -> None:
        """Tokens so far, as the wire reports them."""
        if self.phase == "closed":
            return
        merged = usage if self._usage is NO_USAGE else self._usage.merged(usage)
        if merged != self._usage or (cost is not None and cost != self._cost):
            self._usage, self._cost = merged, cost or self._cost
            self.start()
            self.events.append(UsageUpdate(merged, self._cost))

    def finish(self, native_reason: str | None, reason: StopReason, *, native: Native | None = None) -> None:
        """A stop reason. Of several the last wins, except that `stop` replaces no other.

        `native`: fields beside the reason that only this protocol knows.
        """
        if self._is_late():
            return
        if self.reason is not None and (self.reason, self._native_reason) != (reason, native_reason):
            self.deviate("late-stop-reason", "stop reason", native_reason)
            if reason == "stop" and self.reason != "other":
                return
        self.reason, self._native_reason = reason, whole_characters(native_reason or "") or None
        self.end_native = native

    def end(self) -> None:
        """The protocol's own end: every part closes. `Finish` itself waits for the end of the body."""
        if self._is_late():
            return
        self._close_parts(proven=self.reason not in ("length", "content_filter"))
        self.phase = "ended"

    def unreadable(self, where: str, problem: str) -> set[str]:
        """A frame could not be read: what it held is lost, so every call that is open fails. Gives their names. After a
        stop reason the calls have come, and what is lost is usage or the end marker."""
        self.deviate("unreadable-frame", where, problem)
        self._unreadable = self._unreadable or problem
        lost = list(self._calls.values()) if self.reason is None else []
        for call in lost:
            self._fail_call(call, "lost", f"tool call {call.name or '(no name)'}: a frame could not be read")
        return {call.name for call in lost}

    def fail(
        self,
        kind: FailureKind,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        code: str | None = None,
    ) -> None:
        """The response cannot go on. Whole calls and text stay; a call that is cut fails. After its end it is whole."""
        if self._is_late():
            return
        self._high_surrogate = ""
        self._close_parts(proven=False)
        self.phase = "closed"
        self.events.append(Failure(kind, message, status, retry_after, self._usage, self._cost, code, self.end_native))

    def break_off(self, failure: Failure) -> None:
        """The connection broke. A response whose own end was seen is whole all the same."""
        if self.phase == "ended":
            self.close()
        else:
            self.fail(failure.kind, failure.message, status=failure.status, retry_after=failure.retry_after)

    def close(self, *, marker: str = "", empty: str = "an empty body", is_running: bool = False) -> None:
        """The body ended.

        Args:
            marker: what the protocol ends with; missing after a stop reason it is a deviation.
            empty: what came in place of a response, for the error message.
            is_running: the response goes on elsewhere, so it may hold nothing yet.
        """
        if self.phase == "closed":
            return
        if self.phase == "open" and self.reason is None:
            if self._semantic or self.started:
                problem = self._unreadable and f" (unreadable: {self._unreadable})"
                self.fail("connection", f"the stream ended before its terminal event{problem}")
            else:
                self.fail("wire", f"expected a response, got {self._unreadable or empty}")
            return
        if self.phase == "open":
            if marker:
                self.deviate("no-end-marker", "end", f"no {marker}")
            self.end()
        if self._contradiction or (self._unreadable and not self._semantic):
            self.phase = "open"  # what ended was no response
            self.fail("wire", self._contradiction or f"expected a response, got {self._unreadable}")
            return
        if not self._semantic and not self._failed_calls and not is_running:
            self.deviate("empty-response", "end", self._native_reason or "")
        self.start()
        reason = settle_reason(self.reason, usable_calls=self._usable_calls, failed_calls=self._failed_calls)
        is_failed = reason == "other" and self.reason == "tool_use"  # the wire is right: there were calls
        is_other = reason != self.reason and self.reason is not None and not is_failed
        if is_other and (self._names_tool_use or reason != "tool_use"):
            self.deviate("stop-reason", "stop reason", self._native_reason or self.reason)
        self.phase = "closed"
        self.events.append(Finish(reason, self._native_reason, self._usage, self._cost, self.end_native))

    def _close_parts(self, *, proven: bool) -> None:
        for index in sorted([*self._parts, *self._calls]):
            part = self._parts.get(index)
            if part is not None:
                self.end_part(part)
            elif index in self._calls:
                call = self._calls[index]
                self._settle(call, proven=proven)

    def _open(self) -> None:
        """Something of the answer comes: the run ends, whole calls close."""
        if not self.started:
            self.start()
        self._semantic = True
        if self._run is not None:
            self.end_part(self._run)
        if self._ripe:
            self.settle_whole_calls()

    def _index(self) -> int:
        self._next_index += 1
        return self._next_index - 1

    def _has_room(self, *, is_call: bool = False) -> bool:
        """Whether another part may begin. A response of too many parts fails: a server that never ends makes them."""
        bounds = self._bounds
        self.opened_calls += is_call
        if self.phase == "open" and self._next_index < bounds.parts and self.opened_calls <= bounds.calls:
            return True
        if self._next_index >= bounds.parts:
            seen = f"{self._next_index + 1} or more"
            self.fail("too_large", exceeded(f"a response of at most {bounds.parts} parts", "parts", seen))
        if self.opened_calls > bounds.calls:
            seen = f"{self.opened_calls} or more"
            self.fail("too_large", exceeded(f"a response of at most {bounds.calls} calls", "calls", seen))
        return not self._is_late()

    def _is_late(self) -> bool:
        """Whether the response has ended already; what comes then is ignored."""
        if self.phase == "ended":
            self.deviate("after-end", "end")
        return self.phase != "open"


def _join_halves(high: str, text: str) -> str:
    """A high surrogate and what follows it; alone it becomes U+FFFD."""
    if "\udc00" <= text[0] <= "\udfff":
        return (high + text[0]).encode("utf-16", "surrogatepass").decode("utf-16") + text[1:]
    return "\ufffd" + text
