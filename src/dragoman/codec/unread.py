"""Fields that no protocol's description has, in objects that are read whole: they are named, for nothing keeps them."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.deviations import clip
from dragoman.events import Deviation


def name_unread(fields: Mapping[str, object], where: str, deviations: list[Deviation], *known: str) -> None:
    """A note for each field that is not among those that are known."""
    for key in fields:
        if key not in known:
            deviations.append(Deviation("dropped", f"{where}.{clip(key)}", "a field that is not known here", "note"))
