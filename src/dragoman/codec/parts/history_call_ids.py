"""Match tool results with calls, in protocols where neither needs an id.

A result is paired by its id, else by its name in order, else by its place. Missing ids are made from the call's place
in the conversation, so that a growing conversation keeps them.
"""

from __future__ import annotations

import hashlib
import re
import string
from collections import deque
from typing import Final

from dragoman.events import Deviation

_DIGITS: Final = 11
_PLAIN: Final = re.compile(r"[a-zA-Z0-9_-]+")
_NOT_PLAIN: Final = re.compile(r"[^a-zA-Z0-9_-]")
_ALPHABET: Final = string.digits + string.ascii_letters
#: Letters and digits of a hash that keep shortened ids apart.
_KEPT_APART: Final = 12


def made_id(turn: int, number: int) -> str:
    """Return an id for a call without one: `call_` and 24 letters or digits that encode its message and place."""
    return f"call_t{turn:0{_DIGITS}d}c{number:0{_DIGITS}d}"


def shape_id(id: str, longest: int, *, plain: bool) -> str:
    """Return a call's id in a form that a server accepts: equal for equal ids, different for different ones.

    Args:
        id: as it came; one that fits is kept.
        longest: characters.
        plain: only letters, digits, `_` and `-` are allowed.
    """
    if len(id) <= longest and (not plain or _PLAIN.fullmatch(id)):
        return id
    return f"{_NOT_PLAIN.sub('_', id)[: longest - _KEPT_APART - 1]}_{hashed(id, _KEPT_APART)}"


def hashed(id: str, size: int) -> str:
    """Return letters and digits that stand for an id."""
    number = int.from_bytes(hashlib.sha256(id.encode("utf-8", "replace")).digest(), "big")
    return "".join(_ALPHABET[number // 62**place % 62] for place in range(size))


class CallIds:
    """Walks one conversation in order.

    `deviations` gains a note for each result that names an unknown call and gets another one's id.
    """

    __slots__ = ("_answered", "_by_id", "_by_name", "_deviations", "_ids", "_names", "_open")

    def __init__(self, deviations: list[Deviation]) -> None:
        self._deviations = deviations
        self._names: dict[str, str] = {}  # of every call, by id
        self._ids: list[str] = []  # of every call, in order
        # The places there of calls without a result, the first one first; those that have one leave when they are met.
        self._open: deque[int] = deque()
        self._by_id: dict[str, deque[int]] = {}
        self._by_name: dict[str, deque[int]] = {}
        self._answered: set[int] = set()

    def add_call(self, id: str, name: str, *, turn: int, number: int) -> str:
        """Add a call of the assistant. Return its id.

        Args:
            id: "" if the wire has none.
            turn: the message's place in the conversation.
            number: the call's place in the message.
        """
        id = id or made_id(turn, number)
        place = len(self._ids)
        self._names[id] = name
        self._ids.append(id)
        self._open.append(place)
        self._by_id.setdefault(id, deque()).append(place)
        self._by_name.setdefault(name, deque()).append(place)
        return id

    def add_result(self, id: str, name: str) -> tuple[str, str]:
        """Add a result. Return the id and the name of its call, "" if unknown."""
        if id and id in self._names:
            place = self._first(self._by_id[id])
        else:
            place = self._first(self._by_name.get(name))
            place = self._first(self._open) if place is None else place
            if id and place is not None:
                self._deviations.append(Deviation("changed", "messages[].call_id", "no call has this id", "note"))
            id = id if place is None else self._ids[place]
        if place is not None:
            self._answered.add(place)
        return id, name or self._names.get(id, "")

    def _first(self, places: deque[int] | None) -> int | None:
        """Return the first of these calls without a result."""
        while places and places[0] in self._answered:
            places.popleft()
        return places[0] if places else None
