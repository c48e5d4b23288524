"""Meters record each physical request to a provider, before its first byte and at its end.

A client's request has one `Meter`, which accompanies its `Attempts`. Without one nothing is recorded, at no cost.
Attempts follow each other, so a meter has at most one under way.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Final, Protocol

from dragoman.events import Event, Failure, Finish, TextDelta, ThinkingDelta, ToolCallDelta, UsageUpdate
from dragoman.providers.endpoint import Outgoing
from dragoman.routing.target import Target
from dragoman.types import Outcome, Usage


class Meter(Protocol):
    """Records the attempts of one client's request.

    Attributes:
        grown: characters of the current attempt's answer so far; the reader of the answer counts them.
        usage: the usage that the provider has reported so far, or None. The last report is final.
        uncounted: the last events, not yet counted in `grown` and `usage`, because most attempts end so that the count
            is not needed.
        headers: the answer's headers, names in lower case.
        is_limited: a quota applies, so `admit` must be called before a request is sent.
        has_refused: the last request was not sent for a reason of our own, which says nothing about the target.
    """

    is_limited: bool
    has_refused: bool
    grown: int
    usage: Usage | None
    uncounted: Sequence[Event]
    headers: Mapping[str, str]

    def begin(self, target: Target) -> None:
        """Record the next target."""
        ...

    def admit(self, outgoing: Outgoing) -> None:
        """Reserve what a request may cost, before a connection is looked for. If it is not called, `send` does it.

        Raises:
            TransportFailed: the request must not be sent.
        """
        ...

    def send(self, outgoing: Outgoing) -> Awaitable[None] | None:
        """Record that a request's first byte is about to be written, also when a pool sends it again on a new
        connection.

        It has the form of `BeforeSend`: if it, or the awaitable that it returns, raises `TransportFailed`, nothing is
        written.
        """
        ...

    def close(self) -> None:
        """End the client's request, whatever its outcome."""
        ...

    def end(self, outcome: Outcome, told: Finish | Failure | None) -> None:
        """Record the outcome of the attempt under way, if there is one. `told` is the last event of its answer."""
        ...


class Counted(Protocol):
    """The part of a meter that counts events."""

    grown: int
    usage: Usage | None


#: The events that have a text of the answer.
_TEXTS: Final = (TextDelta, ToolCallDelta, ThinkingDelta)


def count_text(meter: Counted, events: Sequence[Event]) -> None:
    """Add the length of the text in these events, and the usage they report, to a meter.

    In the middle of an answer all events have a text; then each costs one step of a comprehension. Most events
    without a text are the first and the last of an answer.
    """
    try:
        meter.grown += len("".join([event.text for event in events]))  # type: ignore[union-attr]
        return
    except AttributeError:
        pass
    first, end = 0, len(events)
    while first < end and type(events[first]) not in _TEXTS:
        first += 1
    while first < end and type(events[end - 1]) not in _TEXTS:
        end -= 1
    rest = (*events[:first], *events[end:])
    try:
        meter.grown += len("".join([event.text for event in events[first:end]]))  # type: ignore[union-attr]
    except AttributeError:
        rest = tuple(events)
    for event in rest:
        if type(event) is TextDelta or type(event) is ToolCallDelta or type(event) is ThinkingDelta:
            meter.grown += len(event.text)
        elif type(event) is UsageUpdate:
            meter.usage = event.usage
