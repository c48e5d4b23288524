"""A provider's rate limits for the client: its own headers unchanged, and one normalised set.

The set, of which a provider may fill a part: `x-dragoman-limit-requests`, `x-dragoman-remaining-requests`,
`x-dragoman-reset-requests`, and the same of `tokens`. Resets are whole seconds from now.
https://platform.openai.com/docs/guides/rate-limits, https://docs.anthropic.com/en/api/rate-limits (read 2026-11-22).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from dragoman.codec.timestamps import parse_time

_OWN: Final = ("x-ratelimit-", "anthropic-ratelimit-", "ratelimit")
_ALSO: Final = frozenset({"retry-after", "retry-after-ms", "x-should-retry"})
#: What of an answer's headers names the request at the provider.
_IDS: Final = ("x-request-id", "request-id", "x-goog-request-id", "x-amzn-requestid", "apim-request-id", "cf-ray")
ID_NAMES: Final = frozenset(_IDS)
#: What of them names the service tier, where the body does not (https://ai.google.dev/gemini-api/docs/priority-inference,
#: read 2026-11-28).
TIER_HEADER: Final = "x-gemini-service-tier"
_FIELD: Final = re.compile(
    r"(?:x-ratelimit-(?P<word>limit|remaining|reset)-(?P<of>requests|tokens)"
    r"|anthropic-ratelimit-(?P<of_last>requests|tokens)-(?P<word_last>limit|remaining|reset)"
    r"|x-ratelimit-(?P<word_alone>limit|remaining|reset))"
)
_DURATION: Final = re.compile(
    r"(?:(?P<h>\d+)h)?(?:(?P<m>\d+)m(?!s))?(?:(?P<s>\d+(?:\.\d+)?)s)?(?:(?P<ms>\d+(?:\.\d+)?)ms)?"
)
_RESET: Final = "x-dragoman-reset"
_LONGEST: Final = 200  # bytes of a value
_LONGEST_NAME: Final = 64
#: Fields of a provider that go on to the client; the vendors send 6 to 14.
_MOST: Final = 24
_A_YEAR: Final = 366 * 86_400.0
#: Milliseconds since 1970 are larger than this, seconds are not before the year 5138.
_MILLISECONDS: Final = 100_000_000_000


def limit_headers(headers: Mapping[str, str], *, now: float) -> dict[str, str]:
    """Return the provider's headers for the client, and the normalised set. `now`: Unix seconds."""
    passed: dict[str, str] = {}
    count = 0
    for name, ours in _told_by(tuple(headers)):
        if _is_plain(value := headers[name]):
            count += 1
            if count > _MOST:
                break
            passed[name] = value
            if ours:
                number = _reset(value, now) if ours.startswith(_RESET) else _count(value)
                if number is not None:
                    passed[ours] = str(number)
    return passed


@lru_cache(maxsize=64)
def _told_by(names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return those header names that are about limits, each with its normalised name or "".

    Cached: a provider sends the same ones with most answers.
    """
    told = [name for name in names if name in _ALSO or name.startswith(_OWN)]
    return tuple([(name, _normalised(name)) for name in told if len(name) <= _LONGEST_NAME])


def _normalised(name: str) -> str:
    found = _FIELD.fullmatch(name)
    if found is None:
        return ""
    word = found["word"] or found["word_last"] or found["word_alone"]
    return f"x-dragoman-{word}-{found['of'] or found['of_last'] or 'requests'}"


def provider_request_id(headers: Mapping[str, str]) -> str:
    """Return the provider's own id of the request, or ""."""
    if ID_NAMES.isdisjoint(headers):  # as where none is told
        return ""
    for name in _IDS:
        if name in headers and _is_plain(headers[name]):
            return headers[name]
    return ""


def _is_plain(value: str) -> bool:
    return 0 < len(value) <= _LONGEST and value.isascii() and value.isprintable()


def _count(value: str) -> int | None:
    return int(value) if value.isdigit() else None


def _reset(value: str, now: float) -> int | None:
    """Return `6m0s`, `20ms`, `12.5`, Unix seconds or milliseconds, or a time, as whole seconds from now."""
    seconds: float | None = None
    found = _DURATION.fullmatch(value)
    if found is not None:
        hours, minutes, whole, thousandths = map(float, found.groups("0"))
        seconds = hours * 3_600 + minutes * 60 + whole + thousandths / 1_000
    else:
        try:
            number = float(value)
        except ValueError:
            at = parse_time(value) if "T" in value else None
            seconds = at - now if at is not None else None
        else:
            if number > _MILLISECONDS:
                number /= 1_000
            seconds = number - now if number > _A_YEAR else number
    return max(0, math.ceil(seconds)) if seconds is not None and math.isfinite(seconds) else None
