"""Meters: they note each physical request to a provider, before its first byte and at its end.

A request of a client makes one `Meter`, which goes along with its `Attempts`. Without one nothing is told, and nothing
is done for it. A model is asked in one attempt after the other, so a meter has one attempt under way at most.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Protocol

from dragoman.events import Event, Failure, Finish, TextDelta, ThinkingDelta, ToolCallDelta, UsageUpdate
from dragoman.providers.endpoint import Outgoing
from dragoman.routing.target import Target
from dragoman.types import Outcome, Usage


class Meter(Protocol):
    """What a meter notes of one client's request.

    Attributes:
        grown: characters of the answer so far, in the current attempt; the reader of the answer counts them.
        usage: what the provider has reported of it so far, None when nothing. The last word stands at its end.
        uncounted: events that came behind all that `grown` and `usage` tell of: the last ones, since most attempts end
            so that nobody asks how much came.
        headers: of the answer, names in lower case.
        is_limited: something is to be set apart before a request is sent: `admit` is to be called.
        has_refused: what was asked last was not sent, for a reason of our own: it says nothing of the target.
    """

    is_limited: bool
    has_refused: bool
    grown: int
    usage: Usage | None
    uncounted: Sequence[Event]
    headers: Mapping[str, str]

    def begin(self, target: Target) -> None:
        """This target is asked next."""
        ...

    def admit(self, outgoing: Outgoing) -> None:
        """A connection for this request is about to be looked for: set apart what it may cost. `send` does it where
        nobody called this.

        Raises:
            TransportFailed: it must not be sent.
        """
        ...

    def send(self, outgoing: Outgoing) -> Awaitable[None] | None:
        """Its first byte is about to be written: for a pool again where a kept connection died. Has the form of
        `BeforeSend`: when it, or what it gives, raises `TransportFailed` nothing is written."""
        ...

    def close(self) -> None:
        """The client's request is over, however it ended."""
        ...

    def end(self, outcome: Outcome, told: Finish | Failure | None) -> None:
        """What was sent has ended so; `told`: the last event of its answer. Nothing when nothing was sent."""
        ...


class Counted(Protocol):
    """What counts events."""

    grown: int
    usage: Usage | None


def count_text(meter: Counted, events: Sequence[Event]) -> None:
    """Tell a meter how much the model wrote in these events, and what it is said to have used. In the midst of an
    answer all of them have a text, which costs a step of a comprehension each."""
    try:
        meter.grown += len("".join([event.text for event in events]))  # type: ignore[union-attr]
        return
    except AttributeError:
        pass
    for event in events:
        if type(event) is TextDelta or type(event) is ToolCallDelta or type(event) is ThinkingDelta:
            meter.grown += len(event.text)
        elif type(event) is UsageUpdate:
            meter.usage = event.usage
