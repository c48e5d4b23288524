"""What of an earlier answer goes to the target: all of it to its author, words and calls to any other."""

from __future__ import annotations

from operator import is_
from typing import Literal, TypeAlias

import msgspec

from dragoman.deviations import clip
from dragoman.events import Deviation
from dragoman.types import Media, Message, Native, Opaque, Origin, Part, ProtocolName, Text, Thinking, ToolCall

ThinkingPolicy: TypeAlias = Literal["same", "keep", "text", "drop"]


def handed_over(
    message: Message, target: Origin, turn: int, *, policy: ThinkingPolicy, deviations: list[Deviation]
) -> Message:
    """Return an answer as the target may see it. `turn` is its place."""
    is_own = _is_own(message, target)
    if is_own and policy != "drop":
        return message
    parts: list[Part] = []
    for number, part in enumerate(message.parts):
        place = f"messages[{turn}].parts[{number}]"
        if isinstance(part, Thinking):
            words = _words(part, policy)
            parts += [] if words is None else [words]
            if words is None:
                why = "thinking is not handed over" if policy == "drop" else "thinking of another model"
                deviations.append(Deviation("dropped", place, why))
            elif part.signature or part.redacted:
                deviations.append(Deviation("dropped", f"{place}.signature", "a seal of another model"))
        elif isinstance(part, Opaque):
            parts.append(part)
        else:
            parts.append(part if is_own else _unsealed(part, place, target.protocol, deviations))
    if tuple(parts) == message.parts:
        return message
    native = message.native if is_own else _unowned(message.native, target.protocol, f"messages[{turn}]", deviations)
    return msgspec.structs.replace(message, parts=tuple(parts), native=native)


def without_seals(message: Message, turn: int, deviations: list[Deviation], *, of_calls: bool) -> Message:
    """Return an answer without signatures of unknown origin: those of thinking, and of calls and texts if told."""
    sealed = (Thinking, Text, ToolCall) if of_calls else (Thinking,)
    parts: list[Part] = []
    for number, part in enumerate(message.parts):
        if not isinstance(part, sealed) or not (part.signature or (type(part) is Thinking and part.redacted)):
            parts.append(part)
            continue
        where = f"messages[{turn}].parts[{number}].signature"
        deviations.append(Deviation("dropped", where, "a seal of nobody that is known"))
        if type(part) is not Thinking:
            parts.append(msgspec.structs.replace(part, signature=None))
        elif part.text:
            parts.append(Thinking(part.text, native=part.native))
    same = len(parts) == len(message.parts) and all(map(is_, parts, message.parts))
    return message if same else msgspec.structs.replace(message, parts=tuple(parts))


def _words(part: Thinking, policy: ThinkingPolicy) -> Thinking | Text | None:
    """Return thinking for a target that is not its author."""
    if not part.text.strip() or policy in ("same", "drop"):
        return None
    return Thinking(part.text) if policy == "keep" else Text(part.text)


def _unsealed(part: Part, place: str, protocol: ProtocolName, deviations: list[Deviation]) -> Part:
    """Return a part without what only its own model reads: its signature, and ids of the provider's store."""
    if not isinstance(part, Text | ToolCall | Media):
        return part
    if not isinstance(part, Media) and part.signature is not None:
        deviations.append(Deviation("dropped", f"{place}.signature", "a seal of another model"))
        part = msgspec.structs.replace(part, signature=None)
    native = _unowned(part.native, protocol, place, deviations)
    return part if part.native is native else msgspec.structs.replace(part, native=native)


def _unowned(native: Native | None, protocol: ProtocolName, place: str, deviations: list[Deviation]) -> Native | None:
    """Return the other fields of another model's answer. Those of another protocol are named when they are dropped."""
    if native is None or native.protocol != protocol:
        return native
    deviations += [
        Deviation("dropped", f"{place}.{clip(name)}", "of another model's answer", "note") for name in native.fields
    ]
    return None


def _is_own(message: Message, target: Origin) -> bool:
    """Return whether the target gave this answer, as far as is known."""
    origin = message.origin
    if origin is None:
        protocols = _protocols(message)
        return not protocols or target.protocol in protocols
    if origin.protocol != target.protocol:
        return False
    return origin.target is None or target.target is None or origin.target == target.target


def _protocols(message: Message) -> set[ProtocolName]:
    """Return the protocols that left traces in a message."""
    found = {message.native.protocol} if message.native is not None else set()
    for part in message.parts:
        if isinstance(part, Opaque):
            found.add(part.protocol)
        elif part.native is not None:
            found.add(part.native.protocol)
    return found
