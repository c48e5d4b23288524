"""Token counts of an answer: reading one or several reports, and writing them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.containers import Deviate
from dragoman.codec.cost import apart_of, tier_of
from dragoman.codec.json_fields import overlaid
from dragoman.money import MOST_TOKENS
from dragoman.protocols.anthropic.wire import read
from dragoman.types import BilledApart, Usage

#: Wire name → ours. `input_tokens` leaves cached tokens out; OpenAI's names hold them.
_COUNTS: Final[dict[str, str]] = {
    "input_tokens": "input", "output_tokens": "output", "cache_read_input_tokens": "cache_read",
    "cache_creation_input_tokens": "cache_write", "prompt_tokens": "total_input", "completion_tokens": "output",
}  # fmt: skip
_DETAILS: Final = "output_tokens_details"
_DIGITS: Final = 16


class Counts:
    """The counts so far. A later report replaces an earlier; omitted counts stay (a later 0 is no count of input)."""

    __slots__ = ("_counts", "_deviate", "_tell", "rest")

    def __init__(self, deviate: Deviate, tell: Callable[[Usage], None]) -> None:
        self._deviate, self._tell = deviate, tell
        self._counts: dict[str, int] = {}
        self.rest: dict[str, Json] = {}  # what `Usage` does not hold of all reports

    def take(self, value: Raw | None) -> None:
        """Take a `usage`."""
        self.take_fields(read(value))

    def take_fields(self, fields: Json) -> None:
        """Take a `usage` that is decoded."""
        if not isinstance(fields, dict):
            if fields is not None:
                self._deviate("usage-place", "usage", type(fields).__name__)
            return
        counts = self._counts
        for key, ours in _COUNTS.items():
            count = fields.get(key)
            if type(count) is not int or not 0 <= count < MOST_TOKENS:
                count = None if count is None else self._odd_count(key, count)
            if count or (count == 0 and ours not in counts):
                counts[ours] = count
        details = fields.get(_DETAILS)
        thinking = details.get("thinking_tokens") if isinstance(details, dict) else None
        self.rest |= rest_of_counts(fields)
        if isinstance(thinking, int):
            counts["reasoning"] = thinking
        cache_read, cache_write = counts.get("cache_read"), counts.get("cache_write")
        fresh = counts.get("input")
        input = counts.get("total_input") if fresh is None else fresh + (cache_read or 0) + (cache_write or 0)
        apart = _apart_of(self.rest) if self.rest else None
        self._tell(Usage(input, counts.get("output"), cache_read, cache_write, counts.get("reasoning"), apart))

    def _odd_count(self, key: str, count: Json) -> int | None:
        if isinstance(count, str) and count.isdecimal() and len(count) < _DIGITS:
            self._deviate("usage-place", f"usage.{key}", "a string")
            count = int(count)
        if isinstance(count, int | float) and not isinstance(count, bool) and 0 <= count < MOST_TOKENS:
            return int(count)
        self._deviate("usage-place", f"usage.{key}", "")
        return None


def _apart_of(rest: dict[str, Json]) -> BilledApart | None:
    """Return what these fields of a report say of prices."""
    written = rest.get("cache_creation")
    return apart_of(
        tier_of(rest.get("service_tier"), rest.get("speed"), rest.get("inference_geo")),
        cache_write_long=written.get("ephemeral_1h_input_tokens") if isinstance(written, dict) else 0,
    )


def rest_of_usage(value: Raw | None) -> dict[str, Raw]:
    """Return the fields of `usage` that `Usage` does not have, or null."""
    fields = read(value)
    return {"usage": _json.raw((isinstance(fields, dict) and rest_of_counts(fields)) or None)}


def rest_of_counts(fields: dict[str, Json]) -> dict[str, Json]:
    """Return the fields of a report that `Usage` does not have."""
    rest = {key: value for key, value in fields.items() if key not in _COUNTS and value is not None}
    details = rest.pop(_DETAILS, None)
    if isinstance(details, dict):
        details = {key: value for key, value in details.items() if key != "thinking_tokens"}
    return rest | {_DETAILS: details} if details else rest


def render_usage(usage: Usage, kept: Raw | None) -> dict[str, Json]:
    """Render counts in this protocol's form, over kept other fields.

    Its `input_tokens` excludes what was read from or written to the cache.
    """
    fields: dict[str, Json] = {"output_tokens": usage.output or 0}
    if usage.input is not None:
        fields["input_tokens"] = max(0, usage.input - (usage.cache_read or 0) - (usage.cache_write or 0))
    if usage.cache_read is not None:
        fields["cache_read_input_tokens"] = usage.cache_read
    if usage.cache_write is not None:
        # where the parts are more than the whole, the whole holds
        most = usage.cache_write if usage.input is None else max(0, usage.input - (usage.cache_read or 0))
        fields["cache_creation_input_tokens"] = min(usage.cache_write, most)
    if usage.reasoning is not None:
        fields[_DETAILS] = {"thinking_tokens": usage.reasoning}
    return fields if kept is None else overlaid(kept, fields)
