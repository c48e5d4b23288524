"""Turns in an order that a server takes.

Older Claude models, hosts in Anthropic's protocol and the templates of local models refuse a message of the system
within the conversation; such templates want turns that alternate, too. Claude and GPT models refuse images in answers
and in the system's messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from dragoman._json import Raw
from dragoman.deviations import clip, part_path
from dragoman.events import Deviation
from dragoman.protocol import ANY_TURNS, TurnRules
from dragoman.types import Media, Message, Native, Part, Role, Text, ToolCall

Placed: TypeAlias = tuple[int, Message]
_BETWEEN: Final = "\n\n"
_SHOWN: Final[dict[Role, str]] = {
    "assistant": "Media of the answer above:", "system": "Media of the instructions above:",
}  # fmt: skip


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
        has_media = message.role in rules.no_media and Media in map(type, message.parts)
        if has_media and any(_is_barred(part, message.role) for part in message.parts):
            return False
        last = message
    return is_begun or not rules.user or last is None


def in_turn(messages: Sequence[Placed], rules: TurnRules, deviations: list[Deviation]) -> list[Placed]:
    """Return the messages in turns that follow the rules. Places are those in the original request."""
    if rules is ANY_TURNS or are_in_turn([message for _, message in messages], rules):
        return list(messages)
    if rules.no_media:
        messages = _with_media_behind(messages, rules.no_media, deviations)
    runs: list[list[Placed]] = []
    is_begun = False
    for place, message in messages:
        if message.role != "system":
            is_begun = True
        elif is_begun and not rules.later_system:
            message = _as_user(place, message, "a later system message is said as the user's", deviations)
        if rules.alternate and runs and _joins(runs[-1][-1][1], message):
            runs[-1].append((place, message))
        else:
            runs.append([(place, message)])
    out = [_joined(run, deviations) for run in runs]
    if out and not is_begun and rules.user:
        place, message = out[-1]
        out[-1] = (place, _as_user(place, message, "the only message is said as the user's", deviations))
    return out


def _is_barred(part: Part, role: Role) -> bool:
    """Return whether a message of this role may not have a part. An answer's sound is said by its id."""
    return type(part) is Media and (role != "assistant" or part.kind in ("image", "document"))


def _with_media_behind(
    messages: Sequence[Placed], roles: tuple[Role, ...], deviations: list[Deviation]
) -> list[Placed]:
    """Return the messages with the media of these roles in messages of the user.

    They stand behind the results of an answer's calls, and behind all messages of the system in a row.
    """
    out: list[Placed] = []
    held: list[Part] = []
    source = 0  # the place of the last message with media, and its role
    role: Role = "assistant"
    for place, message in messages:
        if held and message.role != ("tool" if role == "assistant" else role):
            out.append((source, Message("user", (Text(_SHOWN[role]), *held))))
            held = []
        if message.role in roles:
            seen = [(number, part) for number, part in enumerate(message.parts) if _is_barred(part, message.role)]
            for number, part in seen:
                deviations.append(Deviation("moved", part_path((place, number)), "into a message of the user"))
                held.append(part)
                source, role = place, message.role
            parts = tuple([part for part in message.parts if not _is_barred(part, message.role)])
            if not parts:
                fields = message.native.fields if message.native is not None else ()
                deviations += [
                    Deviation("dropped", f"messages[{place}].{clip(key)}", "no words are left") for key in fields
                ]
                continue
            message = msgspec.structs.replace(message, parts=parts) if seen else message
        out.append((place, message))
    return [*out, (source, Message("user", (Text(_SHOWN[role]), *held)))] if held else out


def _as_user(place: int, message: Message, why: str, deviations: list[Deviation]) -> Message:
    deviations.append(Deviation("changed", f"messages[{place}].role", why))
    return msgspec.structs.replace(message, role="user")


def _joins(one: Message, other: Message) -> bool:
    """Return whether two neighbours are one turn. Calls must be followed by results."""
    if one.role != other.role or one.role == "tool":
        return False
    return not any(type(part) is ToolCall for part in one.parts)


def _joined(run: Sequence[Placed], deviations: list[Deviation]) -> Placed:
    """Return neighbours as one turn. Plain texts on either side of a border are one text."""
    first_place, first = run[0]
    if len(run) == 1:
        return run[0]
    parts: list[Part] = []
    words: list[str] = []  # of the text that is not among the parts yet
    for place, message in run:
        rest = message.parts
        if message is not first:
            deviations.append(Deviation("changed", f"messages[{place}]", "joined with the turn before it", "note"))
        if words and rest and _is_plain(rest[0]):
            words.append(_text(rest[0]))
            rest = rest[1:]
        if rest:
            parts += [Text(_BETWEEN.join(words))] if words else []
            words = [_text(rest[-1])] if _is_plain(rest[-1]) else []
            parts += rest[:-1] if words else rest
    parts += [Text(_BETWEEN.join(words))] if words else []
    return first_place, msgspec.structs.replace(first, parts=tuple(parts), native=_native(run, deviations))


def _native(run: Sequence[Placed], deviations: list[Deviation]) -> Native | None:
    """Return the other fields of a joined turn: those that all have, such as who speaks; the model's also of one."""
    first = run[0][1]
    known = next((message.native for _, message in run if message.native is not None), None)
    if known is None or all(message.native == first.native for _, message in run):
        return first.native
    fields = [(place, _fields(message, known)) for place, message in run]
    kept: dict[str, Raw] = {}
    count = Counter[str]()
    for _, told in fields:
        for name, raw in told.items():
            count[name] += kept.setdefault(name, raw) == raw
    is_model = first.role == "assistant"
    tellers = Counter(name for _, told in fields for name in told)
    kept = {name: raw for name, raw in kept.items() if count[name] == (tellers[name] if is_model else len(run))}
    why = "it is said of one of the turns that were joined"
    for place, told in fields:
        deviations += [
            Deviation("dropped", f"messages[{place}].{clip(name)}", why, "note") for name in told if name not in kept
        ]
    return Native(known.protocol, kept) if kept else None


def _fields(message: Message, known: Native) -> dict[str, Raw]:
    native = message.native
    return native.fields if native is not None and native.protocol == known.protocol else {}


def _is_plain(part: Part) -> bool:
    return isinstance(part, Text) and part.native is None and part.signature is None


def _text(part: Part) -> str:
    return part.text if isinstance(part, Text) else ""
