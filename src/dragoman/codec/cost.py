"""What a report of usage has beside its counts: the cost of the response, and fields that only its protocol knows."""

from __future__ import annotations

from collections.abc import Container, Mapping
from decimal import Decimal, InvalidOperation
from typing import Final

from dragoman._json import Json
from dragoman.types import Cost

#: US dollars that no response costs, and the exponent below which nothing is a price.
_MOST: Final = 10**9
_LEAST_EXPONENT: Final = -400
#: Characters of an amount in a string.
_LONGEST: Final = 40


def read_cost(value: Json) -> Cost | None:
    """Return US dollars from a number or a string, or None for an impossible price.

    Later work with an amount (sums, fractions, writing its digits) takes as long as its exponent says, so that is
    bounded.
    """
    if isinstance(value, str):
        if len(value) > _LONGEST:
            return None
    elif isinstance(value, bool) or not isinstance(value, int | float) or not -_MOST < value < _MOST:
        return None
    try:
        usd = Decimal(str(value))
    except InvalidOperation:
        return None
    is_price = usd.is_finite() and 0 <= usd < _MOST and (not usd or usd.adjusted() > _LEAST_EXPONENT)
    return Cost(usd if usd else Decimal(0), "provider") if is_price else None


def beside_counts(
    usage: dict[str, Json], counts: frozenset[str], details: Mapping[str, Container[str]]
) -> dict[str, Json]:
    """Return the fields of a report beside its `counts` and those in the objects of its `details`."""
    if usage.keys() <= counts:
        return {}
    rest: dict[str, Json] = {}
    for key, value in usage.items():
        if key in details and isinstance(value, dict):
            value = {name: count for name, count in value.items() if name not in details[key]}
        if key not in counts and value is not None and value != {}:
            rest[key] = value
    return rest
