"""What must be known of a Responses request before its bytes are passed on."""

from __future__ import annotations

from typing import Final

import msgspec

from dragoman import _json
from dragoman.contract import Glance


class _Seen(msgspec.Struct, gc=False):
    model: str
    stream: bool | None = None
    store: bool | None = None
    background: bool | None = None
    previous_response_id: str | None = None
    conversation: _json.Json = None
    max_output_tokens: int | None = None


_decode: Final = _json.fields_decoder(_Seen)


def glance(body: bytes, *, path: str = "") -> Glance | None:
    """The model and whether a stream is asked for, the rest unread; None when it must be read. What is stored, or goes
    on from something stored, is the gateway's business."""
    read = _decode(body)
    if isinstance(read, _json.Malformed):
        return None
    seen, fields = read
    if seen.store is not False or seen.background:
        return None
    if seen.previous_response_id is not None or seen.conversation is not None:
        return None
    return Glance(seen.model, bool(seen.stream), fields, max_tokens=seen.max_output_tokens)
