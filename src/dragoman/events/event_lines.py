"""Events as plain values, for JSON lines."""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from dragoman.events import Event
from dragoman.types import Part

_PARTS = get_args(Part)


def event_object(event: Event) -> dict[str, Any]:
    """Return an event as plain values, `type` first, for JSON lines. Absent fields are left out, of its part too."""
    return {"type": type(event).__name__, **present_fields(event)}


def present_fields(value: msgspec.Struct) -> dict[str, Any]:
    """Return the fields of an event or a part that are there, by name; those of a part within it too."""
    fields = msgspec.structs.asdict(value)
    return {
        key: present_fields(field) if isinstance(field, _PARTS) else field
        for key, field in fields.items()
        if field is not None
    }
