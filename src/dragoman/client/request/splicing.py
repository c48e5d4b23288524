"""Change some fields of a request's body and leave the rest as it came; a large body in steps."""

from __future__ import annotations

import io
from typing import Final

from dragoman import _json
from dragoman._json import Raw
from dragoman.codec.splicing import changed_fields

#: Bytes of a body that is written at once.
LARGE: Final = 256 * 1024
#: Bytes that are copied at once: a copy of twenty MiB holds the interpreter, and so the event loop, for 16 ms.
_STEP: Final = 64 * 1024


def splice_sized(size: int, fields: dict[str, Raw], changes: dict[str, object]) -> tuple[bytes, dict[str, Raw]]:
    """As `splice_fields`, for a body of `size` bytes, also returning the fields that were written. A large one is
    copied in steps: the loop runs in between.
    """
    spliced = changed_fields(fields, changes)
    if size <= LARGE:
        return _json.encode_members(spliced), spliced
    written = io.BytesIO()
    before = b"{"
    for key, value in spliced.items():
        written.write(before + _json.encode_text(key) + b":")
        view, before = memoryview(value), b","
        for start in range(0, len(view), _STEP):
            written.write(view[start : start + _STEP])
    written.write(b"}" if before == b"," else b"{}")
    return written.getvalue(), spliced
