"""The process's memory: one heap for all threads, and what is loaded on large pages."""

from __future__ import annotations

import contextlib
import gc
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_ARENA_MAX: Final = -8  # M_ARENA_MAX of malloc.h
_COLLAPSE: Final = 25  # MADV_COLLAPSE of linux/mman.h; kernels before 6.1 refuse it
#: Bytes of a large page, and of a usual one. Where these are larger, a large one has fewer than `_IN_USE`.
_LARGE: Final = 2 * 1024 * 1024
_PAGE: Final = 4096
#: Usual pages of a large one that are in use, at least: what is missing would be taken besides.
_IN_USE: Final = 480
_ENABLED: Final = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_MAPS: Final = Path("/proc/self/maps")
#: What programs allocate: it may be written, belongs to no file, and is the heap or has no name.
_ALLOCATED: Final = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) rw-p 0+ 00:00 0 *(?:\[heap\])?$", re.MULTILINE)


def share_one_heap() -> None:
    """From here on no thread gets a heap of its own, as glibc has it, whose free room no other thread takes.

    Threads hold the interpreter's lock when they ask for memory, nearly always, so that they do not wait for each other
    more than before. Other C libraries know no such heaps, and a Python that cannot call its own keeps them.
    """
    if sys.platform == "linux":
        with contextlib.suppress(ImportError, OSError, AttributeError):
            import ctypes

            ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)


def settle(*, is_alone: bool) -> None:
    """All is loaded, and stays: no look for garbage passes it again, and what loading took besides goes back to the
    system, which glibc keeps otherwise. `is_alone`: no other process shares this memory, and none will, so that a large
    page is no copy of what they share."""
    gc.collect()
    gc.freeze()
    if sys.platform == "linux":
        with contextlib.suppress(ImportError, OSError, AttributeError):
            import ctypes

            ctypes.CDLL(None).malloc_trim(0)
    if is_alone:
        use_large_pages()


def use_large_pages() -> None:
    """Put what is loaded on pages of 2 MiB, where it fills them: a request touches thousands of small ones, and the
    processor remembers where some hundred of them are.

    An administrator's `never` is heard. A kernel that cannot do it refuses, and all stays as it is.
    """
    if sys.platform == "linux":
        with contextlib.suppress(ImportError, OSError, AttributeError):
            import ctypes

            if "[never]" in _ENABLED.read_text():
                return
            library = ctypes.CDLL(None)
            in_use = ctypes.create_string_buffer(_LARGE // _PAGE)
            for start in _large_places(_MAPS.read_text()):
                place, size = ctypes.c_void_p(start), ctypes.c_size_t(_LARGE)
                if library.mincore(place, size, in_use) == 0 and sum(byte & 1 for byte in in_use.raw) >= _IN_USE:
                    library.madvise(place, size, _COLLAPSE)


def _large_places(maps: str) -> Iterator[int]:
    """Addresses at which a large page has room in what the process has allocated."""
    for found in _ALLOCATED.finditer(maps):
        first, end = int(found[1], 16), int(found[2], 16)
        yield from range(-(-first // _LARGE) * _LARGE, end - _LARGE + 1, _LARGE)
