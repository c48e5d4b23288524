"""The records of a session's file: one JSON object a line, `type` first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Final, TypeAlias

import msgspec

from dragoman import _json
from dragoman._json import Malformed
from dragoman.agent.tool_plan import Change
from dragoman.inputs.saved_messages import MessageRecord

VERSION: Final = 1


class Opened(msgspec.Struct, frozen=True, tag="opened"):
    """The first record. `at`: Unix seconds, UTC."""

    version: int
    id: str
    folder: str
    target: str
    at: int


class Prompted(msgspec.Struct, frozen=True, tag="prompted"):
    """The user said something: a run begins."""

    run: int
    message: MessageRecord
    at: int


class Answered(msgspec.Struct, frozen=True, tag="answered"):
    """The model answered. Tokens and US dollars are null if they are unknown."""

    message: MessageRecord
    input: int | None = None
    output: int | None = None
    usd: str | None = None


class Spent(msgspec.Struct, frozen=True):
    """The sums of answers. `usd` None: no price is known; `unpriced`: how many answers have none."""

    answers: int
    input: int
    output: int
    usd: Decimal | None
    unpriced: int

    @property
    def dollars(self) -> str:
        """The cost in words; "" if no price is known."""
        return "" if self.usd is None else f"${self.usd:f}{' and more' if self.unpriced else ''}"


def sum_spent(answers: Sequence[Answered]) -> Spent:
    """Return the sums of these answers."""
    priced = [Decimal(each.usd) for each in answers if each.usd is not None]
    return Spent(
        len(answers),
        sum(each.input or 0 for each in answers),
        sum(each.output or 0 for each in answers),
        sum(priced, Decimal(0)) if priced else None,
        len(answers) - len(priced),
    )


class Told(msgspec.Struct, frozen=True, tag="told"):
    """A text for the model that the user did not write: about a call that did not come whole."""

    message: MessageRecord


class Began(msgspec.Struct, frozen=True, tag="began"):
    """A call is about to run, once. `shown`: its line on the screen; "" in older sessions."""

    call: str
    tool: str
    identity: str
    idempotent: bool
    shown: str = ""


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """A call has its result. `was_run` False: it was refused, stopped, or its outcome is unknown."""

    call: str
    result: MessageRecord
    was_run: bool
    change: Change | None = None


class Switched(msgspec.Struct, frozen=True, tag="switched"):
    """Another model continues."""

    target: str


class Folded(msgspec.Struct, frozen=True, tag="folded"):
    """`summary` replaces the messages from `first` up to `kept` (excluded)."""

    first: int
    kept: int
    summary: str


class Unfolded(msgspec.Struct, frozen=True, tag="unfolded"):
    """The last folding was undone."""


class Cleared(msgspec.Struct, frozen=True, tag="cleared"):
    """The conversation starts again."""


class Named(msgspec.Struct, frozen=True, tag="named"):
    """The user gave the session a name."""

    name: str


class Undone(msgspec.Struct, frozen=True, tag="undone"):
    """The file changes of a run were undone."""

    run: int


Record: TypeAlias = (
    Opened | Prompted | Answered | Told | Began | Ended | Switched | Folded | Unfolded | Cleared | Named | Undone
)
parse_record: Final[Callable[[bytes], Record | Malformed]] = _json.typed_decoder(Record)  # type: ignore[arg-type]
