"""Price snapshots: the prices that an attempt was counted by, named by what they say. No I/O."""

from __future__ import annotations

import hashlib
from decimal import Decimal
from typing import Literal, final

import msgspec

from dragoman import _json
from dragoman.ledger.journal.records import PriceSnapshot, clip_name
from dragoman.money import Rates, make_rates


@final
class Priced(msgspec.Struct, frozen=True):
    """Rates, and the snapshot that names them."""

    rates: Rates
    snapshot: PriceSnapshot


def make_priced(
    target: str,
    source: Literal["user", "catalogue"],
    input: Decimal,
    output: Decimal,
    cache_read: Decimal | None = None,
    cache_write: Decimal | None = None,
) -> Priced | None:
    """A snapshot of prices in US dollars a token; None when there are none. The same prices have the same id."""
    rates = make_rates(input, output, cache_read, cache_write)
    if rates is None:
        return None
    name = clip_name(target)
    body = _json.encode(
        {
            "input": rates.input,
            "output": rates.output,
            "cache_read": rates.cache_read,
            "cache_write": rates.cache_write,
            "nano_dollars_for_tokens": rates.scale,
        }
    ).decode()
    digest = hashlib.sha256(f"{name}\n{source}\n{body}".encode("utf-8", "replace")).digest()
    return Priced(rates, PriceSnapshot(int.from_bytes(digest[:8], "big") >> 1, name, source, body))


def read_rates(body: str) -> Rates | None:
    """The rates of a snapshot's body; None when the body is not a snapshot."""
    fields = _json.decode(body.encode())
    if not isinstance(fields, dict):
        return None
    names = ("nano_dollars_for_tokens", "input", "output", "cache_read", "cache_write")
    numbers = [number for name in names if isinstance(number := fields.get(name), int) and number >= 0]
    if len(numbers) < len(names) or not numbers[0]:
        return None
    return Rates(*numbers)
