"""What must be known of a chat request before its bytes are passed on."""

from __future__ import annotations

import msgspec

from dragoman import _json
from dragoman.contract import Glance


class _Seen(msgspec.Struct, gc=False):
    model: str
    stream: bool | None = None
    stream_options: dict[str, _json.Json] | None = None


_decode = _json.typed_decoder(_Seen)


def glance(body: bytes, *, path: str = "") -> Glance | None:
    """The model and whether a stream is asked for, the rest unread; None when it must be read."""
    seen = _decode(body)
    if isinstance(seen, _json.Malformed):
        return None
    options = seen.stream_options or {}
    if not seen.stream or options.get("include_usage") is True:
        return Glance(seen.model, bool(seen.stream))
    return Glance(seen.model, True, usage={"stream_options": {**options, "include_usage": True}})
