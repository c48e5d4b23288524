"""Read response bytes of one protocol into events, and through the stages of an answer. Pure and synchronous."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Final, TypeAlias

from dragoman.events import EVERY_KIND, Deviation, Event, Failure, Finish, Start, ToolCallDelta
from dragoman.gathered import Gathered
from dragoman.protocol import Decoder, Stage

#: Events of one kind in a row that are worth a way of their own.
_LONG: Final = 8
_FIRST: Final = 2  # the second text shows that the message is no call as a whole
_LASTS: Final = 32
#: What the JSON reader takes may be too deep for what is done with it then, wherever that is.
_TOO_DEEP: Final = Failure("wire", "expected JSON of some hundred levels at most, got more")


class Later:
    """Stages that are made at the first event that they act on: an answer of calls alone has none. A `Stage` itself.

    Until then it keeps the starts and ends of parts, which they see when they are made.
    """

    __slots__ = ("_kept", "_make", "_sees", "acts_on", "handles", "stages")

    def __init__(self, make: Callable[[], Sequence[Stage]], acts_on: frozenset[type], sees: frozenset[type]) -> None:
        """Create it.

        Args:
            make: returns the stages.
            acts_on: what any of them acts on; of deviations those alone that have `texts`.
            sees: what any of them must have seen of what came before, and passes as it is.
        """
        self._make, self._sees = make, sees
        self._kept: list[Event] = []
        self.stages: Sequence[Stage] = ()  # once they are made
        self.acts_on = acts_on
        self.handles = acts_on | sees

    def feed(self, events: list[Event]) -> list[Event]:
        """Take the next events."""
        if not self.stages:
            if self.acts_on.isdisjoint(map(type, events)) or not any(map(self._is_acted_on, events)):
                self._kept += [event for event in events if type(event) in self._sees]
                return events
            self.stages = self._make()
            self.handles = EVERY_KIND
            _pass(self._kept, self.stages)
            self._kept = []
        return _pass(events, self.stages)

    def _is_acted_on(self, event: Event) -> bool:
        return type(event) in self.acts_on and (type(event) is not Deviation or event.texts is not None)


class Reader:
    """A decoder and the stages behind it: response bytes become the events that users see."""

    __slots__ = ("_decoder", "_kind", "_lasts", "_later", "_route", "_stages")

    def __init__(self, decoder: Decoder, stages: Sequence[Stage] = ()) -> None:
        self._decoder = decoder
        self._stages = tuple(stages)
        self._later = next((stage for stage in stages if type(stage) is Later), None)  # not made yet
        self._kind: type[Event] | None = None  # of the event that came last, alone, and changed nothing
        self._route: list[Stage] = []  # the stages that must see this kind
        self._lasts = 0  # so many more events of it: then some of these may have seen enough

    @property
    def ended(self) -> bool:
        """Whether the protocol's own end was seen: at most usage may follow."""
        return self._decoder.ended

    def feed(self, data: bytes) -> list[Event]:
        """Take the next bytes."""
        try:
            return self._through(self._decoder.feed(data))
        except RecursionError:
            return self.fail(_TOO_DEEP)

    def close(self) -> list[Event]:
        """End the body."""
        try:
            return self._through(self._decoder.close())
        except RecursionError:
            return self.fail(_TOO_DEEP)

    def fail(self, failure: Failure) -> list[Event]:
        """End a broken connection: the response ends with this failure, unless its own end was seen."""
        return self._through(self._decoder.fail(failure))

    def _through(self, events: list[Event]) -> list[Event]:
        """Run all stages in order. Long runs of one kind run separately: most stages have nothing to do with them."""
        if len(events) == 1:  # as most come while a part grows: few stages have to do with it
            if type(events[0]) is not self._kind or not self._lasts:
                if self._later is not None and self._later.stages:
                    self._put_in_place(self._later)
                self._kind, self._lasts = type(events[0]), _LASTS
                self._route = [stage for stage in self._stages if self._kind in stage.handles]
            self._lasts -= 1
            for stage in self._route:
                if (passed := stage.feed(events)) is events:
                    continue
                is_held = not passed and self._kind in stage.handles
                if not (is_held or (len(passed) == 1 and type(passed[0]) is self._kind)):
                    self._kind = None
                    return _pass(passed, self._stages[self._stages.index(stage) + 1 :])
                if is_held:  # those behind see nothing, and the same ones will see the next
                    return passed
                events = passed
            return events
        if not events:  # as while a whole answer comes
            return events
        self._kind = None
        if type(events[0]) is Start and type(events[-1]) is Finish:
            return _pass(events, self._stages, is_whole=True)
        if self._later is not None and self._later.stages:
            self._put_in_place(self._later)
        if len(events) < _LONG:
            return _pass(events, self._stages)
        runs = [list(run) for _, run in groupby(events, type)]
        if len(runs) == 1 or len(runs) * _LONG > len(events):
            return _pass(events, self._stages)
        out: list[Event] = []
        for run in runs:
            if type(run[0]) is not ToolCallDelta:
                # with the first texts a stage may find that it has nothing to do with the others
                out += _pass(run[:_FIRST], self._stages)
                del run[:_FIRST]
            out += _pass(run, self._stages)
        return out

    def _put_in_place(self, later: Later) -> None:
        """Put those that were made in the place of what made them: a part that grows is passed to each alone."""
        place = self._stages.index(later)
        self._stages = (*self._stages[:place], *later.stages, *self._stages[place + 1 :])
        self._later = None


