"""How long properties are tried: a moderate count in `make test`, many times it in `make soak`."""

from __future__ import annotations

import os
from typing import Final

import pytest

#: Whether `make soak` runs.
IS_SOAK: Final = bool(os.environ.get("DRAGOMAN_SOAK"))
#: Marks of a file whose tests are tried for longer in `make soak`.
MORE_IN_SOAK: Final = [pytest.mark.soak] if IS_SOAK else []
