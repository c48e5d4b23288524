"""Parse times as people write them: a span before now, or a day."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

_SPAN: Final = re.compile(r"([0-9]{1,6})([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def read_span(word: str) -> int | None:
    """Return the seconds of `90d`, `12h`, `30m` or `10s`, or None if the word is not a span."""
    found = _SPAN.fullmatch(word)
    return int(found[1]) * _SECONDS[found[2]] if found else None


def read_day(word: str) -> float:
    """Return the Unix seconds at which a day such as `2026-11-01` begins in UTC.

    Raises:
        ValueError: the word is not a day.
    """
    try:
        return datetime.strptime(word, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise ValueError(f"expected a span like 7d or a day like 2026-11-01, got {word[:40]!r}") from None


def read_moment(word: str, now: float) -> float:
    """Return the Unix seconds of a span before now, or of a day (UTC). Raises `ValueError`: the word is neither."""
    span = read_span(word)
    return now - span if span is not None else read_day(word)
