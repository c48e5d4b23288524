"""How long properties are tried: a moderate count in `make test`, many times it in `make soak`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Final, TypeVar
from zlib import crc32

import pytest

#: Whether `make soak` runs, and `make search`.
IS_SOAK: Final = bool(os.environ.get("DRAGOMAN_SOAK"))
IS_SEARCH: Final = bool(os.environ.get("DRAGOMAN_SEARCH"))
_Item = TypeVar("_Item")
#: Marks of a file with nothing else of this one, whose tests are tried for longer in `make soak`.
MORE_IN_SOAK: Final = [pytest.mark.soak] if IS_SOAK else []


def some(items: Iterable[_Item], beside: str, share: int) -> list[_Item]:
    """One of four times so many items, other ones beside another text, the same in each run; all in `make soak`."""
    share = 1 if IS_SOAK else 4 * share
    return [item for item in items if crc32(f"{item}{beside}".encode("utf-8", "surrogatepass")) % share == 0]


def one(ways: Sequence[_Item], beside: str) -> Sequence[_Item]:
    """One of several ways, another one beside another text, the same in each run; all in `make soak`."""
    place = crc32(beside.encode("utf-8", "surrogatepass")) % len(ways)
    return ways if IS_SOAK else ways[place : place + 1]


def examples(count: int) -> int:
    """How often a property is tried: in `make test`, which has the same examples each time, an eighth of the count."""
    return count if IS_SOAK or IS_SEARCH else max(count // 8, 1)
