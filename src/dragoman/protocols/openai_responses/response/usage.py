"""Token counts and costs of a response, read and written."""

from __future__ import annotations

from typing import Final

from dragoman._json import Json, Raw
from dragoman.codec.cost import apart_of, beside_counts, tier_of
from dragoman.codec.cost import read_cost as cost_of
from dragoman.codec.framing.body import Deviate
from dragoman.codec.json_fields import overlaid
from dragoman.money import MOST_TOKENS
from dragoman.types import Cost, Usage

#: Counts that `Usage` holds, by their place.
_COUNTS: Final = frozenset({"input_tokens", "output_tokens", "total_tokens"})
_DETAILS: Final[dict[str, frozenset[str]]] = {
    "input_tokens_details": frozenset({"cached_tokens", "cache_write_tokens"}),
    "output_tokens_details": frozenset({"reasoning_tokens"}),
}


def read_usage(value: dict[str, Json], deviate: Deviate, tier: Json = None) -> Usage:
    """Return token counts. `input_tokens` includes cached ones, `output_tokens` includes reasoning, as ours do.

    `tier`: the response's `service_tier`.
    """
    inner = value.get("input_tokens_details") or value.get("prompt_tokens_details")
    outer = value.get("output_tokens_details") or value.get("completion_tokens_details")
    inner = inner if isinstance(inner, dict) else {}
    outer = outer if isinstance(outer, dict) else {}
    return Usage(
        input=_count(value, ("input_tokens", "prompt_tokens"), deviate),
        output=_count(value, ("output_tokens", "completion_tokens"), deviate),
        cache_read=_count(inner, ("cached_tokens",), deviate),
        cache_write=_count(inner, ("cache_write_tokens",), deviate),
        reasoning=_count(outer, ("reasoning_tokens",), deviate),
        apart=apart_of(
            tier_of(tier),
            input_audio=inner.get("audio_tokens"),
            output_audio=outer.get("audio_tokens"),
            output_image=outer.get("image_tokens"),
        ),
    )


def _count(fields: dict[str, Json], names: tuple[str, ...], deviate: Deviate) -> int | None:
    for name in names:
        value = fields.get(name)
        if value is None:
            continue
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is int and 0 <= value < MOST_TOKENS:
            return value
        deviate("usage-place", f"usage.{name}", type(value).__name__)
    return None


def read_cost(usage: dict[str, Json]) -> Cost | None:
    """Return the provider's cost of the response in US dollars (OpenRouter's `usage.cost`, Perplexity's object)."""
    value = usage.get("cost")
    return cost_of(value.get("total_cost") if isinstance(value, dict) else value)


def rest_of_usage(usage: dict[str, Json]) -> dict[str, Json]:
    """Return the fields of the counts that `Usage` does not have."""
    return beside_counts(usage, _COUNTS, _DETAILS)


def render_usage(usage: Usage, kept: Raw | None = None) -> dict[str, Json] | None:
    """Return the counts over what was `kept` of others, or None if nothing was reported.

    A required field is 0 if its count is unknown, because clients read it unconditionally.
    """
    if usage.input is None and usage.output is None:
        return None
    given, made = usage.input or 0, usage.output or 0
    counts: dict[str, Json] = {
        "input_tokens": given,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read or 0,
            "cache_write_tokens": usage.cache_write or 0,
        },
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        "total_tokens": given + made,
    }
    return counts if kept is None else overlaid(kept, counts)
