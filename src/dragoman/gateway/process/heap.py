"""The process's memory: one malloc arena for all threads, and loaded data on large pages."""

from __future__ import annotations

import contextlib
import gc
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

#: M_ARENA_MAX, M_MMAP_THRESHOLD and M_TRIM_THRESHOLD of malloc.h, and what they become.
_SETTINGS: Final = ((-8, 1), (-3, 4 * 1024 * 1024), (-1, 8 * 1024 * 1024))
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
    """Give threads created from now on no malloc arena of their own: other threads could not use its free memory.

    Threads almost always hold the GIL when they allocate, so they do not contend more than before. What is larger than
    4 MiB lies outside of the heap: a body that grows there is moved without a copy, which would stop all for 20 ms. By
    itself malloc puts even 32 MiB into the heap, once it has freed as much. Other C libraries have no arenas, and a
    Python that cannot call its own library keeps them.
    """
    if sys.platform == "linux":
        with contextlib.suppress(ImportError, OSError, AttributeError):
            import ctypes

            for name, value in _SETTINGS:
                ctypes.CDLL(None).mallopt(name, value)


def settle(*, is_alone: bool) -> None:
    """Mark everything as loaded: exclude it from garbage collection, and return what loading took temporarily to the
    system.

    `is_alone`: no other process shares this memory, and none will, so a large page is no copy of shared memory.
    """
    gc.collect()
    gc.freeze()
    if sys.platform == "linux":
        with contextlib.suppress(ImportError, OSError, AttributeError):
            import ctypes

            ctypes.CDLL(None).malloc_trim(0)
    if is_alone:
        use_large_pages()


def use_large_pages() -> None:
    """Put loaded data on pages of 2 MiB where it fills them.

    A request touches thousands of small pages, and the processor caches the translations of some hundreds. An
    administrator's `never` is respected. A kernel that cannot do it refuses, and nothing changes.
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
    """Yield the addresses of the process's allocations at which a large page fits."""
    for found in _ALLOCATED.finditer(maps):
        first, end = int(found[1], 16), int(found[2], 16)
        yield from range(-(-first // _LARGE) * _LARGE, end - _LARGE + 1, _LARGE)
