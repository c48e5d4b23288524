"""Unpack calls that a model packs into one call of OpenAI's `multi_tool_use.parallel`, a tool that was not offered.

GPT models know it from their training (`namespace multi_tool_use`, `tool_uses: [{recipient_name, parameters}]`) and
sometimes call it under this name or as `parallel`. If every packed call names an offered tool, each becomes a call;
else the call passes as it is, as one of an unknown tool.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from dragoman import _json
from dragoman.events import EVERY_KIND, Deviation, Event, ToolCallDelta, ToolCallEnd, ToolCallFailed, ToolCallStart
from dragoman.gathered import GatheredRuns
from dragoman.stages.part_indices import FEW, OPENING, PartIndices, index_of, of_kinds
from dragoman.stages.tool_names import clean_name
from dragoman.types import ToolCall

_WRAPPERS: Final = frozenset({"parallel", "multi_tool_use.parallel"})


class _Use(msgspec.Struct):
    """One packed call."""

    recipient_name: str
    parameters: msgspec.Raw = msgspec.Raw(b"{}")


class _Uses(msgspec.Struct):
    tool_uses: list[_Use]


_decode_uses = _json.typed_decoder(_Uses)


_OF_CALLS: Final = (ToolCallDelta, ToolCallEnd, ToolCallFailed)


class ParallelWrapper:
    """The stage for one response. A `dragoman.protocol.Stage`."""

    __slots__ = ("_held", "_indices", "_offered", "_out", "handles")

    acts_on = frozenset[type]({ToolCallStart})

    def __init__(self, offered: Collection[str]) -> None:
        self._offered = frozenset(offered)
        self._held: dict[int, GatheredRuns[Event]] = {}  # by part index: what came in place of a wrapper
        self._indices = PartIndices()
        self._out: list[Event] = []
        self.handles: frozenset[type] = OPENING

    def feed(self, events: list[Event]) -> list[Event]:
        passed = 0 if self._held or self._indices.are_changed else self._passing(events)
        if passed == len(events):
            return events
        out = self._out = events[:passed]
        for event in events[passed:]:
            self._take(event)
        self._out = []
        return out

    def _passing(self, events: list[Event]) -> int:
        """Return how many events come before the first wrapper."""
        for event in events if len(events) <= FEW else of_kinds(events, OPENING):
            if type(event) is ToolCallStart and event.name not in self._offered and self._is_wrapper(event.name):
                return events.index(event)
            if type(event) in OPENING:
                self._indices.of(index_of(event))
        return len(events)

    def _take(self, event: Event) -> None:
        if type(event) is ToolCallStart and self._is_wrapper(event.name):
            self._held[event.index] = GatheredRuns(event)
            self.handles = EVERY_KIND
        elif self._held and isinstance(event, _OF_CALLS) and event.index in self._held:
            self._held[event.index].add(event)
            if isinstance(event, ToolCallDelta):
                return
            held = self._held.pop(event.index).take()
            calls = self._unpacked(event.call) if isinstance(event, ToolCallEnd) else None
            if calls is None:
                for waiting in held:
                    self._out.append(self._indices.move(waiting))
            else:
                self._out.append(Deviation("parallel-wrapper", f"call {event.index}", f"{len(calls)} calls in one"))
                self._put(event.index, calls)
        else:
            self._out.append(self._indices.move(event))

    def _is_wrapper(self, name: str) -> bool:
        if name in self._offered:
            return False
        return clean_name(name, self._offered) is None and clean_name(name, _WRAPPERS) is not None

    def _unpacked(self, call: ToolCall) -> list[ToolCall] | None:
        """Return the packed calls, with ids made from the wrapper's, or None if one of them names no offered tool."""
        decoded = _decode_uses(call.arguments.encode())
        if isinstance(decoded, _json.Malformed) or not decoded.tool_uses:
            return None
        calls = []
        for number, use in enumerate(decoded.tool_uses, 1):
            name = clean_name(use.recipient_name, self._offered)
            arguments = _json.raw_text(use.parameters)
            if name is None or isinstance(_json.decode_object(arguments), _json.Malformed):
                return None
            calls.append(ToolCall(f"{call.id}_{number}", name, arguments))
        return calls

    def _put(self, given: int, calls: Sequence[ToolCall]) -> None:
        for number, call in enumerate(calls):
            index = self._indices.add(given) if number else self._indices.of(given)
            self._out += [
                ToolCallStart(index, call.id, call.name),
                ToolCallDelta(index, call.arguments),
                ToolCallEnd(index, call),
            ]
