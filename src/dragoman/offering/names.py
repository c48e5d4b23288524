"""Tool names: valid for the target, unique, and restored exactly."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from dragoman.protocol.native_tools import ToolForms

#: Hexadecimal digits of a name's hash that stand in for what was cut or replaced.
_DIGITS: Final = 8
_ODD: Final = re.compile(r"[^A-Za-z0-9_-]")


def fit_names(names: Sequence[str], forms: ToolForms, others: Collection[str] = ()) -> list[str] | None:
    """Return valid, unique names for a protocol, or None if the names are so already. `others`: names of other tools.

    A valid name never changes. A changed one depends on the name alone, unless it is repeated, so that it is the same
    in each request of a conversation.
    """
    given = set(others)
    if len(set(names)) == len(names) and given.isdisjoint(names) and fits(names, forms):
        return None
    taken = {name for name in names if fits((name,), forms)} | given
    tried: dict[str, int] = {}
    sent: list[str] = []
    for name in names:
        fitted = name if name not in given and fits((name,), forms) else _next(name, forms, taken, tried)
        given.add(fitted)
        taken.add(fitted)
        sent.append(fitted)
    return sent


def fits(names: Iterable[str], forms: ToolForms) -> bool:
    """Return whether each of these names is valid in a protocol."""
    longest, match = forms.longest_name, forms.name.fullmatch
    return not [name for name in names if len(name) > longest or match(name) is None]


def _next(name: str, forms: ToolForms, taken: Collection[str], tried: dict[str, int]) -> str:
    """Return the name in plain letters with its hash.

    `tried`: by name, how many of its hashes were tried; they are not tried again, so a name may be repeated any number
    of times.
    """
    plain = _ODD.sub("_", name)
    plain = plain if plain[:1].isalpha() or plain[:1] == "_" else f"_{plain}"
    count = tried.get(name, 0)
    while True:
        text = name if not count else f"{name}\0{count}"
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
        found = f"{plain[: forms.longest_name - _DIGITS - 1]}_{digest}"
        count += 1
        if found not in taken:
            tried[name] = count
            return found
