"""Pair calls and results: every call has one result, right behind its turn, and no result lacks its call.

Providers refuse a call without a result, a result without its call, and anything between the two.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from dragoman.codec.parts.history_call_ids import made_id
from dragoman.events import Deviation
from dragoman.types import Message, Part, Text, ToolCall, ToolResult

Placed: TypeAlias = tuple[int, Message]
_UNANSWERED: Final = "No result: this call was not run."


class _Turn:
    """A message of the assistant, what follows up to the next one, and the results of its calls."""

    __slots__ = ("answers", "calls", "message", "others", "place", "tools")

    def __init__(self, place: int, message: Message) -> None:
        self.place = place
        self.message = message
        self.calls = message.tool_calls
        self.answers: dict[int, tuple[int, ToolResult]] = {}  # by the call's number: its result, of which message
        self.tools: list[Placed] = []  # messages of results
        self.others: list[Placed] = []


class _Waiting:
    """The calls without a result. A search looks at a call once for each way to name it, however many there are."""

    __slots__ = ("_all", "_by_id", "_by_name")

    def __init__(self) -> None:
        # By turn, the last one on top; in it the first call first. Calls that have a result leave when they are met.
        self._all: list[_Calls] = []
        self._by_id: dict[str, list[_Calls]] = {}
        self._by_name: dict[str, list[_Calls]] = {}

    def add(self, turn: _Turn) -> None:
        """Add the calls of the next turn."""
        for number, call in enumerate(turn.calls):
            ways = (self._all, self._by_id.setdefault(call.id, []), self._by_name.setdefault(call.name, []))
            for calls in ways:
                if not calls or calls[-1][0] is not turn:
                    calls.append((turn, deque()))
                calls[-1][1].append(number)

    def take(self, result: ToolResult, place: int) -> bool:
        """Give a result to its call in the last turn that has one: the call with its id.

        A result without an id goes to a call without one, else to a call of its name, and without a name to the first
        waiting call.
        """
        found = _last_of(self._by_id.get(result.call_id))
        if not result.call_id:
            other = _last_of(self._by_name.get(result.name) if result.name else self._all)
            if found is None or (other is not None and other[0].place > found[0].place):
                found = other
        if found is None:
            return False
        turn, numbers = found
        turn.answers[numbers.popleft()] = (place, result)
        return True


_Calls: TypeAlias = tuple[_Turn, deque[int]]


def _last_of(calls: list[_Calls] | None) -> _Calls | None:
    """Return the last turn that has such a call waiting, and its calls, the first waiting one first."""
    while calls:
        turn, numbers = calls[-1]
        while numbers and numbers[0] in turn.answers:
            numbers.popleft()
        if numbers:
            return calls[-1]
        calls.pop()
    return None


def are_paired(messages: Sequence[Placed]) -> bool:
    """Return whether exactly the results of its calls follow every turn with calls, each naming its call."""
    calls: list[str] = []
    answered: list[str] = []
    is_over = False
    for _, message in messages:
        if message.role == "assistant":
            if sorted(calls) != sorted(answered):
                return False
            calls = [part.id for part in message.parts if isinstance(part, ToolCall)]
            if "" in calls or (len(calls) > 1 and len(set(calls)) < len(calls)):
                return False
            answered, is_over = [], False
            continue
        results = [part.call_id for part in message.parts if isinstance(part, ToolResult)]
        if results and is_over:
            return False
        is_over = is_over or message.role != "tool"
        answered += results
    return sorted(calls) == sorted(answered)


def paired(messages: Sequence[Placed], deviations: list[Deviation]) -> list[Placed]:
    """Return the conversation with calls and results paired. Places are those in the original request."""
    lead: list[Placed] = []
    turns: list[_Turn] = []
    for place, message in messages:
        if message.role == "assistant":
            turns.append(_Turn(place, message))
        elif not turns:
            lead.append((place, message))
        elif message.role == "tool":
            turns[-1].tools.append((place, message))
        else:
            turns[-1].others.append((place, message))
    orphans = _answer(lead, turns, deviations)
    out = [kept for item in lead if (kept := _without(item, orphans)) is not None]
    for turn in turns:
        out += _written(turn, deviations)
    return out


def _answer(lead: Sequence[Placed], turns: Sequence[_Turn], deviations: list[Deviation]) -> set[tuple[int, int]]:
    """Give every result to its call. Return the places of results without a call.

    A result without an id gets none that another result names.
    """
    orphans: set[tuple[int, int]] = set()
    for has_id in (True, False):
        waiting = _Waiting()
        for turn in (None, *turns):
            if turn is not None:
                waiting.add(turn)
            for place, message in lead if turn is None else turn.tools:
                for number, part in enumerate(message.parts):
                    if not isinstance(part, ToolResult) or bool(part.call_id) is not has_id:
                        continue
                    if not waiting.take(part, place):
                        where = f"messages[{place}].parts[{number}]"
                        deviations.append(Deviation("dropped", where, "a result without its call"))
                        orphans.add((place, number))
    return orphans


def _without(item: Placed, orphans: set[tuple[int, int]]) -> Placed | None:
    """Return a message without orphaned results, or None if nothing else was in it."""
    place, message = item
    parts = tuple(part for number, part in enumerate(message.parts) if (place, number) not in orphans)
    if len(parts) == len(message.parts):
        return item
    return (place, msgspec.structs.replace(message, parts=parts)) if parts else None


def _written(turn: _Turn, deviations: list[Deviation]) -> list[Placed]:
    """Return the turn, the results of its calls, and what followed."""
    followers = sorted([*turn.tools, *turn.others], key=lambda item: item[0])
    if are_paired([(turn.place, turn.message), *followers]):
        return [(turn.place, turn.message), *followers]
    results: list[Part] = []
    calls = _apart(turn, deviations)
    for number, call in enumerate(calls):
        answer = turn.answers.get(number)
        if answer is None:
            seen = "a call without a result: one was made up"
            deviations.append(Deviation("changed", f"messages[{turn.place}]", seen))
            results.append(ToolResult(call.id, call.name, (Text(_UNANSWERED),), is_error=True))
        else:
            results.append(_named(answer[1], call))
    message = turn.message
    if calls is not turn.calls:
        by_place = iter(calls)
        parts = tuple([next(by_place) if isinstance(part, ToolCall) else part for part in message.parts])
        message = msgspec.structs.replace(message, parts=parts)
    out: list[Placed] = [(turn.place, message)]
    if results:
        out.append((turn.place, Message("tool", tuple(results))))
    for place, message in followers:
        rest = tuple(part for part in message.parts if not isinstance(part, ToolResult))
        if rest or not message.parts:
            role = "user" if message.role == "tool" and any(isinstance(part, Text) for part in rest) else message.role
            out.append((place, msgspec.structs.replace(message, role=role, parts=rest)))
    if _has_moved(turn):
        deviations.append(Deviation("moved", f"messages[{turn.place}]", "results stand behind their calls"))
    return out


def _apart(turn: _Turn, deviations: list[Deviation]) -> list[ToolCall]:
    """Return the calls of a turn with ids that differ, so that results can name each."""
    taken = {call.id: 1 for call in turn.calls}
    if len(taken) == len(turn.calls) and "" not in taken:
        return turn.calls
    seen: set[str] = set()
    calls: list[ToolCall] = []
    for number, call in enumerate(turn.calls):
        id = call.id or made_id(turn.place, number)
        while id in seen or (id != call.id and id in taken):
            taken[call.id] += 1
            id = f"{call.id}_{taken[call.id]}"
        if id != call.id:
            why = "two calls have one id" if call.id else "a call without an id"
            deviations.append(Deviation("changed", f"messages[{turn.place}]", why))
            call = msgspec.structs.replace(call, id=id)
        seen.add(id)
        calls.append(call)
    return calls


def _has_moved(turn: _Turn) -> bool:
    """Return whether a result stood elsewhere than right behind its turn."""
    first_other = turn.others[0][0] if turn.others else None
    places = {place for place, _ in turn.tools if first_other is None or place < first_other}
    return any(place not in places for place, _ in turn.answers.values())


def _named(result: ToolResult, call: ToolCall) -> ToolResult:
    """Return a result that names its call."""
    if result.call_id == call.id and result.name == call.name:
        return result
    return msgspec.structs.replace(result, call_id=call.id, name=result.name or call.name)
