"""Names of a head's fields in lower case. Those of heads that come again are remembered: most do."""

from __future__ import annotations

from collections.abc import Sequence
from sys import intern
from typing import Final

_MOST: Final = 256
_LONGEST: Final = 1024  # bytes of the names of one head that are remembered

_known: dict[bytes, tuple[str, ...]] = {}


def read_names(lines: Sequence[bytes]) -> tuple[str, ...]:
    """Return the names in lower case. `lines`: names and values alternating, as they came."""
    if not lines:
        return ()
    written = b"\n".join(lines[::2])
    names = _known.get(written)
    if names is None:
        names = tuple(map(intern, written.decode("latin-1").lower().split("\n")))
        if len(written) <= _LONGEST:
            if len(_known) >= _MOST:
                _known.clear()
            _known[written] = names
    return names
