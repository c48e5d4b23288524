"""Tool-call arguments repaired and coerced to the tool's schema, live.

The decoder tells calls apart and where each ends; this stage reads each call's text through a `Repairer`. A call that
the decoder found unreadable is read here once more: when there is a sure reading it is delivered, else its failure
stands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from dragoman import _json
from dragoman.arguments_text import GATHERED
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
from dragoman.stages.repair import Repairer
from dragoman.stages.schema import ToolSchema, schema_of
from dragoman.types import Tool, ToolCall

_FENCE: Final = re.compile(r"\s*```[\w-]*\s*\n(.*?)\n?\s*```\s*", re.DOTALL)
_SPECIAL: Final = re.compile(r"<\|[^|<>]{1,40}\|>|<｜[^｜<>]{1,40}｜>|</?s>|\[/?INST\]|</?tool_call>")
_GOES_ON: Final = re.compile(r'\s*(?:,|:|"(?:[^"\\]|\\.)*"\s*:)')
_DEEPEST_ENCODING: Final = 3


_CALLS: Final = frozenset[type]({ToolCallStart, ToolCallDelta, ToolCallEnd, ToolCallFailed, Finish})


class Arguments:
    """The stage for the calls of one response. A `dragoman.contract.Stage`."""

    __slots__ = ("_calls", "_failed", "_live", "_mended", "_tools", "handles")

    def __init__(self, tools: Sequence[Tool], *, live: bool = True) -> None:
        """`live`: arguments leave while they come; else each call has one delta, when it is whole."""
        self._live = live
        self.handles = _CALLS
        self._tools: Mapping[str, Tool] = {tool.name: tool for tool in tools if tool.kind == "function"}
        self._calls: dict[int, _OpenCall] = {}
        self._mended = 0
        self._failed = 0

    def feed(self, events: list[Event]) -> list[Event]:
        """Take the next events."""
        if not self._calls:
            for event in events:
                if type(event) is ToolCallStart or type(event) is ToolCallFailed or type(event) is Finish:
                    break
            else:
                return events
        if len(events) > 1 and (joined := _joined(events)) is not None:
            out: list[Event] = []
            self._delta(joined, out)
            # what left unchanged leaves as it came
            return events if len(out) == 1 and out[0] is joined else out
        out = []
        for event in events:
            kind = type(event)
            if kind is ToolCallDelta:
                self._delta(event, out)  # type: ignore[arg-type]
            elif kind is ToolCallStart:
                self._start(event, out)  # type: ignore[arg-type]
            elif kind is ToolCallEnd:
                self._end(event, out)  # type: ignore[arg-type]
            elif kind is ToolCallFailed:
                self._retry(event, out)  # type: ignore[arg-type]
            elif kind is Finish and (self._mended or self._failed):
                out.append(self._finish(event))  # type: ignore[arg-type]
            else:
                out.append(event)
        return out

    def _start(self, event: ToolCallStart, out: list[Event]) -> None:
        out.append(event)
        tool = self._tools.get(event.name)
        if tool is None or event.kind == "custom":
            return
        schema = schema_of(tool)
        self._calls[event.index] = _OpenCall(event, Repairer(schema), schema)

    def _delta(self, event: ToolCallDelta, out: list[Event]) -> None:
        call = self._calls.get(event.index)
        if call is None:
            out.append(event)
            return
        if not call.size and call.schema.takes_as_is(event.text):
            call.unread = event.text
            call.size = len(event.text)
            if self._live:
                out.append(event)
            return
        call.catch_up()
        call.size += len(event.text)
        text = call.repairer.feed(event.text)
        if text is event.text and self._live:
            call.left.append(text)
            if len(call.left) - call.gathered > GATHERED:
                call.gather()
            out.append(event)
        else:
            self._put(call, text, out)

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
        call.catch_up()
        if call.repairer.close():
            self._deliver(call, event.call, out)
        else:
            # The text is a JSON object, so at the worst it is delivered as it is, if nothing else has left.
            text = event.call.arguments
            left = "".join(call.left)
            if text.startswith(left):
                rest = text[len(left) :] if self._live else text
                if rest:
                    out.append(ToolCallDelta(event.index, rest))
                out.append(event)
            else:
                self._fail(call, call.repairer.problem, text, out)

    def _retry(self, event: ToolCallFailed, out: list[Event]) -> None:
        """The decoder could not read a call's text; perhaps there is a sure reading."""
        call = self._calls.pop(event.index, None)
        if call is None or event.kind not in ("unreadable", "cut") or event.arguments.strip() in ("", "{}", "null"):
            out.append(event)
            return
        call.catch_up()
        text = event.arguments
        if call.size and not call.repairer.problem:
            self._put(call, call.repairer.feed(text[call.size :]), out)
        elif not call.size:
            found = _object_in(text)
            if found is None:
                out.append(event)
                return
            text, how = found
            if how:
                call.repairer.codes.append(("repaired-arguments", "arguments", how))
            self._put(call, call.repairer.feed(text), out)
        problem = call.repairer.problem
        if not call.repairer.close() or _goes_on(call.repairer.rest):
            if call.repairer.is_done():
                problem = "the arguments go on after their closing brace"
            problem = problem if event.kind == "unreadable" else ""
            message = f"tool call {event.name}: {problem}" if problem else event.message
            out.append(msgspec.structs.replace(event, message=message))
            return
        self._mended += 1
        start = call.start
        self._deliver(call, ToolCall(start.id, start.name, "", start.kind, None, start.native), out)

    def _put(self, call: _OpenCall, text: str, out: list[Event]) -> None:
        if text:
            call.left.append(text)
            if self._live:
                out.append(ToolCallDelta(call.start.index, text))

    def _deliver(self, call: _OpenCall, whole: ToolCall, out: list[Event]) -> None:
        text = "".join(call.left)
        if isinstance(_json.decode_object(text), _json.Malformed):
            self._fail(call, "the repaired arguments are not a JSON object", whole.arguments, out)
            return
        for code, where, done in call.repairer.codes:
            out.append(Deviation(code, f"call {call.start.index}: {where}", clip(done)))
        if text != whole.arguments:
            whole = msgspec.structs.replace(whole, arguments=text)
        if not self._live:
            out.append(ToolCallDelta(call.start.index, text))
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


