"""Token counts of an answer as they are reported, once or several times."""

from __future__ import annotations

from typing import Final

from dragoman._json import Json, Raw
from dragoman.assembly import Assembly
from dragoman.protocols.anthropic.wire import read
from dragoman.types import Usage

#: Wire name → ours. `input_tokens` leaves cached tokens out; OpenAI's names hold them.
_COUNTS: Final[dict[str, str]] = {
    "input_tokens": "input", "output_tokens": "output", "cache_read_input_tokens": "cache_read",
    "cache_creation_input_tokens": "cache_write", "prompt_tokens": "total_input", "completion_tokens": "output",
}  # fmt: skip
_MOST: Final = 10**15
_DIGITS: Final = 16


class Counts:
    """What was counted so far. A later report replaces an earlier one; what it leaves out stands (and a later 0 is no
    count of input)."""

    __slots__ = ("_assembly", "_counts")

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._counts: dict[str, int] = {}

    def take(self, value: Raw | None) -> None:
        """A `usage`."""
        fields = read(value)
        if not isinstance(fields, dict):
            if fields is not None:
                self._assembly.deviate("usage-place", "usage", type(fields).__name__)
            return
        counts = self._counts
        for key, ours in _COUNTS.items():
            count = fields.get(key)
            if type(count) is not int or not 0 <= count < _MOST:
                count = None if count is None else self._odd_count(key, count)
            if count or (count == 0 and ours not in counts):
                counts[ours] = count
        details = fields.get("output_tokens_details")
        thinking = details.get("thinking_tokens") if isinstance(details, dict) else None
        if isinstance(thinking, int):
            counts["reasoning"] = thinking
        cache_read, cache_write = counts.get("cache_read"), counts.get("cache_write")
        fresh = counts.get("input")
        input = counts.get("total_input") if fresh is None else fresh + (cache_read or 0) + (cache_write or 0)
        self._assembly.usage(Usage(input, counts.get("output"), cache_read, cache_write, counts.get("reasoning")))

    def _odd_count(self, key: str, count: Json) -> int | None:
        if isinstance(count, str) and count.isdecimal() and len(count) < _DIGITS:
            self._assembly.deviate("usage-place", f"usage.{key}", "a string")
            count = int(count)
        if isinstance(count, int | float) and not isinstance(count, bool) and 0 <= count < _MOST:
            return int(count)
        self._assembly.deviate("usage-place", f"usage.{key}")
        return None
