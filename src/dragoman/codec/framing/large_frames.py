"""Check large frames before they are decoded, because decoding may take far more memory than the bytes.

A value takes two bytes as JSON, and a hundred and more as an object. Small frames are not checked: they cannot contain
many values, and most answers have no others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from dragoman import _json
from dragoman._json import Malformed, Raw
from dragoman.bounds import AnswerBounds, exceeded
from dragoman.codec.framing.outline import has_wide_object, values_beyond

#: Bytes above which a frame is looked at.
LARGE: Final = 256 * 1024

#: Looks at a large frame; raises TooLarge.
Look = Callable[[bytes], None]


class TooLarge(Exception):
    """A response, a frame of it, or its decompressed form exceeds the limit. The decoder reports it."""


def check_large(frame: bytes, bounds: AnswerBounds, look: Look | None) -> bytes:
    """Check a frame if it is large, and return it. `look`: a further check of its protocol.

    Raises:
        TooLarge: it has too many values, or an object with too many members.
    """
    if len(frame) > LARGE:
        most = bounds.frame_values
        if count := values_beyond(frame, most):
            raise TooLarge(exceeded(f"a frame of at most {most} JSON values", "frame_values", f"{count} or more"))
        if has_wide_object(frame, bounds.members, len(frame)):
            raise TooLarge(wide_object(bounds.members))
        if look is not None:
            look(frame)
    return frame


def wide_object(most: int) -> str:
    """Return the message for an object of more than `most` members."""
    return exceeded(f"objects of at most {most} members", "members", f"{most + 1} or more")


def has_large_line(data: bytes) -> bool:
    """Return whether a line is large enough for a frame that is checked."""
    begin = 0
    while len(data) - begin > LARGE:
        end = data.rfind(b"\n", begin, begin + LARGE + 1)
        if end < 0:
            return True
        begin = end + 1
    return False


def look_for_few(most: int, field: str) -> Look:
    """Return a check that refuses a frame whose list of this name has more than `most` entries. It reads no more."""
    entries = [(f"entry_{number}", Raw, Raw()) for number in range(most)]
    few: Any = msgspec.defstruct("Few", entries, array_like=True, forbid_unknown_fields=True, gc=False)
    decode = _json.typed_decoder(msgspec.defstruct("FewIn", [(field, few | None, None)], gc=False))

    def look(frame: bytes) -> None:
        found = decode(frame)
        if isinstance(found, Malformed) and found.problem.endswith(f"of at most length {most}"):
            raise TooLarge(f"expected at most {most} {field} at once, got {most + 1} or more")

    return look