def _joined(events: list[Event]) -> ToolCallDelta | None:
    """Deltas of one call as one; None when the events are anything else."""
    first = events[0]
    if type(first) is not ToolCallDelta:
        return None
    index = first.index
    texts = [event.text for event in events if type(event) is ToolCallDelta and event.index == index]
    return ToolCallDelta(index, "".join(texts)) if len(texts) == len(events) else None


class _OpenCall:
    """A call whose text is being read."""

    __slots__ = ("gathered", "left", "repairer", "schema", "size", "start", "unread")

    def __init__(self, start: ToolCallStart, repairer: Repairer, schema: ToolSchema) -> None:
        self.start = start
        self.repairer = repairer
        self.schema = schema
        self.left: list[str] = []  # what has left
        self.gathered = 0  # how many of these are many fragments in one
        self.size = 0  # characters that the decoder gave
        self.unread = ""  # a whole object that came at once and fits: it left as it is

    def gather(self) -> None:
        """Make one of the fragments that left since the last time, as `ArgumentText.gather`."""
        self.left[self.gathered :] = ["".join(self.left[self.gathered :])]
        self.gathered += 1

    def catch_up(self) -> None:
        """Read what was left unread: more follows it, or the call fails."""
        if self.unread:
            self.repairer.feed(self.unread)
            self.left.append(self.unread)
            self.unread = ""


def _object_in(text: str) -> tuple[str, str] | None:
    """Odd argument text from the brace of its object on, and how that was wrapped; None when there is none."""
    how = ""
    for _ in range(_DEEPEST_ENCODING):
        fenced = _FENCE.fullmatch(text)
        if fenced is not None:
            text, how = fenced[1], "code fence"
        bare = _SPECIAL.sub("", text).strip() if _SPECIAL.search(text) and text.lstrip()[:1] != "{" else text.strip()
        if bare[:1] == "{":
            return bare, how
        decoded = _json.decode(bare)
        if isinstance(decoded, str):
            text, how = decoded, "double encoding"
            continue
        start = bare.find("{")
        if bare[:1] in ("[", '"', "'") or start < 0 or not isinstance(decoded, _json.Malformed):
            return None
        return bare[start:], how or "words around"
    return None


def _goes_on(rest: str) -> bool:
    """Whether what follows a closed object is more JSON, not words, a fence or special tokens."""
    return _GOES_ON.match(rest) is not None or rest.lstrip()[:1] in ("{", "[")
