"""Refuse a request of which a target can take nothing to answer: it would be asked an empty question."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from dragoman.deviations import part_path
from dragoman.errors import UsageError
from dragoman.events import Deviation
from dragoman.types import Message, Opaque, Part, Text, Thinking, ToolResult

#: Parts that every protocol takes, if they say anything.
_SENT: Final = (Text, ToolResult)


def refuse_nothing(
    given: Sequence[Message],
    sent: Sequence[Message],
    told: Sequence[Deviation],
    earlier: Sequence[Deviation],
    target: str,
) -> None:
    """Check that something is left of the last words of the user, and of the conversation.

    Args:
        given: the client's messages.
        sent: those that were rendered for the target.
        told: what the renderer said of these.
        earlier: what was said of the client's when they were made fit.
        target: its name, for the message.

    Raises:
        UsageError: nothing is left of what was there.
    """
    sealed = _sealed(given)
    says = sent and sent[-1].role != "system" and any(type(part) in _SENT and _says(part) for part in sent[-1].parts)
    if says and not sealed:
        return  # as nearly always
    code = "dropped" if given else "untranslated"  # such as a prompt that the provider stores
    lost = {said.where: said.seen for said in told if said.code == code}
    is_gone = bool(sealed) and not any(part in sealed for part in _left(sent, lost))  # words before it ask nothing
    if not is_gone and (_asks(sent, lost) or not (lost or earlier)):
        return
    has_turns = not given or any(message.role != "system" for message in given)
    if (
        is_gone
        or _asks(given, ())
        or (has_turns and all(_is_gone(place, message, lost) for place, message in enumerate(sent)))
    ):
        found = [*_of_turn(earlier, given, code), *_of_turn(told, sent if given else (), code)]
        why = ", ".join([f"{said.where}: {said.seen}" for said in found[:2]])
        raise UsageError(f"messages: {target} can take nothing of what is asked ({why})")


def _sealed(given: Sequence[Message]) -> tuple[Part, ...]:
    """Return the parts of a last message of the user that one protocol alone knows, if it has no others."""
    parts = given[-1].parts if given and given[-1].role == "user" else ()
    return parts if parts and type(parts[0]) is Opaque and {*map(type, parts)} == {Opaque} else ()


def _left(sent: Sequence[Message], lost: Collection[str]) -> list[Part]:
    """Return the parts of the last message that were not left out."""
    place = len(sent) - 1
    parts = sent[-1].parts if sent and part_path((place,)) not in lost else ()
    return [part for number, part in enumerate(parts) if part_path((place, number)) not in lost]


def _of_turn(found: Sequence[Deviation], messages: Sequence[Message], code: str) -> list[Deviation]:
    """Return what was lost of the last turn; without messages, of all."""
    turn = {part_path((place,)) for place in range(_last_turn(messages), len(messages))}
    return [said for said in found if said.code == code and (said.where.partition(".")[0] in turn or not messages)]


def _last_turn(messages: Sequence[Message]) -> int:
    """Return where the last turn of the user begins, or of the tools that were called, or what stands behind it."""
    has_asked = False
    for place in range(len(messages) - 1, -1, -1):
        role = messages[place].role
        if has_asked and role == "assistant":
            return place + 1
        has_asked = has_asked or role in ("user", "tool")
    return 0


def _asks(messages: Sequence[Message], lost: Collection[str]) -> bool:
    """Return whether the last turn says something, or that of another that stands behind it."""
    return any(
        _says(part) and part_path((place, number)) not in lost
        for place in range(_last_turn(messages), len(messages))
        if messages[place].role != "system" and part_path((place,)) not in lost
        for number, part in enumerate(messages[place].parts)
    )


def _is_gone(place: int, message: Message, lost: Collection[str]) -> bool:
    """Return whether a message is no turn, or one that was left out."""
    if message.role == "system" or part_path((place,)) in lost:
        return True
    return bool(message.parts) and all(part_path((place, number)) in lost for number in range(len(message.parts)))


def _says(part: Part) -> bool:
    """Return whether a part says something to a model."""
    return not isinstance(part, Thinking) and not (type(part) is Text and (not part.text or part.text.isspace()))
