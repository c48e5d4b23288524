"""Token counts and costs as servers of the protocol report them."""

from __future__ import annotations

from typing import Final

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.cost import apart_of, beside_counts, tier_of
from dragoman.codec.cost import read_cost as cost_of
from dragoman.codec.json_fields import overlaid, read_fields
from dragoman.money import MOST_NANO, MOST_TOKENS
from dragoman.protocols.openai_chat.wire import NOTHING
from dragoman.types import Cost, Usage

#: `prompt_tokens`, `completion_tokens` and `total_tokens`, what most servers report.
_PLAIN_COUNTS: Final = 3
#: Service tiers that most answers name.
_STANDARD: Final = frozenset((b"", b"null", b'"default"'))
#: xAI's ticks in a US dollar.
_TICKS: Final = 10**10


def read_usage(usage: dict[str, Json], tier: Raw = NOTHING) -> Usage:
    """Return token counts. Some servers count reasoning beside `completion_tokens`: the total tells.

    `tier`: the answer's `service_tier`.
    """
    if tier is NOTHING and len(usage) == _PLAIN_COUNTS and "total_tokens" in usage:
        said, made = usage.get("prompt_tokens"), usage.get("completion_tokens")
        if type(said) is int and type(made) is int and 0 <= said < MOST_TOKENS and 0 <= made < MOST_TOKENS:
            return Usage(said, made)
    served = "" if bytes(tier) in _STANDARD else tier_of(_json.decode(tier))
    details = _object(usage, "prompt_tokens_details", "input_tokens_details")
    input = _count(usage, "prompt_tokens", "input_tokens")
    output = _count(usage, "completion_tokens", "output_tokens")
    cached = _count(details, "cached_tokens")
    made = _object(usage, "completion_tokens_details", "output_tokens_details")
    reasoning = _count(made, "reasoning_tokens")
    if reasoning is None:
        reasoning = _count(usage, "reasoning_tokens")
    if cached is None:
        cached = _count(usage, "prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens")
    written = _count(details, "cache_write_tokens", "cache_creation_tokens")
    if written is None:
        written = _count(usage, "cache_creation_input_tokens")
    if input and output is not None and reasoning and _count(usage, "total_tokens") == input + output + reasoning:
        output += reasoning  # quirk: usage-in-choice-and-cost
    # quirk: usage-parts-beside-the-whole
    if input is not None and cached is not None and cached > input:
        input += cached
    if output is not None and reasoning is not None and reasoning > output:
        output += reasoning
    apart, sound = None, details.get("audio_tokens") or made.get("audio_tokens") or made.get("image_tokens")
    if served or sound or "cache_creation" in usage:
        apart = apart_of(
            served,
            cache_write_long=_count(_object(usage, "cache_creation"), "ephemeral_1h_input_tokens"),
            input_audio=_count(details, "audio_tokens"),
            output_audio=_count(made, "audio_tokens"),
            output_image=_count(made, "image_tokens"),
            cache_read_audio=_count(_object(details, "cached_tokens_details"), "audio_tokens"),
        )
    return Usage(input, output, cached, written, reasoning, apart)


#: Fields of `usage` that `Usage` and `Cost` hold, by the object that they stand in.
_MODELLED: Final = frozenset({"prompt_tokens", "completion_tokens", "total_tokens"})
_MODELLED_DETAILS: Final[dict[str, frozenset[str]]] = {
    "prompt_tokens_details": frozenset({"cached_tokens", "cache_write_tokens"}),
    "completion_tokens_details": frozenset({"reasoning_tokens"}),
}


def rest_of_usage(usage: dict[str, Json]) -> dict[str, Json]:
    """Return the unmodelled fields of a `usage`. A cost that is an object is kept whole."""
    return beside_counts(usage, _MODELLED, _MODELLED_DETAILS)


def read_cost(usage: dict[str, Json]) -> Cost | None:
    """Return `usage.cost` in US dollars, or another server's cost.

    OpenRouter (https://openrouter.ai/docs, usage accounting, read 2026-11-21); its `total_cost` (Perplexity), or its
    `cost_in_usd_ticks` (xAI).
    """
    cost = usage.get("cost")
    if cost is None:
        ticks = usage.get("cost_in_usd_ticks")
        if ticks is None:
            return None
        cost = ticks / _TICKS if type(ticks) is int and abs(ticks) < MOST_NANO * _TICKS else None
    elif isinstance(cost, dict):
        cost = cost.get("total_cost")
    return cost_of(cost)


def _object(fields: dict[str, Json], *names: str) -> dict[str, Json]:
    for name in names:
        found = fields.get(name)
        if isinstance(found, dict):
            return found
    return {}


def _count(fields: dict[str, Json], *names: str) -> int | None:
    """Return a count of tokens; digits in a string and whole floats count too."""
    for name in names:
        value = fields.get(name)
        if value is None:
            continue
        if type(value) is int and 0 <= value < MOST_TOKENS:
            return value
        if isinstance(value, str) and value.isdecimal() and len(value) < 16:
            return int(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < MOST_TOKENS:
            return int(value)
    return None


def render_usage(usage: Usage, cost: Cost | None, kept: Raw | None = None) -> dict[str, Json] | None:
    """Return the `usage` of a response over what was `kept` of it, or None if no tokens were reported."""
    if usage.input is None and usage.output is None:
        return None
    input, output = usage.input or 0, usage.output or 0
    rendered: dict[str, Json] = {"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output}
    read = {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write}
    details = {key: value for key, value in read.items() if value is not None}
    if details:
        rendered["prompt_tokens_details"] = details
    if usage.reasoning is not None:
        rendered["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning}
    if cost is not None:
        rendered["cost"] = cost.usd
    if kept is None:
        return rendered
    whole = overlaid(kept, rendered)
    rest = read_fields(kept) or {}
    return {**whole, "cost": rest["cost"]} if "cost" in rest else whole