def _pass(events: list[Event], stages: Iterable[Stage], *, is_whole: bool = False) -> list[Event]:
    """Run events through stages.

    `is_whole`: the answer comes at once, so a stage with nothing to do need not see its parts. If a stage of a kind
    changed nothing, another of the same kind is skipped: parts are put in sequence twice.
    """
    kinds = set(map(type, events))
    content: set[type[Stage]] = set()
    for stage in stages:
        if is_whole and (stage.acts_on.isdisjoint(kinds) or type(stage) in content):
            continue
        if stage.handles.isdisjoint(kinds):
            continue
        passed = stage.feed(events)
        if passed is not events:
            events = passed
            kinds = set(map(type, events))
            content.clear()
        elif is_whole:
            content.add(type(stage))
    return events


#: Returns the events of a usual whole answer, and the stages that may act on them, or None.
ReadUsual: TypeAlias = Callable[[bytes], tuple[list[Event], Sequence[Stage]] | None]


class WholeReader:
    """Reads an answer that is asked for whole: a usual one at once, by its protocol's quick way. For any other, and for
    what is no JSON document, it makes the usual reader.
    """

    __slots__ = ("_has_ended", "_held", "_make", "_read", "_reader", "_room")

    def __init__(self, read: ReadUsual, make: Callable[[], Reader], most: int) -> None:
        """Create it.

        Args:
            read: returns the events of a usual answer, and the stages that may act on them, or None.
            most: bytes of an answer that is read at once.
        """
        self._read = read
        self._make = make
        self._room = most
        self._held = Gathered()  # until there is a reader
        self._reader: Reader | None = None
        self._has_ended = False

    @property
    def ended(self) -> bool:
        """As `Reader.ended`."""
        return self._has_ended if self._reader is None else self._reader.ended

    def feed(self, data: bytes) -> list[Event]:
        """Take the next bytes."""
        self._room -= len(data)
        if self._reader is None and self._room >= 0 and (self._held or data[:1] == b"{"):
            self._held.add(data)
            return []
        reader, events = self._usual()
        return events + reader.feed(data)

    def close(self) -> list[Event]:
        """End the body."""
        if self._reader is None and self._held:
            events = self._at_once(self._held.joined())
            if events is not None:
                self._has_ended = True
                self._held.clear()
                return events
        reader, events = self._usual()
        return events + reader.close()

    def _at_once(self, data: bytes) -> list[Event] | None:
        """Return the events of a usual answer, or None."""
        read = self._read(data)
        try:
            return None if read is None else _pass(*read, is_whole=True)
        except RecursionError:
            return None

    def fail(self, failure: Failure) -> list[Event]:
        """As `Reader.fail`."""
        reader, events = self._usual()
        return events + reader.fail(failure)

    def _usual(self) -> tuple[Reader, list[Event]]:
        """Return the usual reader, and the events of what was held."""
        if self._reader is None:
            self._reader = self._make()
        return self._reader, self._reader.feed(self._held.take()) if self._held else []
