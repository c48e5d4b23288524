"""Paths at which clouds serve a vendor's protocol."""

from __future__ import annotations

from typing import final

import msgspec

from dragoman._json import Json


@final
class HostedPath(msgspec.Struct, frozen=True):
    """One such path.

    Attributes:
        pattern: the path, with `{model}` and other names in braces for any text.
        path: the vendor's own; without `{model}` in it the body gets the model.
        adds: fields that the path implies.
        leaves: fields that only the cloud knows.
        heads: fields that are a header at the vendor's, by name; the texts of a list are joined with commas.
    """

    pattern: str
    path: str
    adds: dict[str, Json] = {}
    leaves: tuple[str, ...] = ()
    heads: dict[str, str] = {}
