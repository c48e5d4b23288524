"""The rescue stage: which text is scanned, and what its calls become among the other events."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

import msgspec

from dragoman.codec.parts.settled_arguments import beyond
from dragoman.events import (
    EVERY_KIND,
    Deviation,
    Event,
    Failure,
    Finish,
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
from dragoman.protocol import NewId
from dragoman.stages.offered_tools import Tools
from dragoman.stages.part_indices import FEW, OPENING, index_of, of_kinds, text_of
from dragoman.stages.rescue.behind.ended import Ended, failed, failed_call, finish
from dragoman.stages.rescue.cursor import Close, Family, Open, Piece
from dragoman.stages.rescue.doubts import doubt_of
from dragoman.stages.rescue.markers import THOUGHTS, shows_calls, sort_families, value_marks
from dragoman.stages.rescue.parts import Call, Part, Places, Repeats, StructuredEvent, TextEvent, Whole, is_blank
from dragoman.stages.rescue.runner import Behind, Found, Prose
from dragoman.stages.rescue.scan import Scanner
from dragoman.types import Tool, ToolCall

_PASSING: Final[frozenset[type]] = frozenset({Start, UsageUpdate, Deviation})
#: What must be seen while every part keeps its index and no call is held: when a text is read, and when none is.
_READ: Final[frozenset[type]] = EVERY_KIND - {ToolCallDelta, UsageUpdate, Deviation}
_TEXT_STARTS: Final = frozenset[type]({TextStart, ThinkingStart})
_UNREAD: Final[frozenset[type]] = OPENING | {ToolCallEnd}


class Rescue:
    """The stage for one response. A `dragoman.protocol.Stage`."""

    __slots__ = (
        "_ended", "_failed", "_families", "_found_calls", "_has_answer", "_most_values", "_new_id", "_out", "_parts",
        "_pending", "_places", "_repeats", "_tools", "_torn", "_unproven", "handles",
    )  # fmt: skip

    acts_on = _TEXT_STARTS

    def __init__(self, tools: Sequence[Tool], families: Sequence[Family], *, new_id: NewId, most_values: int) -> None:
        self._most_values = most_values
        self._tools = Tools(tools)
        self._families = tuple(families)
        self._new_id = new_id
        self._out: list[Event] = []
        self._parts: dict[int, Part] = {}  # those that are open, and thinking that holds a call
        self._pending: Whole | None = None  # a text that ended
        self._places = Places()
        self._found_calls = 0
        self._has_answer = False
        self._repeats = Repeats()
        self.handles = _UNREAD
        self._failed = 0
        self._ended = Ended()
        self._torn: TextEnd | None = None  # such a tag, in a call that may go on behind it
        self._unproven: list[tuple[Call, Close]] = []  # calls that nothing but the end of the answer shows to be whole

    def feed(self, events: list[Event]) -> list[Event]:
        """Take the next events."""
        text = text_of(events, TextDelta) or text_of(events, ThinkingDelta)
        if text is not None:
            part = self._parts.get(index := index_of(events[0]))
            if part is not None and part.index == index:
                is_read = part.space or part.held.items or self._ended.reads
                if (not is_read or is_read == "begins") and part.scanner.passes(text):
                    if is_read:
                        self._ended.begin(text)
                    return events
        passed = self._passing(events) if self.handles is _UNREAD else 0
        if passed == len(events):
            return events
        out = self._out = events[:passed]
        self._take_all(events[passed:])
        self._out = []
        if self.handles is not EVERY_KIND:
            self.handles = _READ if self._parts or self._pending is not None else _UNREAD
        return out

    def _passing(self, events: list[Event]) -> int:
        """Return how many events pass as they are, before the first text, if none is being read."""
        for event in events if len(events) <= FEW else of_kinds(events, _UNREAD):
            if type(event) is ToolCallEnd:
                self._repeats.see(event.call)
            elif type(event) in _TEXT_STARTS:
                return events.index(event)
            elif type(event) in _UNREAD:
                self._has_answer = self._has_answer or type(event) is not ToolCallFailed
                self._places.of(index_of(event))
        return len(events)

    def _take_all(self, events: list[Event]) -> None:
        for event in events:
            if self._pending is not None and self._waits(event):
                continue
            if self._torn is not None and type(event) not in _PASSING and self._goes_on(self._torn, event):
                continue
            if type(event) is TextDelta or type(event) is ThinkingDelta:
                self._delta(event)
            elif type(event) is ToolCallDelta or type(event) is ToolCallEnd:
                self._structured_event(event)
            elif type(event) in _PASSING:
                self._out.append(event)
            else:
                self._take(event)

    def _waits(self, event: Event) -> bool:
        """Return whether an event waits behind what may be the whole message; content ends the wait."""
        if not isinstance(event, TextEvent) or event.index in self._parts:
            return False
        is_held = self._pending is not None and self._pending.holds(event)
        if not is_held:
            self._release_pending()
        return is_held

    def _take(self, event: Event) -> None:
        match event:
            case TextStart() | ThinkingStart():
                self._release_pending()
                families, whole, markers = sort_families(() if shows_calls(event) else self._families)
                if isinstance(event, ThinkingStart) or self._has_answer:
                    whole = []
                self._parts[event.index] = Part(event, Scanner(families, markers, self._tools, whole=whole))
            case TextEnd() | ThinkingEnd():
                self._end_part(event)
            case ToolCallStart() | PartEvent() | ToolCallFailed():
                if not isinstance(event, ToolCallFailed):
                    self._answer_begins()
                self._structured_event(event)
            case Finish():
                self._finish(event)
            case Failure():
                self._release_pending()
                self._release_thinking()
                self._close_calls(self._ended.drafts(has_answer=False))
                self._settle_unproven(is_whole=False)
                self._close_calls(self._ended.take())
                self._out.append(event)
            case _:
                self._out.append(event)

    def _delta(self, event: TextDelta | ThinkingDelta) -> None:
        part = self._parts[event.index]
        found = None if part.scanner.passes(event.text) else part.scanner.feed(event.text)
        if found is None:
            is_new = part.index < 0 and not (part.held or part.scanner.family)
            if is_new and self._ended.blank(part, event.text, self._families) is None:
                self._begin(part)
            if part.index == event.index and not part.space and not part.held:
                self._behind_calls(event.text)
                self._out.append(event)
                return
            found = [Prose(event.text)]
        self._scanned(part, event.text, found)

    def _scanned(self, part: Part, text: str, found: list[Found]) -> None:
        """Take what was found in a scanned text and in what waited."""
        if part.is_thinking:
            part.raw.add(text)
            if not part.held and found:
                calls = (place for place, action in enumerate(found) if not isinstance(action, Prose))
                said = sum(len(action.text) for action in found[: next(calls, len(found))] if isinstance(action, Prose))
                part.raw = GatheredText([part.raw.text()[said:]])
        for action in found:
            self._found(part, action)

    def _end_part(self, event: TextEnd | ThinkingEnd) -> None:
        part = self._parts[event.index]
        was_thinking = isinstance(event, TextEnd) and event.was_thinking
        if isinstance(event, TextEnd) and was_thinking and self._torn is None and part.scanner.is_in_call():
            self._torn = event
            return
        self._torn, part.is_ended = None, True
        may_be_whole = not (was_thinking or part.is_thinking or part.is_followed)
        if may_be_whole and part.scanner.is_held() and self._pending is None:
            self._pending = Whole(part)
            del self._parts[event.index]
            return
        found = part.scanner.end(is_message=False)
        if found and part.index < 0 and not (part.is_thinking or part.scanner.family) and is_blank(found):
            self._open(part)  # nothing of an answer
            self._out += [TextDelta(part.index, action.text) for action in found if type(action) is Prose]
        else:
            self._scanned(part, "", found)
        if not (was_thinking or any(not other.is_ended and not other.is_thinking for other in self._parts.values())):
            self._close_calls(self._ended.take())
        self._close(part, event)
        if not part.held:
            del self._parts[event.index]
        if part.is_thinking:
            self._ended.answers()
        if was_thinking:
            self._settle_unproven(is_whole=True)
            self._ended.think()
            self._has_answer = False  # the message itself begins behind it

    def _goes_on(self, torn: TextEnd, event: Event) -> bool:
        """Return whether a call goes on behind a closing tag of thinking, which is its value's; else it is cut."""
        if type(event) is not TextStart or not event.behind:
            self._end_part(torn)
            return False
        self._torn = None
        self._parts[event.index] = self._parts.pop(torn.index)
        self._delta(TextDelta(event.index, event.behind))
        return True

    def _close(self, part: Part, event: TextEnd | ThinkingEnd | None = None) -> None:
        """End the open part of the output, if there is one; an empty part that was nothing else is kept."""
        if part.index < 0 and event is not None and not part.held and not part.call and part.scanner.family == "":
            self._open(part)
            said = part.space.take()  # what closes a call is markup
            self._out += [TextDelta(part.index, said)] if said.isspace() else []
        if part.index < 0:
            return
        end = event or (ThinkingEnd if part.is_thinking else TextEnd)(part.index)
        self._out.append(end if end.index == part.index else msgspec.structs.replace(end, index=part.index))
        part.index = -1

    def _open(self, part: Part) -> None:
        index = part.start.index
        part.index = index = self._fresh_index() if index in self._places else self._places.of(index)
        self._out.append(msgspec.structs.replace(part.start, index=index) if index != part.start.index else part.start)

    def _found(self, part: Part, action: Found) -> None:
        if part.is_thinking and (part.held or not isinstance(action, Prose)):
            part.held.add(action)
            self._ended.think_of(action.family) if isinstance(action, Open) else None
        elif isinstance(action, Prose):
            self._ended.see(action.tag)
            self._prose(part, action)
            if action.tag in THOUGHTS and not part.is_thinking:
                self._ended.think()  # a value hid the tag before
        else:
            self._close(part)
            part.space.clear()
            self._act(part, action)

    def _prose(self, part: Part, prose: Prose) -> None:
        if part.index < 0 and (mark := self._ended.blank(part, prose.text, self._families)) is not None:
            part.space.add(prose.text)
            part.mark = mark
            return
        self._begin(part)
        text = part.space.text() + prose.text
        self._behind_prose(prose, text)
        self._out.append((ThinkingDelta if part.is_thinking else TextDelta)(part.index, text))
        part.space.clear()

    def _begin(self, part: Part) -> None:
        """Prepare for text or thinking that is about to leave."""
        is_followed = part.is_followed
        self._settle_unproven(is_whole=True) if part.is_thinking else self._answer_begins()
        part.is_followed = is_followed  # not by itself
        if part.index < 0:
            self._open(part)

    def _act(self, part: Part, action: Found) -> None:
        """Open, grow or end a call of the text."""
        if isinstance(action, Open):
            self._close_calls(self._ended.drafts(has_answer=True))
            if not part.is_thinking:  # the answer's own call: those in thinking were thoughts
                self._release_thinking()
            self._settle_unproven(is_whole=True)
            self._behind_calls("", is_end=True)
            self._has_answer = True
            self._found_calls += 1
            waits = self._repeats.may_be_structured(action.name)
            index, id = self._fresh_index(), f"call_{self._new_id()}"
            part.call = Call(index, id, action, waits=waits)
            self._out.append(Deviation("rescued-call", f"call {index}", action.family))
            if not waits:
                self._out.append(ToolCallStart(index, id, action.name))
            return
        if (call_open := part.call) is None:
            return
        if isinstance(action, Behind):
            self._ended.read_behind(call_open, action.brackets)
        elif isinstance(action, Piece):
            self._behind_calls("", of_call=len(action.text))
            text = call_open.add(action.text)
            if text and not call_open.waits:
                self._out.append(ToolCallDelta(call_open.index, text))
        elif isinstance(action, Close):
            part.call = None
            if action.is_proven:
                self._end_call(call_open, action)
            else:
                self._unproven.append((call_open, action))

    def _settle_unproven(self, *, is_whole: bool) -> None:
        """Decide about calls without their closing marker: the answer went on or ended by itself, or it was cut."""
        unproven, self._unproven = self._unproven, []
        for call, end in unproven:
            self._end_call(call, end if is_whole else Close(""))

    def _end_call(self, call: Call, end: Close) -> None:
        """End a call. It waits: what follows may be the rest of it, or may show that it was a thought."""
        self._ended.hold(call, end, *value_marks(self._families, call.family))
        self._behind_calls("")

    def _behind_calls(self, text: str, *, of_call: int = 0, is_end: bool = False) -> None:
        """Take text that is no call, or characters of one: calls that waited long enough are reported."""
        self._ended.read(text, is_end=is_end)
        self._ended.add(text, of_call=of_call)
        self._close_calls(self._ended.due())

    def _behind_prose(self, prose: Prose, text: str) -> None:
        """Take text that is no call to an offered tool, but to another one perhaps."""
        self._behind_calls("" if prose.is_call else text, of_call=len(text), is_end=prose.is_call)

    def _close_calls(self, calls: list[tuple[Call, Close]]) -> None:
        for call, end in calls:
            self._close_call(call, end)

    def _close_call(self, call: Call, end: Close) -> None:
        settled = beyond(call.text.raw(), self._most_values) or call.text.settle(proven=end.is_whole())
        if problem := doubt_of(call, end, settled.text, self._tools, self._families):
            end = Close("", problem)
        delta = (settled.text or "") if call.waits else call.end + settled.delta
        if call.waits:
            if self._repeats.is_structured(call.name, settled.text):
                self._out.append(Deviation("duplicate-call", f"call {call.index}", "structured and in the text"))
                return
            self._out.append(ToolCallStart(call.index, call.id, call.name))
        if settled.text is None or not end.is_whole():
            self._failed += 1
            self._out.append(failed_call(call, end, settled))
            return
        for code, seen in settled.codes:
            self._out.append(Deviation(code, f"call {call.index}", seen))
        if delta:
            self._out.append(ToolCallDelta(call.index, delta))
        self._repeats.find(call.name, settled.text)
        self._out.append(ToolCallEnd(call.index, ToolCall(call.id, call.name, settled.text)))

    def _structured_event(self, event: StructuredEvent) -> None:
        """Take a structured call: one that a call in the text said already counts once."""
        if isinstance(event, ToolCallStart):
            if self._ended.holds(event.name):
                self._close_calls(self._ended.take())
            if self._repeats.begin(event):
                self.handles = EVERY_KIND
        if event.index not in self._repeats.held:
            self._pass(event)
            return
        left = self._repeats.hold(event)
        if left == []:
            self._out.append(Deviation("duplicate-call", f"call {event.index}", "in the text and structured"))
        for waiting in left or ():
            self._pass(waiting)

    def _pass(self, event: StructuredEvent) -> None:
        if isinstance(event, ToolCallEnd):
            self._repeats.see(event.call)
        index = self._places.of(event.index)
        self._out.append(event if index == event.index else msgspec.structs.replace(event, index=index))

    def _answer_begins(self) -> None:
        """Begin the answer: held thinking was thinking, and a held message is not the whole one."""
        self._close_calls(self._ended.drafts(has_answer=True))
        self._settle_unproven(is_whole=True)
        self._has_answer = True
        self._release_pending()
        self._release_thinking()

    def _release_pending(self) -> None:
        for open_part in self._parts.values():
            open_part.is_followed = True
        self._settle_whole(is_message=False)

    def _settle_whole(self, *, is_message: bool) -> None:
        """Decide whether a text is the whole message."""
        whole, self._pending = self._pending, None
        if whole is None:
            return
        for action in whole.part.scanner.end(is_message=is_message):
            self._found(whole.part, action)
        self._close(whole.part)
        self._take_all(whole.behind)

    def _release_thinking(self) -> None:
        for index, part in [each for each in self._parts.items() if each[1].held]:
            part.held.take()
            if part.index < 0:
                self._open_again(part)
            self._out.append(ThinkingDelta(part.index, part.raw.take()))
            if part.is_ended:
                self._close(part)
                del self._parts[index]

    def _open_again(self, part: Part) -> None:
        """Continue thinking in a part of its own."""
        part.index = self._fresh_index()
        self._out.append(ThinkingStart(part.index))

    def _finish(self, event: Finish) -> None:
        by_itself = event.reason in ("stop", "tool_use")
        self._settle_whole(is_message=by_itself)
        self._close_calls(self._ended.drafts(has_answer=False))
        for part in self._parts.values():
            for is_prose, actions in itertools.groupby(part.held.take(), lambda action: isinstance(action, Prose)):
                if is_prose:
                    self._thought_between(part, [action for action in actions if isinstance(action, Prose)])
                    continue
                for action in actions:
                    self._act(part, action)
            if part.call is not None:
                self._end_call(part.call, Close(""))
        self._settle_unproven(is_whole=by_itself)
        self._close_calls(self._ended.take())
        if self._found_calls and event.reason != "tool_use":
            event = finish(event, self._out, usable=self._found_calls - self._failed, failed=self._failed)
        self._out.append(failed(event, *self._ended.told) if self._ended.told is not None else event)

    def _thought_between(self, part: Part, prose: list[Prose]) -> None:
        """Take thinking behind a call of it."""
        for action in prose:
            self._ended.see(action.tag)
            self._behind_prose(action, action.text)
        text = "".join(action.text for action in prose)
        if text.strip():
            self._open_again(part)
            self._out.append(ThinkingDelta(part.index, text))
            self._close(part)

    def _fresh_index(self) -> int:
        self.handles = EVERY_KIND
        return self._places.add()
