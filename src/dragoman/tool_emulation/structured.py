"""Turn an answer that is one JSON object of calls or words into the events of a native answer.

Arguments and words stream as they come. Text of another form passes as text; a call that cannot be read fails.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

import msgspec

from dragoman.codec.parts.argument_text import ArgumentText
from dragoman.codec.parts.settled_arguments import beyond
from dragoman.events import (
    EVERY_KIND,
    CallFailureKind,
    Deviation,
    Event,
    Failure,
    Finish,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallFailed,
    ToolCallStart,
    settle_reason,
)
from dragoman.gathered import GatheredText
from dragoman.protocol import NewId
from dragoman.stages.part_indices import PartIndices
from dragoman.stages.rescue.cursor import Close, More, NotACall, Open, Piece
from dragoman.stages.rescue.runner import Prose
from dragoman.tool_emulation.structured_text import AnswerText, Said
from dragoman.types import ToolCall

_CODE: Final = "structured-answer"
_TOO_SHORT: Final = "its text ends before its end"
_NO_CALL: Final = "it is not of the form that was asked for"


class _Part:
    """A text part being read."""

    __slots__ = ("answer", "has_said", "index", "is_spoilt", "reader", "space", "start")

    def __init__(self, start: TextStart) -> None:
        self.start = start
        self.answer = AnswerText()
        self.reader: Generator[Said, None, None] | None = self.answer.read()  # None: the rest is text
        self.index = -1  # of the text part that is open in the output
        self.has_said = False
        self.is_spoilt = False  # a call could not be read: the rest of the object cannot either
        self.space = GatheredText()  # white space behind the object, which is text only before text


class _Call(msgspec.Struct, eq=False):
    """An open call."""

    index: int
    id: str
    name: str
    text: ArgumentText = msgspec.field(default_factory=ArgumentText)


class Structured:
    """The stage for one response. A `dragoman.protocol.Stage`."""

    __slots__ = (
        "_call",
        "_failed",
        "_found",
        "_indices",
        "_most_values",
        "_new_id",
        "_other",
        "_out",
        "_part",
        "_usable",
    )

    acts_on = EVERY_KIND

    handles = EVERY_KIND

    def __init__(self, *, new_id: NewId, most_values: int) -> None:
        self._most_values = most_values
        self._new_id = new_id
        self._part: _Part | None = None
        self._call: _Call | None = None
        self._indices = PartIndices()
        self._out: list[Event] = []
        self._usable = 0
        self._failed = 0
        self._found = False  # an answer of the form has come: what follows is text
        self._other = False  # text of another form has come

    def feed(self, events: list[Event]) -> list[Event]:
        for event in events:
            self._take(event)
        out, self._out = self._out, []
        return out

    def _take(self, event: Event) -> None:
        part = self._part
        if isinstance(event, TextStart) and part is None and not self._found:
            self._part = _Part(event)
        elif isinstance(event, TextDelta) and part is not None and event.index == part.start.index:
            if part.reader is None:
                self._say(part, event.text)
            else:
                part.answer.cursor.append(event.text)
                self._read(part, part.reader)
        elif isinstance(event, TextEnd) and part is not None and event.index == part.start.index:
            self._end(part, event)
        else:
            if isinstance(event, Finish):
                event = self._finish(event)
            elif (
                isinstance(event, Failure) and part is not None and part.reader is not None and not part.answer.is_ours
            ):
                self._give_back(part)
            self._out.append(self._indices.move(event))

    # ------------------------------------------------------------ reading

    def _read(self, part: _Part, reader: Generator[Said, None, None]) -> None:
        try:
            for said in reader:
                if isinstance(said, More):
                    return
                self._heard(part, said)
        except NotACall:
            if not part.answer.is_ours:
                self._give_back(part)
                return
            cursor = part.answer.cursor
            if part.answer.is_in_calls:
                call = self._call or _Call(self._next_index(part), f"call_{self._new_id()}", "")
                self._fail(call, "cut" if cursor.ended else "unreadable", _TOO_SHORT if cursor.ended else _NO_CALL)
                cursor.skip(len(cursor.rest()))
                part.is_spoilt = True
        self._found = True
        part.reader = None
        self._close(part)
        for oddity in part.answer.oddities:
            self._out.append(Deviation(_CODE, f"part {part.start.index}", oddity))
        if rest := part.answer.cursor.rest():
            self._say(part, rest)

    def _give_back(self, part: _Part) -> None:
        """Pass text of another form unchanged."""
        part.reader = None
        part.answer.cursor.rewind()
        self._open(part)
        if text := part.answer.cursor.rest():
            self._out.append(TextDelta(part.index, text))

    def _heard(self, part: _Part, said: Said) -> None:
        if isinstance(said, Prose):
            if part.index < 0:
                self._open(part)
            self._out.append(TextDelta(part.index, said.text))
        elif isinstance(said, Open):
            self._close(part)
            call = self._call = _Call(self._next_index(part), f"call_{self._new_id()}", said.name)
            self._out.append(ToolCallStart(call.index, call.id, call.name))
        elif isinstance(said, Piece) and self._call is not None:
            text = self._call.text.add(said.text)
            if text:
                self._out.append(ToolCallDelta(self._call.index, text))
        elif isinstance(said, Close) and self._call is not None:
            self._close_call(self._call, said)

    def _say(self, part: _Part, text: str) -> None:
        """Pass text that is not of the form, or stands behind it."""
        if part.is_spoilt:
            return
        if part.index < 0:
            part.space.add(text)
            if not text.strip():
                return
            text = part.space.text()
            self._open(part)
            self._other = True
        self._out.append(TextDelta(part.index, text))

    # ------------------------------------------------------------ calls

    def _close_call(self, call: _Call, end: Close) -> None:
        self._call = None
        settled = beyond(call.text.raw(), self._most_values) or call.text.settle(proven=not end.is_cut)
        if end.problem:
            self._fail(call, "contradicted", end.problem)
            return
        if settled.text is None or end.is_cut:
            self._fail(call, "cut" if end.is_cut else settled.kind, settled.problem or _TOO_SHORT)
            return
        for code, seen in settled.codes:
            self._out.append(Deviation(code, f"call {call.index}", seen))
        if settled.delta:
            self._out.append(ToolCallDelta(call.index, settled.delta))
        self._usable += 1
        self._out.append(ToolCallEnd(call.index, ToolCall(call.id, call.name, settled.text)))

    def _fail(self, call: _Call, kind: CallFailureKind, problem: str) -> None:
        self._call = None
        self._failed += 1
        message = f"tool call {call.name}: {problem}" if call.name else f"a tool call: {problem}"
        self._out.append(ToolCallFailed(call.index, call.id, call.name, kind, message, call.text.raw()))

    # ------------------------------------------------------------ parts

    def _next_index(self, part: _Part) -> int:
        given = part.start.index
        index = self._indices.add(given) if part.has_said else self._indices.of(given)
        part.has_said = True
        return index

    def _open(self, part: _Part) -> None:
        native = None if part.answer.is_ours else part.start.native
        part.index = self._next_index(part)
        self._out.append(TextStart(part.index, native))

    def _close(self, part: _Part, event: TextEnd | None = None) -> None:
        if part.index >= 0:
            self._out.append(msgspec.structs.replace(event, index=part.index) if event else TextEnd(part.index))
            part.index = -1

    def _end(self, part: _Part, event: TextEnd) -> None:
        part.answer.cursor.ended = True
        if part.reader is not None:
            self._read(part, part.reader)
        if part.index >= 0 and not part.answer.is_ours and not event.was_thinking:
            self._other = True
        self._close(part, event)
        self._part = None

    def _finish(self, event: Finish) -> Finish:
        if self._other and event.reason in ("stop", "tool_use"):
            self._out.append(Deviation(_CODE, "text", "not the JSON object that was asked for"))
        if not self._usable and not self._failed:
            return event
        reason = settle_reason(event.reason, usable_calls=self._usable, failed_calls=self._failed)
        return msgspec.structs.replace(event, reason=reason)
