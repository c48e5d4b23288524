"""The media types of files: what their first bytes and their names tell. No machine's settings change them."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from dragoman.types import MIMES

_STARTS: Final = (
    (b"\x89PNG", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"), (b"%PDF", "application/pdf"),
    (b"ID3", "audio/mpeg"), (b"\xff\xfb", "audio/mpeg"), (b"OggS", "audio/ogg"), (b"fLaC", "audio/flac"),
    (b"\x1a\x45\xdf\xa3", "video/webm"),
)  # fmt: skip
#: Of a RIFF file, and of one that begins with `ftyp` (ISO/IEC 14496-12): by its four letters at byte 8.
_RIFFS: Final = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
_BRANDS: Final = {b"avif": "image/avif", b"heic": "image/heic", b"mif1": "image/heic", b"M4A ": "audio/mp4",
                  b"qt  ": "video/quicktime"}  # fmt: skip
#: The suffix of a file's name or address, before what an address asks for.
_SUFFIX: Final = re.compile(r"[^?#]*(\.\w+)(?:[?#]|$)", re.ASCII)
_SHOWN: Final = 32  # characters of base64 that have them


def type_of_bytes(data: bytes) -> str | None:
    """Return the type that a file's first bytes tell, or None."""
    if data[:4] == b"RIFF":
        return _RIFFS.get(data[8:12])
    if data[4:8] == b"ftyp":
        return _BRANDS.get(data[8:12], "video/mp4")
    return next((mime for start, mime in _STARTS if data.startswith(start)), None)


def type_of_base64(data: str) -> str | None:
    """Return the type that the first bytes of a file in base64 tell, or None."""
    start = "".join(data[:_SHOWN].split()).rstrip("=")
    try:
        return type_of_bytes(base64.b64decode(start[: len(start) // 4 * 4], "-_"))
    except (binascii.Error, ValueError):
        return None


def type_of_name(name: str) -> str | None:
    """Return the type that the suffix of a file's name or address tells, or None."""
    found = _SUFFIX.match(name)
    return None if found is None else MIMES.get(found[1].lower())
