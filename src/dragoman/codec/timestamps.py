"""Times as the wire writes them: RFC 3339 on one side, Unix seconds on the other."""

from __future__ import annotations

from datetime import UTC, datetime


def parse_time(text: object) -> int | None:
    """RFC 3339 → Unix seconds; a time without a zone is UTC. None when it is no time."""
    if not isinstance(text, str):
        return None
    try:
        time = datetime.fromisoformat(text)
        return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return None


def render_time(seconds: int) -> str:
    """Unix seconds → RFC 3339 in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
