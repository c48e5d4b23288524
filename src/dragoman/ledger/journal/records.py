"""The records of a journal: the intent to ask a provider, and how the attempt ended. Values only.

A record has no field for a prompt, an argument, a key or a provider's message: `reason` is a code of a closed list.
Times are microseconds since 1970 by the wall clock. Money is nano-dollars. None is unknown and never 0.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, Literal, TypeAlias, final, get_args

import msgspec

from dragoman.types import FailureKind

#: `settled`: the provider said what was used; `estimated`: it did not, and what was seen is counted; `void`: it was
#: refused by a status that nobody bills; `interrupted`: the gateway died meanwhile; `reserved`: it goes on.
State: TypeAlias = Literal["reserved", "settled", "estimated", "void", "interrupted"]
STATES: Final[tuple[State, ...]] = get_args(State)

#: Why an attempt did not end well: the kind of its failure, or one of ours. "": it did. `not_believed`: it did, and the
#: provider says of it what cannot be true.
_OURS: Final = ("", "cancelled", "no_usage", "resent", "other_form", "process_died", "late", "not_believed")
REASONS: Final[frozenset[str]] = frozenset((*_OURS, *get_args(FailureKind)))

LONGEST_NAME: Final = 200  # characters
_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_ID_PARTS: Final = struct.Struct(">QH6s")


@final
class Intent(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """A request is about to be sent to a provider.

    Attributes:
        id: the attempt's id, a UUID of version 7 in 16 bytes; its date determines the partition.
        request: the id of the client's request.
        ordinal: the number of this attempt within the request, from 0.
        key: the virtual key's name; `#` and 8 digits of its digest if it has none; "" without a key.
        owner, team: of the key.
        route: the name that the client asked for.
        target: `provider/model`.
        size: bytes of the body.
        reserved, expected: the most and the likely cost, if a quota needs them.
        accounts: the accounts that the attempt is charged to.
        client_request: the client's own id of its request, or "".
        reserved_tokens: the tokens reserved for it, if a quota counts tokens.
    """

    id: bytes
    request: str
    ordinal: int
    started: int
    key: str
    owner: str
    team: str
    route: str
    target: str
    size: int
    reserved: int | None = None
    expected: int | None = None
    accounts: tuple[int, ...] = ()
    client_request: str = ""
    reserved_tokens: int | None = None


@final
class Settlement(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    """The end of an attempt.

    Attributes:
        reported: the provider reported the tokens.
        price: the snapshot by which `nano` was computed; None if the provider reported the cost or it is unknown.
        charged_tokens: what token accounts are charged; None: input and output together.
    """

    id: bytes
    ended: int
    state: State
    nano: int | None = None
    price: int | None = None
    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    reported: bool = False
    reason: str = ""
    status: int | None = None
    provider_request: str = ""
    charged_tokens: int | None = None

    @property
    def tokens(self) -> int:
        """The tokens that token accounts are charged."""
        return (self.input or 0) + (self.output or 0) if self.charged_tokens is None else self.charged_tokens


@final
class PriceSnapshot(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """Prices by which attempts were counted, named by their content. `body` is the JSON of the rates."""

    id: int
    target: str
    source: Literal["user", "catalogue"]
    body: str


Record: TypeAlias = Intent | Settlement | PriceSnapshot


@final
class Row(msgspec.Struct, frozen=True, gc=False):
    """An attempt as the store keeps it. `settlement` is None while it is open. `holder` names its journal."""

    holder: str
    intent: Intent
    settlement: Settlement | None = None

    @property
    def state(self) -> State:
        """The attempt's state; `reserved` until it has ended."""
        return "reserved" if self.settlement is None else self.settlement.state


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final[msgspec.msgpack.Decoder[Record]] = msgspec.msgpack.Decoder(Record)
encode_record: Final = _encoder.encode


def decode_record(data: bytes | memoryview) -> Record | None:
    """Return a journal's record, or None if a later dragoman wrote it or it is damaged."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


#: What stands at an offset of a segment: bytes, and the record that they are.
Framed: TypeAlias = tuple[int, bytes]
Placed: TypeAlias = tuple[int, Record]


def decode_records(found: Sequence[Framed]) -> tuple[Sequence[Placed], Sequence[Framed]]:
    """Decode the records of many places, each as `decode_record` does. Return those that are records, and the rest."""
    decode = _decoder.decode
    try:
        return [(place, decode(data)) for place, data in found], ()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        read = [(place, data, decode_record(data)) for place, data in found]
    records = [(place, record) for place, _, record in read if record is not None]
    return records, [(place, data) for place, data, record in read if record is None]


def clip_name(text: str) -> str:
    """Return a foreign name cut to one line and to the length that a record has room for."""
    return fit_name(text[:LONGEST_NAME])


@lru_cache(maxsize=256)
def fit_name(short: str) -> str:
    """As `clip_name`, for texts of at most `LONGEST_NAME` characters. Cached, because most requests name the same
    few.
    """
    return short if short.isascii() and short.isprintable() else "".join([_fit(letter) for letter in short])


def _fit(letter: str) -> str:
    return letter if letter.isprintable() and not "\ud800" <= letter <= "\udfff" else "?"


def clip_id(text: str) -> str:
    """Return a foreign id, or "" if the text is not an id."""
    return text if _ID.fullmatch(text) else ""


@final
class AttemptIds:
    """Generates one holder's ids: increasing, and unique across holders. A request needs no random number.

    The form is RFC 9562's version 7: 48 bits of milliseconds, then a counter and the holder's own bits.
    """

    __slots__ = ("_count", "_first", "_holder", "_last")

    def __init__(self, holder: int) -> None:
        """Create it with at least 48 random bits that identify the holder; 48 are used."""
        self._holder = (holder & 0xFFFF_FFFF_FFFF).to_bytes(6, "big")
        self._count = 0
        self._last = -1
        self._first = 0x7000  # of the last millisecond

    def next(self, started: int) -> bytes:
        """Return an id for an attempt that starts at `started` (microseconds). A clock that goes back repeats the last
        time.
        """
        milliseconds = started // 1_000
        if milliseconds > self._last:
            self._last = milliseconds
            self._first = (milliseconds & 0xFFFF_FFFF_FFFF) << 16 | 0x7000
        self._count = count = (self._count + 1) & 0x3FF_FFFF
        return _ID_PARTS.pack(self._first | count >> 14, 0x8000 | count & 0x3FFF, self._holder)


def first_id(month: str) -> bytes:
    """Return the lowest id of a month (`2026-11`), which begins with its first millisecond in UTC.

    For a month before 1970 it is the lowest id of all.
    """
    start = datetime(int(month[:4]), int(month[5:]), 1, tzinfo=UTC)
    milliseconds = max(0, int(start.timestamp())) * 1_000
    return milliseconds.to_bytes(6, "big") + bytes(10)


def started_of(id: bytes) -> int:
    """Return the time in an id, in microseconds."""
    return int.from_bytes(id[:6], "big") * 1_000
