"""Read when to retry: from `Retry-After`, or from the message."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from dragoman.codec.patterns import rare_pattern

_AGAIN: Final = rare_pattern(
    r"(?:try again|retry) (?:in|after) (?:(\d{1,9})h)?(?:(\d{1,9})m(?!s))?"
    r"(?:(\d{1,9}(?:\.\d{1,40})?)\s?(ms|s|second)?)?",
    re.IGNORECASE,
)
_DATE: Final = rare_pattern(r"(\d{1,2})[ -]([A-Za-z]{3})[ -](\d{4}) (\d\d):(\d\d):(\d\d)")
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def read_wait(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait by a response's headers, or None.

    A date counts from the response's own `date`, because this code has no clock.
    """
    lower = {name.lower(): value.strip() for name, value in headers.items()}
    milliseconds = _number(lower.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    after = lower.get("retry-after")
    seconds = _number(after)
    if seconds is not None or after is None:
        return seconds
    until, now = _date(after), _date(lower.get("date", ""))
    return max(0.0, (until - now).total_seconds()) if until is not None and now is not None else None


def _number(text: str | None) -> float | None:
    return float(text) if text is not None and re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", text) else None


def _date(text: str) -> datetime | None:
    found = _DATE.search(text)
    if found is None or found[2].lower() not in _MONTHS:
        return None
    month = _MONTHS.index(found[2].lower()) + 1
    try:
        return datetime(int(found[3]), month, int(found[1]), int(found[4]), int(found[5]), int(found[6]))
    except ValueError:
        return None


def wait_in_words(message: str) -> float | None:
    """Return the seconds to wait by a message such as `Please try again in 6m11.5s`, or None."""
    found = _AGAIN.search(message)
    if found is None or not any(found.groups()[:3]) or (found[3] and not found[4]):
        return None
    seconds = float(found[3] or 0) / (1000 if found[4] and found[4].lower() == "ms" else 1)
    return int(found[1] or 0) * 3600 + int(found[2] or 0) * 60 + seconds
