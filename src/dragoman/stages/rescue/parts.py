"""The open parts while an answer is read: the scanned text, the call found in it, their indices, and which calls
structured ones repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from dragoman.codec.parts.argument_text import ArgumentText
from dragoman.codec.parts.settled_arguments import is_same
from dragoman.events import (
    Event,
    PartEvent,
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
)
from dragoman.gathered import GatheredRuns, GatheredText
from dragoman.stages.rescue.cursor import Open
from dragoman.stages.rescue.runner import Found, Prose
from dragoman.stages.rescue.scan import Scanner
from dragoman.types import ToolCall

#: Events of empty parts that wait behind what may be the whole message.
_MOST_EMPTY: Final = 1000


#: Of a structured call, or of another part that is no text.
StructuredEvent: TypeAlias = ToolCallStart | ToolCallDelta | ToolCallEnd | ToolCallFailed | PartEvent
TextEvent: TypeAlias = TextStart | ThinkingStart | TextDelta | ThinkingDelta | TextEnd | ThinkingEnd


class Call:
    """An open rescued call. `end`: the fragment that closes its arguments, told once nothing of the call is doubted."""

    __slots__ = ("end", "family", "id", "in_tags", "index", "is_item", "name", "text", "waits")

    def __init__(self, index: int, call_id: str, begun: Open, *, waits: bool) -> None:
        self.index = index
        self.id = call_id
        self.name = begun.name
        self.family = begun.family  # that wrote it
        self.in_tags = begun.in_tags
        self.is_item = begun.is_item  # of a list
        self.text = ArgumentText()
        self.end = ""
        self.waits = waits  # it may say again what a structured call said

    def add(self, text: str) -> str:
        """Take the next fragment of its arguments. Return the text that may leave now, or ""."""
        leaves = self.text.add(text)
        if leaves and self.text.is_closed():
            self.end, leaves = leaves, ""
        return leaves


class Part:
    """A text or thinking part that is scanned."""

    __slots__ = (
        "call", "held", "index", "is_ended", "is_followed", "is_thinking", "mark", "raw", "scanner", "space", "start",
    )  # fmt: skip

    def __init__(self, start: TextStart | ThinkingStart, scanner: Scanner) -> None:
        self.start = start
        self.scanner = scanner
        self.index = -1  # of the part that is open in the output
        self.space = GatheredText()  # white space behind a call: markup, unless prose follows
        self.mark = ""  # of a closing tag, perhaps begun at its end
        self.is_thinking = isinstance(start, ThinkingStart)
        self.held: GatheredRuns[Found] = GatheredRuns()  # of thinking: what was found from its first call on
        self.raw = GatheredText()  # of thinking: the text that has not left
        self.is_ended = False
        self.is_followed = False  # something else began while it was open: it is not the whole message
        self.call: Call | None = None  # the one that is open in it: several texts may be open, each with a call


class Whole:
    """An ended text that may be the whole message, as long as only empty and blank parts follow.

    Attributes:
        part: the text.
        behind: the waiting events.
    """

    __slots__ = ("behind", "part")

    def __init__(self, part: Part) -> None:
        self.part = part
        self.behind: list[Event] = []

    def holds(self, event: TextEvent) -> bool:
        """Return whether an event waits until it is known what the text is."""
        is_said = isinstance(event, TextDelta | ThinkingDelta) and event.text.strip() != ""
        is_said = is_said or (isinstance(event, TextEnd) and event.was_thinking)
        if is_said or len(self.behind) == _MOST_EMPTY:
            return False
        self.behind.append(event)
        return True


class Repeats:
    """Calls of the text and structured ones, by name and arguments: one that is both counts once.

    Attributes:
        held: the events of each structured call that may repeat one of the text, by its index.
    """

    __slots__ = ("_found", "_structured", "held")

    def __init__(self) -> None:
        self._found: list[tuple[str, str]] = []
        self._structured: list[tuple[str, str]] = []
        self.held: dict[int, list[StructuredEvent]] = {}  # several may be open

    def find(self, name: str, arguments: str) -> None:
        """Note a call of the text."""
        self._found.append((name, arguments))

    def see(self, call: ToolCall) -> None:
        """Note a structured call."""
        self._structured.append((call.name, call.arguments))

    def may_be_structured(self, name: str) -> bool:
        """Return whether a call of the text, to this tool, may repeat a structured one."""
        return any(known == name for known, _ in self._structured)

    def is_structured(self, name: str, arguments: str | None) -> bool:
        """Return whether a call of the text repeats a structured one, which then counts no more."""
        return _is_repeated(self._structured, name, arguments)

    def begin(self, event: ToolCallStart) -> bool:
        """Begin a structured call. Return whether it is held: it may repeat one of the text."""
        is_held = any(known == event.name for known, _ in self._found)
        if is_held:
            self.held[event.index] = []
        return is_held

    def hold(self, event: StructuredEvent) -> list[StructuredEvent] | None:
        """Hold an event of a held call. Return what leaves at its end, nothing if it is a repeat; None before."""
        self.held[event.index].append(event)
        if not isinstance(event, ToolCallEnd | ToolCallFailed):
            return None
        held = self.held.pop(event.index)
        is_repeat = isinstance(event, ToolCallEnd) and _is_repeated(self._found, event.call.name, event.call.arguments)
        return [] if is_repeat else held


def _is_repeated(calls: list[tuple[str, str]], name: str, arguments: str | None) -> bool:
    """Return whether one of these calls, by name and arguments, is repeated; then remove it from them."""
    for known in calls if arguments is not None else ():
        if known[0] == name and is_same(known[1], arguments or ""):
            calls.remove(known)
            return True
    return False


def is_blank(found: Sequence[Found]) -> bool:
    """Return whether nothing but white space was found."""
    return all(isinstance(action, Prose) and not action.text.strip() for action in found)


class Places:
    """Gives each part its index in the output. Found calls stand between the incoming parts."""

    __slots__ = ("_are_changed", "_given", "_next")

    def __init__(self) -> None:
        self._given: dict[int, int] = {}  # part index in → out
        self._are_changed = False  # a part was added
        self._next = 0

    def __contains__(self, index: int) -> bool:
        """Return whether an incoming part has its index."""
        return index in self._given

    def of(self, index: int) -> int:
        """Return the index of an incoming part."""
        known = self._given.get(index)
        if known is None:
            known = index if not self._are_changed else max(self._next, index)
            self._given[index] = known
            self._next = max(self._next, known + 1)
        return known

    def add(self) -> int:
        """Return the index of one more part, behind all that have opened."""
        self._are_changed = True
        self._next += 1
        return self._next - 1
