"""Set top-level keys of a JSON object and leave the rest byte-exact."""

from __future__ import annotations

from typing import Final

from dragoman import _json
from dragoman._json import Malformed, Raw

_decode_fields: Final = _json.typed_decoder(dict[str, Raw])


def splice(body: bytes, changes: dict[str, object]) -> bytes | Malformed:
    """Set top-level keys of a JSON object, all else byte-exact (white space outside values aside).

    Args:
        body: one JSON object.
        changes: new values; `None` removes the key.
    """
    fields = _decode_fields(body)
    return fields if isinstance(fields, Malformed) else splice_fields(fields, changes)


def splice_fields(fields: dict[str, Raw], changes: dict[str, object]) -> bytes:
    """As `splice`, for an object whose fields were read already."""
    return _json.encode_members(changed_fields(fields, changes))


def changed_fields(fields: dict[str, Raw], changes: dict[str, object]) -> dict[str, Raw]:
    """Return fields with these changes; `None` removes a key."""
    spliced = dict(fields)
    for key, value in changes.items():
        if value is None:
            spliced.pop(key, None)
        else:
            spliced[key] = _json.raw(value)
    return spliced
