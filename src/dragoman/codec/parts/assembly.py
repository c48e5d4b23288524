"""Assemble one response: its parts, its ends, and the policies of every protocol.

A protocol's decoder reports what it reads (`text`, `open_call`, `add_arguments`, `usage`, `finish`, `end`, `fail`). The
assembly turns that into events in the grammar of `dragoman.events` and decides

- when a call is complete: its arguments are a closed JSON object and its block's end was seen or nothing more can come
  (`open_calls` knows the calls by their ids, settles and fails them; `argument_growth` appends to their arguments);
- how the response ends: `Finish` is held until the body's end, so that parts and usage after a stop reason count;
- what a stop reason is worth against the calls that came (`response_end`).
"""

from __future__ import annotations

from itertools import repeat
from typing import Final, Literal, TypeAlias

from dragoman._json import whole_characters
from dragoman.bounds import USUAL_BOUNDS, AnswerBounds, exceeded
from dragoman.codec.parts.argument_growth import cut_half, grow, join_halves
from dragoman.codec.parts.hidden_words import hidden_words
from dragoman.codec.parts.open_calls import OpenCalls
from dragoman.codec.parts.open_parts import OpenCall, OpenPart, SaidText
from dragoman.codec.parts.response_end import ResponseEnd
from dragoman.codec.parts.settled_arguments import is_plain_object
from dragoman.deviations import clip
from dragoman.events import (
    CallFailureKind,
    Deviation,
    Event,
    Failure,
    FailureKind,
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
)
from dragoman.gathered import GATHERED
from dragoman.protocol import NewId, TakesNothing, takes_nothing
from dragoman.types import Cost, Media, Native, Opaque, StopReason, Usage

#: Distinct deviations reported for one response; a wire that breaks more rules is reported as far as this.
_MOST_DEVIATIONS: Final = 200
_MANY: Final = 64  # pieces of a text that are folded at once
CallKind: TypeAlias = Literal["function", "custom"]
Phase: TypeAlias = Literal["open", "ended", "closed"]


