"""Match tool results with calls, in protocols where neither needs an id.

A result is paired by its id, else by its name in order, else by its place, but with no call that another result names.
Missing ids are made from the call's place in the conversation, so that a growing conversation keeps them.
"""

from __future__ import annotations

import hashlib
import re
import string
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from dragoman.events import Deviation

_T = TypeVar("_T")
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


def parse_paired(parse: Callable[[CallIds], _T], deviations: list[Deviation]) -> _T:
    """Return what `parse` makes of a conversation.

    It parses again if a result without a known id took a call that another result names, or came before its call.
    """
    said = len(deviations)
    ids = CallIds(deviations)
    parsed = parse(ids)
    if ids.is_wrong:
        del deviations[said:]
        parsed = parse(CallIds(deviations, ids))
    return parsed


class CallIds:
    """Walks one conversation in order.

    `deviations` gains a note for each result that names an unknown call and gets another one's id.
    """

    __slots__ = ("_deviations", "_guesses", "_names", "_walked")

    def __init__(self, deviations: list[Deviation], earlier: CallIds | None = None) -> None:
        """`earlier`: it walked this conversation, so that each call is known that a result names."""
        self._deviations = deviations
        self._names: dict[str, str] = {}  # of every call, by id
        # Each call with its name and each result without one, by id, in order, while all results name their calls.
        self._walked: list[tuple[str, str | None]] = []
        self._guesses: _Guesses | None = None if earlier is None else _Guesses(self._names, earlier._guesses)

    @property
    def is_wrong(self) -> bool:
        """Whether a result without a known id got a call, and a later result or call shows that it is not its own."""
        return self._guesses is not None and self._guesses.is_wrong

    def add_call(self, id: str, name: str, *, turn: int, number: int) -> str:
        """Add a call of the assistant. Return its id.

        Args:
            id: "" if the wire has none.
            turn: the message's place in the conversation.
            number: the call's place in the message.
        """
        id = id or made_id(turn, number)
        if self._guesses is None:
            self._walked.append((id, name))
        else:
            self._guesses.add_call(id, name)
        self._names[id] = name
        return id

    def add_result(self, id: str, name: str) -> tuple[str, str]:
        """Add a result. Return the id and the name of its call, "" if unknown. A call's own name holds."""
        called = self._names.get(id)
        if self._guesses is None and called is not None:
            self._walked.append((id, None))
        else:
            guesses = self._guesses = self._guesses or _Guesses(self._names, walked=self._walked)
            found = guesses.add_result(id, name)
            if found != id:
                if id:
                    self._deviations.append(Deviation("changed", "messages[].call_id", "no call has this id", "note"))
                id, called = found, self._names.get(found)
        if called and name and name != called:
            self._deviations.append(Deviation("changed", "messages[].name", "its call has another name", "note"))
        return id, called or name


class _Guesses:
    """Finds calls for results that name none, from the first of these on. `names`: of the calls so far, by id."""

    __slots__ = ("_answered", "_by_id", "_by_name", "_called", "_guessed", "_ids", "_kept", "_named", "_names",
                 "_open", "is_wrong")  # fmt: skip

    def __init__(
        self,
        names: dict[str, str],
        earlier: _Guesses | None = None,
        *,
        walked: Iterable[tuple[str, str | None]] = (),
    ) -> None:
        """`earlier`: it walked this conversation. `walked`: as `CallIds` has it."""
        # How many results name a call, by id.
        self._kept: dict[str, int] = {} if earlier is None else Counter(earlier._named)
        self._called: dict[str, str] = earlier._names if earlier is not None else {}
        self._named: list[str] = []  # ids of results
        self._guessed: set[str] = set()  # ids of calls that results without a known id got, and of those results
        self.is_wrong = False
        self._names: dict[str, str] = names
        self._ids: list[str] = []  # of every call, in order
        # The places there of calls without a result, the first one first; those that have one leave when they are met.
        self._open: deque[int] = deque()
        self._by_id: dict[str, deque[int]] = {}
        self._by_name: dict[str, deque[int]] = {}
        self._answered: set[int] = set()
        for id, name in walked:
            if name is None:
                self.add_result(id, "")
            else:
                self.add_call(id, name)

    def add_call(self, id: str, name: str) -> None:
        """Add a call that is not among the names yet."""
        place = len(self._ids)
        if id in self._guessed and id not in self._names:
            self.is_wrong = True
        self._ids.append(id)
        self._by_id.setdefault(id, deque()).append(place)
        if self._kept and self._kept.get(id, 0) > 0:
            self._kept[id] -= 1
        else:
            self._open.append(place)
            self._by_name.setdefault(name, deque()).append(place)

    def add_result(self, id: str, name: str) -> str:
        """Add a result. Return the id of its call, or its own."""
        place = None
        if id:
            self._named.append(id)
        if id in self._by_id:
            place = self._first(self._by_id[id])
            if place is None and id in self._guessed:
                self.is_wrong = True
        elif id not in self._called:
            place = self._first(self._by_name.get(name))
            place = self._first(self._open) if place is None else place
            if place is not None:
                self._guessed |= {id, self._ids[place]}
                id = self._ids[place]
        if place is not None:
            self._answered.add(place)
        return id

    def _first(self, places: deque[int] | None) -> int | None:
        """Return the first of these calls without a result."""
        while places and places[0] in self._answered:
            places.popleft()
        return places[0] if places else None
