"""Repair tool-call arguments and coerce them to the tool's schema, live.

The decoder separates calls and finds their ends. This stage reads each call's text through a `Repairer`. It reads a
call that the decoder found unreadable once more: if it has a certain reading it is delivered, else its failure stands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from dragoman import _json
from dragoman.codec.parts.argument_residue import behind_residue, is_residue, skip_behind, unfenced
from dragoman.codec.parts.settled_arguments import is_plain_object
from dragoman.deviations import clip
from dragoman.events import (
    Deviation,
    Event,
    Finish,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallFailed,
    ToolCallStart,
    settle_reason,
)
from dragoman.stages.argument_repair.near_json import NOT_CLOSED
from dragoman.stages.argument_repair.repairer import Repairer
from dragoman.stages.json_schema import ToolSchema
from dragoman.stages.known_schemas import schema_of
from dragoman.stages.part_indices import FEW, index_of, of_kinds, text_of
from dragoman.stages.torn_arguments import HOLDS_NEXT, holds_next
from dragoman.types import Tool, ToolCall

_DEEPEST_ENCODING: Final = 3
_MOST_REPEATS: Final = 3
_STRING: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


_JUDGED: Final = frozenset[type]({ToolCallStart, ToolCallEnd, Finish})
_OF_CALLS: Final = frozenset[type]({ToolCallStart, ToolCallDelta, ToolCallEnd})
_CALLS: Final = frozenset[type]({ToolCallStart, ToolCallDelta, ToolCallEnd, ToolCallFailed, Finish})


class ArgumentRepair:
    """The stage for the calls of one response. A `dragoman.protocol.Stage`."""

    __slots__ = ("_calls", "_failed", "_live", "_mended", "_schemas", "_tools", "handles")

    acts_on = _CALLS - {Finish}

    def __init__(self, tools: Sequence[Tool], *, live: bool = True) -> None:
        """Create it. `live`: arguments leave while they come; else each call has one delta, when it is complete."""
        self._live = live
        self.handles = _CALLS
        self._tools: Mapping[str, Tool] = {tool.name: tool for tool in tools if tool.kind == "function"}
        self._schemas: dict[str, ToolSchema] = {}
        self._calls: dict[int, _OpenCall] = {}
        self._mended = 0
        self._failed = 0

    def feed(self, events: list[Event]) -> list[Event]:
        text = text_of(events, ToolCallDelta)
        if text is not None:
            return self._grow(events, text)
        fine = self._fine(events)
        if fine is None:
            return events
        out: list[Event] = []
        for event in events:
            if fine and type(event) in _OF_CALLS and index_of(event) in fine:
                out.append(event)
            elif type(event) is ToolCallDelta:
                out += self._grow([event], event.text)
            elif type(event) is ToolCallStart:
                self._start(event, out)
            elif type(event) is ToolCallEnd:
                self._end(event, out)
            elif type(event) is ToolCallFailed:
                self._retry(event, out)
            elif type(event) is Finish and (self._mended or self._failed):
                out.append(self._finish(event))
            else:
                out.append(event)
        return out

    def _schema_of(self, event: ToolCallStart) -> ToolSchema | None:
        """Return the schema of a call's arguments, or None if they may be anything."""
        if event.kind != "function" or event.name not in self._tools:
            return None
        schema = self._schemas.get(event.name)
        if schema is None:
            schema = self._schemas[event.name] = schema_of(self._tools[event.name])
        return schema

    def _start(self, event: ToolCallStart, out: list[Event]) -> None:
        out.append(event)
        schema = self._schema_of(event)
        if schema is not None:
            self._calls[event.index] = _OpenCall(event, schema)

    def _fine(self, events: Sequence[Event]) -> set[int] | None:
        """Return the indices of the calls that need no repair: each begins and ends here, and fits.

        None if these are all calls, and nothing else is to be done.
        """
        begun: dict[int, ToolSchema] = {}
        fine: set[int] = set()
        is_all = not self._calls
        for event in events if len(events) <= FEW else of_kinds(events, _JUDGED):
            if type(event) is ToolCallStart:
                schema = self._schema_of(event)
                if schema is not None:
                    begun[event.index] = schema
            elif type(event) is ToolCallEnd:
                schema = begun.pop(event.index, None)
                if schema is not None and self._live and schema.takes_as_is(event.call.arguments):
                    fine.add(event.index)
                elif schema is not None:
                    is_all = False
            elif type(event) is Finish and (self._mended or self._failed):  # the end says so
                is_all = False
        return None if is_all and not begun else fine

    def _grow(self, events: list[Event], text: str) -> list[Event]:
        """Take deltas of one call with this text. Those that came together leave as one."""
        index = index_of(events[0])
        call = self._calls.get(index)
        if call is None:
            return events
        # The call has not ended: nobody has seen what its schema does not name, a key told twice or a number too large.
        if not call.size and call.schema.takes_as_is(text) and is_plain_object(text):
            call.unread = text
            call.size = len(text)
            left = text
        else:
            left = call.read(text)
        if not self._live:
            return []
        if left is text and len(events) == 1:
            return events
        return [ToolCallDelta(index, left)] if left else []

    def _end(self, event: ToolCallEnd, out: list[Event]) -> None:
        call = self._calls.pop(event.index, None)
        if call is None:
            out.append(event)
            return
        if call.unread == event.call.arguments:
            if not self._live:
                out.append(ToolCallDelta(event.index, call.unread))
            out.append(event)
            return
        repairer = call.caught_up()
        end = repairer.close()
        if end is not None:
            self._deliver(call, end, event.call, out)
        else:
            # The text is a JSON object, so at the worst it is delivered as it is, if nothing else has left, and none of
            # its numbers is infinity to others.
            text = event.call.arguments
            left = repairer.left.text()
            if text.startswith(left) and not isinstance(_json.decode_object(text), _json.Malformed):
                rest = text[len(left) :] if self._live else text
                if rest:
                    out.append(ToolCallDelta(event.index, rest))
                out.append(event)
            else:
                self._fail(call, repairer.problem, text, out)

    def _retry(self, event: ToolCallFailed, out: list[Event]) -> None:
        """Read a call's text that the decoder could not read. It may have a certain reading."""
        call = self._calls.pop(event.index, None)
        if call is None or event.kind not in ("unreadable", "cut") or event.arguments.strip() in ("", "{}", "null"):
            out.append(event)
            return
        repairer = call.caught_up()
        text, how = event.arguments, ""
        if not call.size:
            found = _object_in(text)
            if found is None:
                out.append(event)
                return
            text, how = found
        # What the decoder held back may have had two readings, so none of it leaves unless the call is whole.
        left = call.read(text[call.size :])
        end = repairer.close()
        if end is None or not _means_nothing(repairer, call.schema):
            problem = repairer.problem or "something stands behind the closing brace of the arguments"
            is_known = event.kind != "unreadable" or problem == NOT_CLOSED
            message = event.message if is_known else f"tool call {event.name}: {problem}"
            out.append(msgspec.structs.replace(event, message=message))
            return
        self._leave(call, left, out)
        if how:
            out.append(Deviation("repaired-arguments", f"call {event.index}: arguments", how))
        self._mended += 1
        start = call.start
        self._deliver(call, end, ToolCall(start.id, start.name, "", start.kind, None, start.native), out)

    def _leave(self, call: _OpenCall, text: str, out: list[Event]) -> None:
        if text and self._live:
            out.append(ToolCallDelta(call.start.index, text))

    def _deliver(self, call: _OpenCall, end: str, whole: ToolCall, out: list[Event]) -> None:
        """Deliver a call. `end`: the text that has not left yet. `whole`: the call as the decoder has it."""
        repairer = call.caught_up()
        text = repairer.left.text()
        read = _json.decode_object(text)
        if isinstance(read, _json.Malformed):
            self._fail(call, f"the arguments cannot be read: {read.problem}", whole.arguments, out)
            return
        if holds_next(read, call.schema):
            self._fail(call, HOLDS_NEXT, whole.arguments or text, out)
            return
        for code, where, done in repairer.codes:
            out.append(Deviation(code, f"call {call.start.index}: {where}", clip(done)))
        if text != whole.arguments:
            whole = msgspec.structs.replace(whole, arguments=text)
        if not self._live:
            end = text
        if end:
            out.append(ToolCallDelta(call.start.index, end))
        out.append(ToolCallEnd(call.start.index, whole))

    def _fail(self, call: _OpenCall, problem: str, text: str, out: list[Event]) -> None:
        start = call.start
        self._failed += 1
        message = f"tool call {start.name}: {problem}"
        out.append(ToolCallFailed(start.index, start.id, start.name, "unreadable", message, text))

    def _finish(self, event: Finish) -> Finish:
        reason = settle_reason(
            "tool_use" if event.reason == "other" and self._mended else event.reason,
            usable_calls=self._mended,
            failed_calls=self._failed,
        )
        return msgspec.structs.replace(event, reason=reason)


