"""Every call with one result, right behind the turn that called; no result without its call.

Providers refuse a call without a result, a result without its call, and anything between the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from dragoman.events import Deviation
from dragoman.types import Message, Part, Text, ToolCall, ToolResult

Placed: TypeAlias = tuple[int, Message]
_UNANSWERED: Final = "No result: this call was not run."


class _Turn:
    """A message of the assistant, what stands up to the next one, and the results of its calls."""

    __slots__ = ("answers", "calls", "message", "others", "place", "tools")

    def __init__(self, place: int, message: Message) -> None:
        self.place = place
        self.message = message
        self.calls = message.tool_calls
        self.answers: dict[int, tuple[str, ToolResult]] = {}  # by the call's number: its result and where that stood
        self.tools: list[Placed] = []  # messages of results
        self.others: list[Placed] = []

    def find(self, result: ToolResult) -> int:
        """The number of the call that a result answers, -1 for none."""
        for number, call in enumerate(self.calls):
            if number not in self.answers and result.call_id == call.id:
                return number
        if result.call_id:
            return -1
        waiting = [number for number in range(len(self.calls)) if number not in self.answers]
        named = [number for number in waiting if self.calls[number].name == result.name]
        return (named or ([] if result.name else waiting) or [-1])[0]


def are_paired(messages: Sequence[Placed]) -> bool:
    """Whether exactly the results of its calls follow every turn that called, each naming its call."""
    calls: list[str] = []
    answered: list[str] = []
    is_over = False
    for _, message in messages:
        if message.role == "assistant":
            if sorted(calls) != sorted(answered):
                return False
            calls = [part.id for part in message.parts if isinstance(part, ToolCall)]
            if len(calls) > 1 and len(set(calls)) < len(calls):
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
    """The conversation with its calls and results put right. Places are those in the request that was given."""
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
    """Give every result to its call; the places of those that have none."""
    orphans: set[tuple[int, int]] = set()
    for position, tools in enumerate([list(lead), *(turn.tools for turn in turns)]):
        for place, message in tools:
            for number, part in enumerate(message.parts):
                if not isinstance(part, ToolResult):
                    continue
                where = f"messages[{place}].parts[{number}]"
                if not _is_taken(part, where, turns[:position]):
                    deviations.append(Deviation("dropped", where, "a result without its call"))
                    orphans.add((place, number))
    return orphans


def _is_taken(result: ToolResult, where: str, turns: Sequence[_Turn]) -> bool:
    """Whether one of the turns so far, the last one first, has the call of this result."""
    for turn in reversed(turns):
        number = turn.find(result)
        if number >= 0:
            turn.answers[number] = (where, result)
            return True
    return False


def _without(item: Placed, orphans: set[tuple[int, int]]) -> Placed | None:
    """A message without orphans; None when nothing else was in it."""
    place, message = item
    parts = tuple(part for number, part in enumerate(message.parts) if (place, number) not in orphans)
    if len(parts) == len(message.parts):
        return item
    return (place, msgspec.structs.replace(message, parts=parts)) if parts else None


def _written(turn: _Turn, deviations: list[Deviation]) -> list[Placed]:
    """The turn, the results of its calls, and what followed."""
    followers = sorted([*turn.tools, *turn.others], key=lambda item: item[0])
    out: list[Placed] = [(turn.place, turn.message)]
    if are_paired([*out, *followers]):
        return [*out, *followers]
    results: list[Part] = []
    for number, call in enumerate(turn.calls):
        answer = turn.answers.get(number)
        if answer is None:
            seen = "a call without a result: one was made up"
            deviations.append(Deviation("changed", f"messages[{turn.place}]", seen))
            results.append(ToolResult(call.id, call.name, (Text(_UNANSWERED),), is_error=True))
        else:
            results.append(_named(answer[1], call))
    if results:
        out.append((turn.place, Message("tool", tuple(results))))
    for place, message in followers:
        rest = tuple(part for part in message.parts if not isinstance(part, ToolResult))
        if rest or not message.parts:
            role = "user" if message.role == "tool" and any(isinstance(part, Text) for part in rest) else message.role
            out.append((place, msgspec.structs.replace(message, role=role, parts=rest)))
    if any(where and not _stood_there(where, turn) for where, _ in turn.answers.values()):
        deviations.append(Deviation("moved", f"messages[{turn.place}]", "results stand behind their calls"))
    return out


def _stood_there(where: str, turn: _Turn) -> bool:
    """Whether a result stood among the messages right behind its turn."""
    place = int(where[len("messages[") : where.index("]")])
    first_other = min((other for other, _ in turn.others), default=place + 1)
    return any(place == tool for tool, _ in turn.tools) and place < first_other


def _named(result: ToolResult, call: ToolCall) -> ToolResult:
    """A result that says which call it answers."""
    if result.call_id == call.id and result.name == call.name:
        return result
    return msgspec.structs.replace(result, call_id=call.id, name=result.name or call.name)
