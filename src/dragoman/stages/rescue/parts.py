"""What is open while an answer is read: the text that is scanned, the call that was found in it, and their places."""

from __future__ import annotations

from dragoman.codec.parts.argument_text import ArgumentText
from dragoman.events import TextStart, ThinkingStart
from dragoman.gathered import GatheredRuns, GatheredText
from dragoman.stages.rescue.runner import Found
from dragoman.stages.rescue.scan import Scanner


class Call:
    """A rescued call that is open."""

    __slots__ = ("family", "id", "index", "name", "text", "waits")

    def __init__(self, index: int, call_id: str, name: str, *, family: str, waits: bool) -> None:
        self.index = index
        self.id = call_id
        self.name = name
        self.family = family  # that wrote it
        self.text = ArgumentText()
        self.waits = waits  # it may say again what a structured call said


class Part:
    """A text or thinking part that is scanned."""

    __slots__ = ("call", "held", "index", "is_ended", "is_followed", "is_thinking", "raw", "scanner", "space", "start")

    def __init__(self, start: TextStart | ThinkingStart, scanner: Scanner) -> None:
        self.start = start
        self.scanner = scanner
        self.index = -1  # of the part that is open in the output
        self.space = GatheredText()  # white space behind a call: markup, unless prose follows
        self.is_thinking = isinstance(start, ThinkingStart)
        self.held: GatheredRuns[Found] = GatheredRuns()  # of thinking: what was found from its first call on
        self.raw = GatheredText()  # of thinking: the text that has not left
        self.is_ended = False
        self.is_followed = False  # something else began while it was open: it is not the whole message
        self.call: Call | None = None  # the one that is open in it: several texts may be open, each with a call


class Places:
    """Gives each part its index in the output; calls that were found stand between those that came in."""

    __slots__ = ("_are_changed", "_given", "_next")

    def __init__(self) -> None:
        self._given: dict[int, int] = {}  # part index in → out
        self._are_changed = False  # a part was added
        self._next = 0

    def __contains__(self, index: int) -> bool:
        """Whether a part that came in has its index."""
        return index in self._given

    def of(self, index: int) -> int:
        """The index of a part that came in."""
        known = self._given.get(index)
        if known is None:
            known = index if not self._are_changed else max(self._next, index)
            self._given[index] = known
            self._next = max(self._next, known + 1)
        return known

    def add(self) -> int:
        """The index of one more part, behind all that have opened."""
        self._are_changed = True
        self._next += 1
        return self._next - 1
