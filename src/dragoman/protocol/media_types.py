"""The media types of files: what their first bytes and their names tell. No machine's settings change them."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from typing import Final

from dragoman.types import MIMES

#: No text begins so.
_STARTS: Final = (
    (b"\x89PNG", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF87a", "image/gif"), (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"), (b"ID3\2", "audio/mpeg"), (b"ID3\3", "audio/mpeg"), (b"ID3\4", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"), (b"\xff\xfa", "audio/mpeg"), (b"\xff\xf3", "audio/mpeg"), (b"\xff\xf2", "audio/mpeg"),
    (b"OggS\0", "audio/ogg"), (b"fLaC", "audio/flac"),
)  # fmt: skip
#: Of a RIFF file, and of one that begins with `ftyp` (ISO/IEC 14496-12): by its four letters at byte 8.
_RIFFS: Final = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
#: Letters of brands go on with a version: many others are neither images nor videos (https://mp4ra.org).
_BRANDS: Final = (
    (b"avi", "image/avif"), (b"he", "image/heic"), (b"mif1", "image/heic"), (b"msf1", "image/heic"),
    (b"M4A ", "audio/mp4"), (b"M4B ", "audio/mp4"), (b"qt  ", "video/quicktime"), (b"3g", "video/3gpp"),
    (b"iso", "video/mp4"), (b"mp4", "video/mp4"), (b"avc1", "video/mp4"), (b"dash", "video/mp4"),
    (b"M4V", "video/mp4"), (b"MSNV", "video/mp4"), (b"mmp4", "video/mp4"),
)  # fmt: skip
_EBML: Final = b"\x1a\x45\xdf\xa3"
#: What the head of such a document calls it.
_DOCUMENTS: Final = ((b"webm", "video/webm"), (b"matroska", "video/x-matroska"))
#: The suffix of a file's name or address, before what an address asks for.
_SUFFIX: Final = re.compile(r"[^?#]*(\.\w+)(?:[?#]|$)", re.ASCII)
_SHOWN: Final = 96  # characters of base64 that have them


def type_of_bytes(data: bytes) -> str | None:
    """Return the type that a file's first bytes tell, or None."""
    if data[:4] == b"RIFF":
        return _RIFFS.get(data[8:12])
    if data[4:8] == b"ftyp":
        return _begun(data[8:12], _BRANDS)
    if data[:4] == _EBML:
        return next((mime for word, mime in _DOCUMENTS if word in data[:_SHOWN]), None)
    return _begun(data, _STARTS)


def _begun(data: bytes, starts: Iterable[tuple[bytes, str]]) -> str | None:
    return next((mime for start, mime in starts if data.startswith(start)), None)


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
