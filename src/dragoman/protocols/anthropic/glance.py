"""What must be known of a Messages request before its bytes are passed on."""

from __future__ import annotations

import msgspec

from dragoman import _json
from dragoman.contract import Glance


class _Seen(msgspec.Struct, gc=False):
    model: str
    stream: bool | None = None


_decode = _json.typed_decoder(_Seen)


def glance(body: bytes, *, path: str = "") -> Glance | None:
    """The model and whether a stream is asked for, the rest unread; None when it must be read."""
    seen = _decode(body)
    return None if isinstance(seen, _json.Malformed) else Glance(seen.model, bool(seen.stream))
