"""Price snapshots: the prices by which an attempt was counted, named by their content. No I/O."""

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
    """Return a snapshot of prices in US dollars per token, or None if there are none. Equal prices have equal ids."""
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
    """Return the rates of a snapshot's body, or None if it is not a snapshot."""
    fields = _json.decode(body.encode())
    if not isinstance(fields, dict):
        return None
    names = ("nano_dollars_for_tokens", "input", "output", "cache_read", "cache_write")
    numbers = [number for name in names if isinstance(number := fields.get(name), int) and number >= 0]
    if len(numbers) < len(names) or not numbers[0]:
        return None
    return Rates(*numbers)
