"""Convert times between RFC 3339 and Unix seconds."""

from __future__ import annotations

from datetime import UTC, datetime


def parse_time(text: object) -> int | None:
    """Return the Unix seconds of an RFC 3339 time, or None. A time without a zone is UTC."""
    if not isinstance(text, str):
        return None
    try:
        time = datetime.fromisoformat(text)
        return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return None


def render_time(seconds: int) -> str:
    """Return Unix seconds as RFC 3339 in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
