"""Identifiers of our own making."""

from __future__ import annotations

import secrets
import string
from typing import Final

_ALPHABET: Final = string.ascii_letters + string.digits


def new_id() -> str:
    """24 letters and digits that nobody has used (142 bits of chance)."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(24))
