"""Export proofs as one JSON document, to carry them elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from dragoman import _json
from dragoman.errors import UsageError
from dragoman.proofs.proof import Proof

_FORMAT: Final = "dragoman-proofs"
_VERSION: Final = 1


class _Export(msgspec.Struct, frozen=True):
    format: str
    version: int
    proofs: tuple[Proof, ...]


_decode_export: Final = _json.typed_decoder(_Export)


def render_export(proofs: Iterable[Proof]) -> bytes:
    """Render proofs as one JSON document."""
    return _json.encode(_Export(_FORMAT, _VERSION, tuple(proofs)))


def parse_export(data: bytes, *, where: str) -> tuple[Proof, ...]:
    """Return the proofs of an export. Raises `UsageError`: the document is something else."""
    export = _decode_export(data)
    if isinstance(export, _json.Malformed):
        raise UsageError(f"{where}: expected an export of proofs: {export.problem}")
    if (export.format, export.version) != (_FORMAT, _VERSION):
        expected = f"{_FORMAT} version {_VERSION}"
        raise UsageError(f"{where}: expected {expected}, got {export.format[:40]!r} version {export.version}")
    return export.proofs
