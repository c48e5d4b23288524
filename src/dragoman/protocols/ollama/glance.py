"""What must be known of an Ollama request before its bytes are passed on."""

from __future__ import annotations

from typing import Final

import msgspec

from dragoman import _json
from dragoman.contract import Glance


class _Options(msgspec.Struct, gc=False):
    num_predict: int | None = None


class _Seen(msgspec.Struct, gc=False):
    model: str
    stream: bool | None = True
    options: _Options | None = None


_decode: Final = _json.fields_decoder(_Seen)


def glance(body: bytes, *, path: str = "") -> Glance | None:
    """The model and whether a stream is asked for, the rest unread; None when it must be read."""
    read = _decode(body)
    if isinstance(read, _json.Malformed):
        return None
    seen, fields = read
    limit = seen.options.num_predict if seen.options is not None else None
    most = limit if limit is not None and limit > 0 else None  # others mean: no limit
    return Glance(seen.model, seen.stream is not False, fields, max_tokens=most)
