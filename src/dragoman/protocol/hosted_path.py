"""Paths at which clouds serve a vendor's protocol."""

from __future__ import annotations

from typing import final

import msgspec

from dragoman._json import Json


@final
class HostedPath(msgspec.Struct, frozen=True):
    """One such path.

    `pattern`: the path, `{model}` and others in braces for any text. `path`: the vendor's own; without `{model}` in it
    the body is given the model. `adds`: fields that the path stands for. `leaves`: fields that the cloud alone knows.
    `heads`: fields that are a header at the vendor's, by name; a list's texts stand behind commas.
    """

    pattern: str
    path: str
    adds: dict[str, Json] = {}
    leaves: tuple[str, ...] = ()
    heads: dict[str, str] = {}
