"""Events as plain values, for JSON lines."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.events import Event


def event_object(event: Event) -> dict[str, Any]:
    """Return an event as plain values, `type` first, for JSON lines. Absent fields are left out."""
    fields = {key: value for key, value in msgspec.structs.asdict(event).items() if value is not None}
    return {"type": type(event).__name__, **fields}