class Assembly:
    """Assembles one response. Methods append to `events`; `take` returns them."""

    __slots__ = (
        "_before_surrogate", "_high_surrogate", "_names_tool_use", "_parts", "_reported", "_run",
        "_semantic", "bounds", "calls", "ending", "events", "has_said", "longest_arguments", "next_index",
        "opened_calls", "phase", "said", "started",
    )  # fmt: skip

    def __init__(
        self, new_id: NewId, offered_names: frozenset[str], *, takes_nothing: TakesNothing = takes_nothing,
        names_tool_use: bool = True, needs_ids: Severity | None = "fault", bounds: AnswerBounds = USUAL_BOUNDS,
    ) -> None:  # fmt: skip
        """Create it.

        Args:
            names_tool_use: the protocol has a stop reason for tool calls, so another one beside calls is wrong.
            needs_ids: the severity of a call without an id; None: the protocol has no ids.
        """
        self.bounds, self.longest_arguments = bounds, bounds.arguments
        self.events: list[Event] = []
        self._names_tool_use = names_tool_use
        self.phase: Phase = "open"
        self.started = self._semantic = False  # whether `Start` was given, and whether anything of an answer came
        self.has_said = False  # more than a part that says nothing
        self.next_index = self.opened_calls = 0
        self._run: OpenPart | None = None  # the text or thinking that goes on until something else comes
        self._parts: dict[int, OpenPart] = {}
        self.said = SaidText()
        self._high_surrogate = self._before_surrogate = ""  # half a character, and the text that it was cut from
        self.calls = OpenCalls(new_id, offered_names, takes_nothing, needs_ids)
        self.ending = ResponseEnd()
        self._reported: set[tuple[str, str]] = set()

    def take(self) -> list[Event]:
        """Return the events since the last call."""
        events, self.events = self.events, []
        return events

    def deviate(self, code: str, where: str = "", seen: object = "", *, severity: Severity = "fault") -> None:
        """Report a deviation, once for each code and place."""
        if self.phase == "closed" or (code, where) in self._reported or len(self._reported) >= _MOST_DEVIATIONS:
            return
        self._reported.add((code, where))
        self.events.append(Deviation(code, where, clip(seen) if seen != "" else "", severity))

    def start(
        self, id: str | None = None, model: str | None = None, created: int | None = None, *,
        native: Native | None = None,
    ) -> None:  # fmt: skip
        """Begin the response; later calls do nothing."""
        if not self.started and self.phase != "closed":
            self.started = True
            id, model = whole_characters(id) if id else None, whole_characters(model) if model else None
            self.events.append(Start(id, model, created, native))

    @property
    def is_empty(self) -> bool:
        """Return whether nothing of an answer has come."""
        return not self._semantic

    # ------------------------------------------------------------ text and thinking

    def text(self, text: str) -> None:
        """Take text that belongs to no named part: it joins the running text."""
        run = self._run
        if run is not None and run.kind is TextStart and not self._high_surrogate:
            self.said.pieces.append(text)
            if len(self.said.pieces) > _MANY:
                self.said.fold()
            self.events.append(TextDelta(run.index, text))
        else:
            self._grow_run(TextStart, text)

    def texts(self, texts: list[str]) -> None:
        """Take non-empty texts that came together, as `text` does."""
        self.text(texts[0])
        if len(texts) > 1 and self._run is not None:
            self.add_many(self._run, texts[1:])

    def thinking(self, text: str) -> None:
        """Take thinking that belongs to no named part."""
        run = self._run
        if run is not None and run.kind is ThinkingStart and not self._high_surrogate:
            self.events.append(ThinkingDelta(run.index, text))
        else:
            self._grow_run(ThinkingStart, text)

    def _grow_run(self, kind: type[TextStart] | type[ThinkingStart], text: str) -> None:
        if self.is_late():
            return
        if (run := self.running(kind)) is None:
            run = self.open_part(kind)
            self._run = self._parts.get(run.index)  # none behind a bound: nothing goes on
        self.add(run, text)

    def running(self, kind: type[TextStart] | type[ThinkingStart]) -> OpenPart | None:
        """Return the open run if it is of this kind."""
        return self._run if self._run is not None and self._run.kind is kind else None

    def end_run(self) -> None:
        """End the run; what comes next opens a part of its own."""
        if self._run is not None:
            self.end_part(self._run)

    def open_part(self, kind: type[TextStart] | type[ThinkingStart], *, native: Native | None = None) -> OpenPart:
        """Open a text or thinking part that the protocol delimits. After the response's end it gives no event."""
        if not self._has_room():
            return OpenPart(-1, kind)
        self._open()
        part = OpenPart(self.next_index, kind, before=self.said.plus() if kind is TextStart else None)
        self.next_index += 1
        self._parts[part.index] = part
        self.events.append(kind(part.index, native))
        return part

    def add(self, part: OpenPart, text: str) -> None:
        """Append text to a part. Empty text and closed parts are ignored."""
        if self._high_surrogate and text is not self._before_surrogate:
            text = self._join_surrogates(text)
        if text and part.index in self._parts:
            self.has_said = part.has_said = True
            if part.kind is TextStart:
                self.said.pieces.append(text)
                if len(self.said.pieces) > _MANY:
                    self.said.fold()
                self.events.append(TextDelta(part.index, text))
            else:
                self.events.append(ThinkingDelta(part.index, text))

    def add_many(self, part: OpenPart, texts: list[str]) -> None:
        """Append non-empty texts that came together to a part."""
        if self._high_surrogate or part.index not in self._parts:
            for text in texts:
                self.add(part, text)
            return
        if is_text := part.kind is TextStart:
            self.said.pieces += texts
            self.said.fold()
        grown = TextDelta if is_text else ThinkingDelta
        self.has_said = part.has_said = True
        self.events += map(grown, repeat(part.index), texts)

    def lenient_text(self, text: str) -> str:
        """Return text of the lenient reader. A lone surrogate at its end waits for the next text."""
        text = self._join_surrogates(text)
        clean, half = cut_half(text)
        if half:
            self._high_surrogate, self._before_surrogate = half, clean
            self.has_said = True
        if clean != text:
            self.deviate("lone-surrogate", "text")
        return clean

    def _join_surrogates(self, text: str) -> str:
        if self._high_surrogate and text:
            text = join_halves(self._high_surrogate, text)
            self._high_surrogate = ""
        return text

    def end_part(self, part: OpenPart) -> None:
        """End a part."""
        if self._parts.pop(part.index, None) is None:
            return
        if self._high_surrogate:
            self._high_surrogate = ""
            self.events.append((TextDelta if part.kind is TextStart else ThinkingDelta)(part.index, "\ufffd"))
        if part is self._run:
            self._run = None
        if part.kind is TextStart:
            self.events.append(TextEnd(part.index, False, part.signature, part.fields()))
        else:
            self.events.append(ThinkingEnd(part.index, part.signature, part.redacted, part.fields()))

    def whole_part(self, part: Media | Opaque) -> None:
        """Add a part that comes whole."""
        if not self._has_room():
            return
        self._open(is_said=True)
        self.events.append(PartEvent(self.next_index, part))
        self.next_index += 1

    def native_event(self, event: NativeEvent) -> None:
        """Add an event that only its protocol has."""
        if self.phase == "open":
            if not self.started:
                self.start()
            self.events.append(event)

    # ------------------------------------------------------------ calls

    def open_call(
        self, id: str | None, name: str | None, *, kind: CallKind = "function", native: Native | None = None,
        wait: bool = False,
    ) -> OpenCall:  # fmt: skip
        """Begin a call. After the response's end it gives no event.

        Args:
            id: as on the wire; one is generated if there is none.
            name: "" or None while unknown; the call opens when it is known.
            wait: hold the start event until `announce`.
        """
        call = self._begin_call(id, name, kind, native)
        if call.state == "waiting":
            self.calls.add(call, self)
            if not wait:
                self.calls.announce(call, self)
        return call

    def _begin_call(self, id: str | None, name: str | None, kind: CallKind, native: Native | None) -> OpenCall:
        self.opened_calls += 1
        if not self._has_room():
            return OpenCall(-1, id or "", name or "", kind, state="failed")
        self._open(is_said=True)
        if self.said.begins_again():
            self.calls.end = self.calls.end or self.next_index
        self.next_index += 1
        return OpenCall(self.next_index - 1, id or "", name or "", kind, native)

    def add_arguments(self, call: OpenCall, text: str) -> None:
        """Append to a call's arguments."""
        call.fragments = fragments = call.fragments + 1
        call.size = size = call.size + len(text)
        if size > self.longest_arguments:
            wanted = f"arguments of at most {self.longest_arguments} characters"
            return self.fail("answer_too_large", exceeded(wanted, "arguments_mib", f"{size} or more"))
        live = call.live
        if live is not None and text and text[0] != "{" and "}" not in text and text.isascii():
            live.append(text)  # nothing can end or change here
            if not fragments % GATHERED:
                call.text.gather()
            self.events.append(ToolCallDelta(call.index, text))
        elif text or call.kind != "function":
            grow(call, text, self)

    def whole_call(
        self, id: str | None, name: str | None, arguments: str, *, kind: CallKind = "function",
        native: Native | None = None, signature: str | None = None, is_plain: bool = False,
    ) -> OpenCall:  # fmt: skip
        """Add a call that comes whole: start, one delta, end. `is_plain`: its arguments are a non-empty JSON object."""
        call = self._begin_call(id, name, kind, native)
        call.signature = signature
        if call.state == "waiting":
            fits = kind == "function" and len(arguments) <= self.bounds.argument_values
            self.calls.add_whole(call, self, arguments, is_plain=fits and (is_plain or is_plain_object(arguments)))
        if call.state != "whole":
            self.add_arguments(call, arguments)
            self.end_call(call)
        return call

    def end_call(self, call: OpenCall) -> None:
        """Take a call's own end. One without arguments waits for the next part or the response's end."""
        if call.is_open() and not (call.kind == "function" and call.text.is_blank()):
            self.calls.settle(call, self, proven=True)
        else:
            self.calls.ripe[call.index] = call

    def drop_call(self, call: OpenCall, kind: CallFailureKind, message: str) -> None:
        """Fail a call that the provider withdrew, or that cannot be read."""
        if call.is_open():
            self.calls.fail(call, self, kind, message)

    def contradict(self, call: OpenCall, where: str) -> None:
        """Fail a call that came in two ways. If it has left, the answer fails at its end."""
        if self.phase != "open":
            return
        self.deviate("final-differs", where)
        message = f"tool call {call.name or '(no name)'}: it came twice, with contents that contradict each other"
        if call.is_open():
            self.calls.fail(call, self, "contradicted", message)
        elif call.state == "whole":
            self.ending.contradiction = self.ending.contradiction or message

    def differ(self, told: str, said: str, where: str, seen: str = "") -> None:
        """Report a whole text that says more than its pieces, or another one."""
        self.deviate("final-differs", where, seen)
        self.tell_again(told, said)

    def tell_again(self, told: str, said: str | None = None) -> None:
        """Take a whole text behind its pieces: both may hold calls. `said`: see `Deviation.texts`."""
        if self.calls.offered_names and self.phase == "open" and not (said and told.startswith(said)):
            self.events.append(Deviation("final-differs", texts=(said, told)))

    def repeats_all(self, text: str, where: str) -> bool:
        """Return whether text of the event that ends the answer tells all of it once more; else it may be a refrain."""
        if is_again := self.ending.reason is None and self.said.begins(text):
            self.tell_again(text)  # calls that a refrain doubles fail
        if is_repeated := is_again and self.said.is_repeated(text):
            self.deviate("duplicate-final", where)
        return is_repeated

    # ------------------------------------------------------------ counts and ends

    def usage(self, usage: Usage, cost: Cost | None = None) -> None:
        """Take tokens so far, as the wire reports them."""
        if self.phase != "closed" and (update := self.ending.count(usage, cost)) is not None:
            self.start()
            self.events.append(update)

    def finish(self, native_reason: str | None, reason: StopReason, *, native: Native | None = None) -> None:
        """Take a stop reason. `native`: fields beside it that only this protocol knows."""
        if self.calls.end is None and self.ending.reason is None and self.opened_calls:
            self.calls.end = self.next_index
        if not self.is_late() and self.ending.take(native_reason, reason, native):
            self.deviate("late-stop-reason", "stop reason", native_reason)

    def end(self) -> None:
        """Take the protocol's own end: every part closes. `Finish` itself waits for the end of the body."""
        if self.is_late():
            return
        if (lost := self.ending.lost) and self._semantic and not self.calls.account_for(self.ending.echo):
            self.drop_call(self.open_call(None, None), "lost", lost)
        self._close_parts(proven=self.ending.reason not in ("length", "content_filter"))
        self.phase = "ended"

    def fail(
        self, kind: FailureKind, message: str, *, status: int | None = None, retry_after: float | None = None,
        code: str | None = None,
    ) -> None:  # fmt: skip
        """Fail the response. Complete calls and text stay; a cut call fails."""
        if self.is_late():
            return
        self._high_surrogate = ""
        self._close_parts(proven=False)
        self.phase = "closed"
        self.events.append(self.ending.failure(kind, message, status, retry_after, code))

    def break_off(self, failure: Failure) -> None:
        """Take a broken connection. A response whose own end was seen is complete all the same."""
        if self.phase == "ended":
            return self.close()
        self.fail(failure.kind, failure.message, status=failure.status, retry_after=failure.retry_after)

    def close(self, *, marker: str = "", empty: str = "", body: bytes = b"", is_running: bool = False) -> None:
        """End the body.

        Args:
            body: its JSON, if nothing of an empty answer was read.
            marker: the protocol's end marker; missing after a stop reason it is a deviation.
            empty: what came in place of a response.
            is_running: the response goes on elsewhere, so it may contain nothing yet.
        """
        ending = self.ending
        if self.phase == "closed":
            return
        if self.phase == "open" and ending.reason is None:
            return self.fail(*ending.cut_short(empty, is_begun=self._semantic or self.started))
        if self.phase == "open":
            if marker:
                self.deviate("no-end-marker", "end", f"no {marker}")
            self.end()
        unread = "" if self.has_said else ending.unreadable or hidden_words(self._reported, body, ending.odd_frames)
        if ending.contradiction or unread:
            self.phase = "open"  # what ended was no response
            self.fail("wire", ending.contradiction or f"expected a response, got {unread}")
            return
        if not self._semantic and not self.calls.failed and not is_running:
            self.deviate("empty-response", "end", ending.native_reason or "")
        self.start()
        finish = ending.finish(usable_calls=self.calls.usable, failed_calls=self.calls.failed)
        if finish.reason != ending.reason and ending.is_wrong(finish, names_tool_use=self._names_tool_use):
            self.deviate("stop-reason", "stop reason", ending.native_reason or ending.reason)
        self.phase = "closed"
        self.events.append(finish)

    def _close_parts(self, *, proven: bool) -> None:
        self.calls.fail_pieces(self)
        for index in sorted([*self._parts, *self.calls.by_index]):
            if (part := self._parts.get(index)) is not None:
                self.end_part(part)
            elif (call := self.calls.by_index.get(index)) is not None:
                self.calls.settle(call, self, proven=proven)

    def _open(self, *, is_said: bool = False) -> None:
        """Prepare for something of the answer: the run ends, complete calls close."""
        if not self.started:
            self.start()
        self._semantic, self.has_said = True, self.has_said or is_said
        self.end_run()
        if self.calls.ripe:
            self.calls.settle_ripe(self)

    def _has_room(self) -> bool:
        """Return whether another part may begin. A response with too many parts fails: a server may never end."""
        if self.phase == "open" and self.next_index < self.bounds.parts and self.opened_calls <= self.bounds.calls:
            return True
        if problem := self.bounds.overrun(parts=self.next_index + 1, calls=self.opened_calls):
            self.fail("answer_too_large", problem)
        return not self.is_late()

    def is_late(self) -> bool:
        """Return whether the response has ended already; what comes then is ignored."""
        if self.phase == "ended":
            self.deviate("after-end", "end")
        return self.phase != "open"
