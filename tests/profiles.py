"""How long properties are tried: a moderate count in `make test`, many times it in `make soak`."""

from __future__ import annotations

import os
from typing import Final

#: Whether `make soak` runs.
IS_SOAK: Final = bool(os.environ.get("DRAGOMAN_SOAK"))
