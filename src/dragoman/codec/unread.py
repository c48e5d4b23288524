"""Fields of objects that are read whole and that nothing keeps: those that no protocol's description has, and those
whose place another field took. They are named."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman._json import Raw, raw_text
from dragoman.deviations import clip
from dragoman.events import Deviation


def name_unread(fields: Mapping[str, object], where: str, deviations: list[Deviation], *known: str) -> None:
    """A note for each field that is not among those that are known."""
    for key in fields:
        if key not in known:
            deviations.append(Deviation("dropped", f"{where}.{clip(key)}", "a field that is not known here", "note"))


def name_unreadable(
    fields: Mapping[str, Raw], said: Mapping[str, object], where: str, deviations: list[Deviation]
) -> None:
    """Name each field in which nothing was found that it may say."""
    for key, value in said.items():
        if value is None:
            deviations.append(Deviation("wrong-type", f"{where}{clip(key)}", clip(raw_text(fields[key]))))


def name_passed_over(fields: Mapping[str, object], where: str, deviations: list[Deviation], *rivals: str) -> None:
    """A note for each field that is not read because one before it among `rivals` says the same thing otherwise."""
    read, *others = [key for key in rivals if key in fields] or [""]
    for key in others:
        if fields[key] != fields[read]:
            deviations.append(Deviation("dropped", f"{where}{key}", f"{read} says it", "note"))
