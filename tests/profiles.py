"""How long properties are tried: a moderate count in `make test`, many times it in `make soak`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final, TypeVar
from zlib import crc32

import pytest

#: Whether `make soak` runs.
IS_SOAK: Final = bool(os.environ.get("DRAGOMAN_SOAK"))
_Item = TypeVar("_Item")
#: Marks of a file whose tests are tried for longer in `make soak`.
MORE_IN_SOAK: Final = [pytest.mark.soak] if IS_SOAK else []


def some(items: Iterable[_Item], beside: str, share: int) -> list[_Item]:
    """One of so many items, other ones beside another text, the same in each run; all in `make soak`."""
    return [item for item in items if IS_SOAK or crc32(f"{item}{beside}".encode("utf-8", "surrogatepass")) % share == 0]