class _OpenCall:
    """A call whose text is being read."""

    __slots__ = ("_repairer", "schema", "size", "start", "unread")

    def __init__(self, start: ToolCallStart, schema: ToolSchema) -> None:
        self.start = start
        self.schema = schema
        self._repairer: Repairer | None = None  # once something must be read
        self.size = 0  # characters that the decoder gave
        self.unread = ""  # a whole object that came at once and fits: it left as it is

    def read(self, text: str) -> str:
        """Take the next text. Return what leaves."""
        self.size += len(text)
        return (self._repairer or self.caught_up()).feed(text)

    def caught_up(self) -> Repairer:
        """Return the repairer after reading the unread text, because more follows it, or the call fails."""
        if self._repairer is None:
            self._repairer = Repairer(self.schema)
            if self.unread:
                self._repairer.feed(self.unread)
                self.unread = ""
        return self._repairer


def _object_in(text: str) -> tuple[str, str] | None:
    """Return odd argument text from its object's brace on, and how that was wrapped, or None."""
    how = ""
    for _ in range(_DEEPEST_ENCODING):
        bare = text[behind_residue(text) :].rstrip()
        fenced = unfenced(bare)
        if fenced is not None:
            bare, how = fenced[behind_residue(fenced) :], "code fence"
        if bare[:1] in ("{", "/", "#"):  # a comment may stand before its brace
            return bare, how
        found = _STRING.match(bare)
        if found is None or not is_residue(bare, found.end()):
            return None
        decoded = _json.decode(found.group())
        if not isinstance(decoded, str):
            return None
        text, how = decoded, "double encoding"
    return None


def _means_nothing(repairer: Repairer, schema: ToolSchema) -> bool:
    """Return whether only residue, one brace too many, `{}` or the same object again stands behind a repaired one."""
    rest = skip_behind(repairer.rest)
    if not rest or repairer.has_inner_quotes:
        return not rest
    if rest[0] == "}":
        return is_residue(rest, 1)
    written = repairer.left.text()
    for _ in range(_MOST_REPEATS):
        again = Repairer(schema)
        again.feed(rest)
        if again.close() is None or (again.left.text() not in ("{}", written)):
            return False
        rest = skip_behind(again.rest)
        if not rest:
            return True
    return False
