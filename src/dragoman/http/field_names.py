"""Names of a head's fields in lower case. Those of heads that come again are remembered: most do."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from sys import intern
from typing import Final

_LONGEST: Final = 1024  # bytes of the names of one head that are remembered


def read_names(lines: Sequence[bytes]) -> tuple[str, ...]:
    """Return the names in lower case. `lines`: names and values alternating, as they came."""
    if not lines:
        return ()
    written = b"\n".join(lines[::2])
    return _known(written) if len(written) <= _LONGEST else _lower(written)


def _lower(written: bytes) -> tuple[str, ...]:
    return tuple(map(intern, written.decode("latin-1").lower().split("\n")))


_known = lru_cache(maxsize=256)(_lower)
