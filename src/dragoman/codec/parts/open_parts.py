"""The parts of a response that are open: what they said, and what their ends are to tell."""

from __future__ import annotations

from typing import Literal

from dragoman.codec.parts.argument_text import ArgumentText
from dragoman.events import TextStart, ThinkingStart
from dragoman.types import Native


class OpenPart:
    """A text or thinking part that is open. `native`: fields that its end tells."""

    __slots__ = ("index", "kind", "native", "redacted", "signature")

    def __init__(self, index: int, kind: type[TextStart] | type[ThinkingStart]) -> None:
        self.index = index
        self.kind = kind
        self.signature: str | None = None
        self.redacted: str | None = None
        self.native: Native | None = None


class OpenCall:
    """A tool call that is open, or was.

    `state`: "waiting" for its name (and what came is held), "announced" (its start event left), "whole" or "failed".
    `id` is "" while the wire has not said one. `repeats` is the whole call under whose id this one was sent again.
    `is_settled`: nothing of its arguments can come any more. `unread`: the key of what may be its arguments, in a place
    where none are read.
    """

    __slots__ = (
        "arguments", "block_ended", "fragments", "half", "id", "index", "is_settled", "kind", "live", "name", "native",
        "pending", "repeats", "signature", "size", "state", "text", "unread",
    )  # fmt: skip

    def __init__(self, index: int, *, id: str, name: str, kind: Literal["function", "custom"]) -> None:
        self.index = index
        self.id = id
        self.name = name
        self.kind = kind
        self.native: Native | None = None
        self.signature: str | None = None
        self.state: Literal["waiting", "announced", "whole", "failed"] = "waiting"
        self.text = ArgumentText()
        self.pending: list[str] = []  # text that may leave once the call is announced
        self.arguments = ""  # the final text, when whole
        self.block_ended = False
        self.is_settled = False
        self.fragments = 0
        self.size = 0  # characters of its arguments that came
        self.half = ""  # a high surrogate that waits for its other half
        self.live: list[str] | None = None  # takes plain fragments; None while they must be looked at
        self.repeats: OpenCall | None = None
        self.unread = ""

    def is_open(self) -> bool:
        """Whether it is neither whole nor failed."""
        return self.state in ("waiting", "announced")
