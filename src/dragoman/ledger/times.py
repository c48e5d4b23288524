"""Moments as people write them: a span before now, or a day."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

_SPAN: Final = re.compile(r"([0-9]{1,6})([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def read_span(word: str) -> int | None:
    """`90d`, `12h`, `30m`, `10s` → seconds; None for what is no span."""
    found = _SPAN.fullmatch(word)
    return int(found[1]) * _SECONDS[found[2]] if found else None


def read_day(word: str) -> float:
    """`2026-11-01` → Unix seconds of its beginning in UTC.

    Raises:
        ValueError: it is no day.
    """
    try:
        return datetime.strptime(word, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise ValueError(f"expected a span like 7d or a day like 2026-11-01, got {word[:40]!r}") from None


def read_moment(word: str, now: float) -> float:
    """A span before now, or a day (UTC) → Unix seconds.

    Raises:
        ValueError: it is neither.
    """
    span = read_span(word)
    return now - span if span is not None else read_day(word)
