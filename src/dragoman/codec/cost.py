"""What a report of usage has beside its counts: the cost of the response, what of it is billed apart, and fields that
only its protocol knows.

The words for what is billed apart are those of the services' own types (read 2026-11-28): OpenAI `service_tier`,
`audio_tokens`; Anthropic `service_tier`, `speed`, `inference_geo`, `cache_creation`; Gemini `serviceTier`,
`trafficType` and its modalities.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from decimal import Decimal, InvalidOperation
from typing import Final

from dragoman._json import Json
from dragoman.money import MOST_TOKENS
from dragoman.types import BilledApart, Cost

#: US dollars that no response costs, and the exponent below which nothing is a price.
_MOST: Final = 10**9
_LEAST_EXPONENT: Final = -400
#: Characters of an amount in a string.
_LONGEST: Final = 40
#: Words for the tier, the speed and the region that have the usual prices, in small letters.
_STANDARD: Final = frozenset({
    "", "auto", "default", "global", "none", "not_available", "null", "on_demand", "standard", "standard_only",
    "unspecified",
})  # fmt: skip
_LONGEST_TIER: Final = 40
_ENUMS: Final = ("service_tier_", "traffic_type_", "on_demand_")


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


def tier_of(*words: Json) -> str:
    """Return the service tier that these words of an answer, or of a request, name; "" for the standard one.

    Several stand in the order of their letters, wherever they were.
    """
    names = {name for word in words if isinstance(word, str) and (name := _plain(word)) not in _STANDARD}
    return "+".join(sorted(names))


def _plain(word: str) -> str:
    name = word[:_LONGEST_TIER].lower()
    for prefix in _ENUMS:
        name = name.removeprefix(prefix)
    return name


def apart_of(
    tier: str,
    *,
    cache_write_long: Json = 0,
    input_audio: Json = 0,
    output_audio: Json = 0,
    output_image: Json = 0,
    cache_read_audio: Json = None,
) -> BilledApart | None:
    """Return what these counts, as they stand in an answer, say of prices; None if all have the usual ones."""
    written, heard, said, drawn = map(count_of, (cache_write_long, input_audio, output_audio, output_image))
    if not (tier or written or heard or said or drawn):
        return None
    heard_again = None if cache_read_audio is None else count_of(cache_read_audio)
    return BilledApart(tier, written, heard, said, drawn, heard_again)


def count_of(value: Json) -> int:
    """Return a count of tokens, 0 for what is none."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value < MOST_TOKENS else 0
