"""Frames that are larger than a read of them: what a decoder would make of one is bounded before it is decoded.

A value takes two bytes as JSON, and a hundred and more as an object. Small frames are not looked at: they cannot hold
many values, and most answers have no other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from dragoman import _json
from dragoman._json import Malformed, Raw
from dragoman.bounds import AnswerBounds, exceeded
from dragoman.codec.framing.outline import values_beyond

#: Bytes above which a frame is looked at.
LARGE: Final = 256 * 1024

#: Looks at a large frame; raises TooLarge.
Look = Callable[[bytes], None]


class TooLarge(Exception):
    """A response, a frame of it, or what gzip made of one, is larger than the limit. Caught in the decoder, which tells
    its words."""


def check_large(frame: bytes, bounds: AnswerBounds, look: Look | None) -> bytes:
    """Check a frame if it is large. `look`: what its protocol asks of it besides. The frame comes back.

    Raises:
        TooLarge: it has too many values.
    """
    if len(frame) > LARGE:
        most = bounds.frame_values
        if count := values_beyond(frame, most):
            raise TooLarge(exceeded(f"a frame of at most {most} JSON values", "frame_values", f"{count} or more"))
        if look is not None:
            look(frame)
    return frame


def has_large_line(data: bytes) -> bool:
    """Whether a line is large enough for a frame that is looked at."""
    begin = 0
    while len(data) - begin > LARGE:
        end = data.rfind(b"\n", begin, begin + LARGE + 1)
        if end < 0:
            return True
        begin = end + 1
    return False


def look_for_few(most: int, field: str) -> Look:
    """A look that refuses a frame whose list of this name has more than so many entries. It reads no more of them."""
    entries = [(f"entry_{number}", Raw, Raw()) for number in range(most)]
    few: Any = msgspec.defstruct("Few", entries, array_like=True, forbid_unknown_fields=True, gc=False)
    decode = _json.typed_decoder(msgspec.defstruct("FewIn", [(field, few | None, None)], gc=False))

    def look(frame: bytes) -> None:
        found = decode(frame)
        if isinstance(found, Malformed) and found.problem.endswith(f"of at most length {most}"):
            raise TooLarge(f"expected at most {most} {field} at once, got {most + 1} or more")

    return look
