"""Which call a tool result answers, for protocols where neither has to say an id.

A result is paired by its id, else by its name in order, else by its place. Ids that are missing are made from the
call's place in the conversation, so that a conversation that grows keeps them.
"""

from __future__ import annotations

from typing import Final

_DIGITS: Final = 11


def made_id(turn: int, number: int) -> str:
    """An id for a call without one: `call_` and 24 letters or digits that name its message and its place there."""
    return f"call_t{turn:0{_DIGITS}d}c{number:0{_DIGITS}d}"


class Pairing:
    """Walks one conversation in order."""

    __slots__ = ("_names", "_open")

    def __init__(self) -> None:
        self._names: dict[str, str] = {}  # of every call, by id
        self._open: list[str] = []  # ids of the calls without a result, in order

    def add_call(self, id: str, name: str, *, turn: int, number: int) -> str:
        """A call of the assistant; gives its id.

        Args:
            id: "" when the wire has none.
            turn: the message's place in the conversation.
            number: the call's place in the message.
        """
        id = id or made_id(turn, number)
        self._names[id] = name
        self._open.append(id)
        return id

    def add_result(self, id: str, name: str) -> tuple[str, str]:
        """A result; gives the id and the name of its call, "" for what nobody said."""
        call = self._find(id, name)
        if call in self._open:
            self._open.remove(call)
        return call or id, name or self._names.get(call, "")

    def _find(self, id: str, name: str) -> str:
        if id and id in self._names:
            return id
        first = self._open[0] if self._open else ""
        return next((call for call in self._open if self._names[call] == name), first)
