"""Turns in an order that a server takes.

Older Claude models, hosts in Anthropic's protocol and the templates of local models refuse a message of the system
within the conversation; such templates want turns that alternate, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from dragoman.events import Deviation
from dragoman.protocol import ANY_TURNS, TurnRules
from dragoman.types import Message, Part, Text, ToolCall

Placed: TypeAlias = tuple[int, Message]
_BETWEEN: Final = "\n\n"


def are_in_turn(messages: Sequence[Message], rules: TurnRules) -> bool:
    """Return whether the turns follow the rules already, as in most conversations."""
    last = None
    is_begun = False
    for message in messages:
        if message.role != "system":
            is_begun = True
        elif is_begun and not rules.later_system:
            return False
        if rules.alternate and last is not None and _joins(last, message):
            return False
        last = message
    return is_begun or not rules.user or last is None


def in_turn(messages: Sequence[Placed], rules: TurnRules, deviations: list[Deviation]) -> list[Placed]:
    """Return the messages in turns that follow the rules. Places are those in the original request."""
    if rules is ANY_TURNS or are_in_turn([message for _, message in messages], rules):
        return list(messages)
    out: list[Placed] = []
    is_begun = False
    for place, message in messages:
        if message.role != "system":
            is_begun = True
        elif is_begun and not rules.later_system:
            message = _as_user(place, message, "a later system message is said as the user's", deviations)
        if rules.alternate and out and _joins(out[-1][1], message):
            out[-1] = (out[-1][0], _joined(out[-1][1], message))
            deviations.append(Deviation("changed", f"messages[{place}]", "joined with the turn before it", "note"))
        else:
            out.append((place, message))
    if out and not is_begun and rules.user:
        place, message = out[-1]
        out[-1] = (place, _as_user(place, message, "the only message is said as the user's", deviations))
    return out


def _as_user(place: int, message: Message, why: str, deviations: list[Deviation]) -> Message:
    deviations.append(Deviation("changed", f"messages[{place}].role", why))
    return msgspec.structs.replace(message, role="user")


def _joins(one: Message, other: Message) -> bool:
    """Return whether two neighbours are one turn. Calls must be followed by results."""
    if one.role != other.role or one.role == "tool":
        return False
    return not any(type(part) is ToolCall for part in one.parts)


def _joined(one: Message, other: Message) -> Message:
    parts: tuple[Part, ...] = (*one.parts, *other.parts)
    last, first = one.parts[-1:], other.parts[:1]
    if last and first and _is_plain(last[0]) and _is_plain(first[0]):
        text = f"{_text(last[0])}{_BETWEEN}{_text(first[0])}"
        parts = (*one.parts[:-1], Text(text), *other.parts[1:])
    return msgspec.structs.replace(one, parts=parts, native=one.native or other.native)


def _is_plain(part: Part) -> bool:
    return isinstance(part, Text) and part.native is None and part.signature is None


def _text(part: Part) -> str:
    return part.text if isinstance(part, Text) else ""
