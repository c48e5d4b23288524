"""The C library's heap, which the threads of a gateway share."""

from __future__ import annotations

import contextlib
import sys
from typing import Final

_ARENA_MAX: Final = -8  # M_ARENA_MAX of malloc.h


def share_one_heap() -> None:
    """From here on no thread gets a heap of its own, as glibc has it, whose free room no other thread takes.

    Threads hold the interpreter's lock when they ask for memory, nearly always, so that they do not wait for each other
    more than before. Other C libraries know no such heaps, and a Python that cannot call its own keeps them.
    """
    if sys.platform == "linux":
        with contextlib.suppress(ImportError, OSError, AttributeError):
            import ctypes

            ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)
