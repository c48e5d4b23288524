"""`fit`: the steps that make a conversation fit, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from dragoman import _json
from dragoman.codec.counterparts import as_text, is_kept_elsewhere, kind_of
from dragoman.codec.json_fields import FILE_BYTES
from dragoman.deviations import part_path
from dragoman.events import Deviation
from dragoman.history.hand_over import ThinkingPolicy, handed_over, without_seals
from dragoman.history.pair_results import are_paired, paired
from dragoman.history.stored_at_server import stored_at_server
from dragoman.history.turns import are_in_turn, in_turn
from dragoman.protocol import ANY_TURNS, TurnRules
from dragoman.types import (
    Media,
    Message,
    Opaque,
    Origin,
    Part,
    ProtocolName,
    Request,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

_IN_RESULTS: Final = (Text, Media, Opaque)
#: By role, what its messages do not contain.
_OUT_OF_PLACE: Final[dict[Role, frozenset[type]]] = {
    "assistant": frozenset({ToolResult}), "tool": frozenset({ToolCall, Thinking}),
    "user": frozenset({ToolCall, ToolResult, Thinking}), "system": frozenset({ToolCall, ToolResult, Thinking}),
}  # fmt: skip
_FOLLOWS: Final = "(The result is in the next message.)"


def fit(
    request: Request,
    *,
    protocol: ProtocolName,
    target: str | None = None,
    thinking: ThinkingPolicy = "same",
    takes_result_media: bool = True,
    turns: TurnRules = ANY_TURNS,
    client: ProtocolName | None = None,
) -> tuple[Request, tuple[Deviation, ...]]:
    """Turn the conversation of a request into one that its target accepts.

    An answer's `origin` is its source. Without one, a part or field that only one protocol knows tells the protocol; an
    answer of unknown source counts as the target's own.

    Args:
        request: is not changed; a valid conversation is returned as it is.
        protocol: the protocol in which the target is asked.
        target: `provider/model`; None: unknown, then only the protocol distinguishes answers.
        thinking: "same": thinking and signatures go back to the target that made them only; "keep": the words go to
            every target, signatures to their own; "text": for others the words become text; "drop": to none.
        takes_result_media: tool results may contain media; otherwise these follow in a message of the user.
        turns: the turns that the target accepts.
        client: the protocol of the client; another vendor has no use for signatures of unknown source.

    Returns:
        The request, and what was left out, moved or changed, each with its place in the original request.
    """
    if all(map(_is_plain, request.messages)) and (turns is ANY_TURNS or are_in_turn(request.messages, turns)):
        return request, ()
    deviations: list[Deviation] = []
    own = Origin(protocol, target)
    cleaner = _Cleaner(own, deviations, takes_result_media=takes_result_media)
    messages: list[tuple[int, Message]] = []
    for place, message in _in_place(request.messages, deviations):
        if message.is_cut:
            deviations.append(Deviation("dropped", f"messages[{place}]", "an answer that broke off"))
            continue
        if message.role == "assistant":
            message = handed_over(message, own, place, policy=thinking, deviations=deviations)
            if message.origin is None and client not in (None, protocol):
                message = without_seals(message, place, deviations, of_calls=not turns.seals_calls)
        messages.append((place, cleaner.message(message, place)))
    if not are_paired(messages) and not _goes_on_at_the_server(request, protocol):
        messages = paired(messages, deviations)
    messages = in_turn(_without_empty(messages, deviations), turns, deviations)
    fitted = tuple([message for _, message in messages])
    if not deviations and fitted == request.messages:
        return request, ()
    return msgspec.structs.replace(request, messages=fitted), tuple(deviations)


def _is_plain(message: Message) -> bool:
    """Return whether no target needs a change in a message, such as a first question."""
    if message.role not in ("user", "system") or message.is_cut:
        return False
    for part in message.parts:
        if type(part) is not Text or not part.text.isascii() or not part.text or part.text.isspace():
            return False
    return bool(message.parts)


def _goes_on_at_the_server(request: Request, protocol: ProtocolName) -> bool:
    """Return whether the provider stores the conversation, or a part, so that results may answer unseen calls."""
    if request.native is not None and request.native.protocol == protocol and stored_at_server(request.native):
        return True
    opaque = (part for message in request.messages for part in message.parts if isinstance(part, Opaque))
    return any(b'"item_reference"' in bytes(part.raw) for part in opaque)


def _in_place(messages: Sequence[Message], deviations: list[Deviation]) -> Iterator[tuple[int, Message]]:
    """Yield the messages with results in some of their own, and without calls and thinking that are no answer's."""
    for place, message in enumerate(messages):
        if _OUT_OF_PLACE[message.role].isdisjoint(map(type, message.parts)):
            yield place, message
        else:
            for parted in _parted(message, place, deviations):
                yield place, parted


def _parted(message: Message, place: int, deviations: list[Deviation]) -> list[Message]:
    strange = _OUT_OF_PLACE[message.role]
    results: list[Part] = []
    rest: list[Part] = []
    for number, part in enumerate(message.parts):
        if type(part) not in strange:
            rest.append(part)
        elif type(part) is ToolResult:
            deviations.append(Deviation("moved", part_path((place, number)), "a result is a message of its own"))
            results.append(part)
        else:
            deviations.append(
                Deviation("dropped", part_path((place, number)), f"not in a message of the role {message.role}")
            )
    made = [msgspec.structs.replace(message, parts=tuple(rest))] if rest or message.native is not None else []
    told = [Message("tool", tuple(results))] if results else []
    return (made + told if message.role == "assistant" else told + made) or [msgspec.structs.replace(message, parts=())]


# ---------------------------------------------------------------- parts


class _Cleaner:
    """Makes single parts fit. `at`: where a part stands, by the numbers of its message, of itself, of what is in it."""

    __slots__ = ("_deviations", "_own", "_takes_result_media")

    def __init__(self, own: Origin, deviations: list[Deviation], *, takes_result_media: bool) -> None:
        self._own = own
        self._takes_result_media = takes_result_media
        self._deviations = deviations

    def message(self, message: Message, place: int) -> Message:
        """Return the message with its parts as the target accepts them."""
        cleaned = tuple([self._part(part, (place, number)) for number, part in enumerate(message.parts)])
        if cleaned == message.parts:
            return message
        return msgspec.structs.replace(message, parts=tuple(part for part in cleaned if part is not None))

    def _part(self, part: Part, at: tuple[int, ...]) -> Part | None:
        """Return the part as the target accepts it, or None."""
        if type(part) is Text or type(part) is Thinking:
            return part if part.text.isascii() else self._whole(part, part.text, at)
        if type(part) is ToolCall:
            return part if part.arguments.isascii() else self._whole(part, part.arguments, at)
        if type(part) is ToolResult:
            return self._result(part, at)
        if (
            isinstance(part, Opaque)
            and part.protocol != self._own.protocol
            and as_text(part.raw, part.protocol) is None
        ):
            where = f"{part_path(at)}.<{kind_of(part.raw)}>"
            self._deviations.append(Deviation("dropped", where, f"a part that only {part.protocol} knows"))
            return None
        if type(part) is Media and is_kept_elsewhere(part, self._own.protocol):
            self._deviations.append(Deviation("dropped", part_path(at), f"{part.kind}: only its own vendor keeps it"))
            return None
        return part

    def _whole(self, part: Text | Thinking | ToolCall, text: str, at: tuple[int, ...]) -> Part:
        """Return a part whose text has no lone surrogates, which no JSON reader accepts."""
        if _json.has_whole_characters(text):
            return part
        field = "arguments" if isinstance(part, ToolCall) else "text"
        self._deviations.append(Deviation("lone-surrogate", f"{part_path(at)}.{field}"))
        return msgspec.structs.replace(part, **{field: _json.whole_characters(text)})

    def _result(self, result: ToolResult, at: tuple[int, ...]) -> ToolResult:
        cleaned = [
            self._record(inner, (*at, number)) if type(inner) is Opaque else self._part(inner, (*at, number))
            for number, inner in enumerate(result.parts)
        ]
        parts = tuple([inner for inner in cleaned if isinstance(inner, _IN_RESULTS)])
        if not self._takes_result_media and Media in map(type, parts):
            has_words = any(isinstance(inner, Text) and inner.text.strip() for inner in parts)
            parts = parts if has_words else (Text(_FOLLOWS), *parts)
        return result if parts == result.parts else msgspec.structs.replace(result, parts=parts)

    def _record(self, part: Opaque, at: tuple[int, ...]) -> Part | None:
        """Return a part of a result: a record of the tool's own, which only looks like a part, is said as its JSON."""
        if part.protocol == self._own.protocol and self._takes_result_media:
            return self._part(part, at)
        if as_text(part.raw, part.protocol) is not None or FILE_BYTES.search(bytes(part.raw)) is not None:
            return self._part(part, at)
        self._deviations.append(Deviation("changed", f"{part_path(at)}.<{kind_of(part.raw)}>", "said as its JSON"))
        return Text(_json.raw_text(part.raw))


# ---------------------------------------------------------------- empty messages


def _without_empty(messages: list[tuple[int, Message]], deviations: list[Deviation]) -> list[tuple[int, Message]]:
    """Return the messages that say something. The user's last message always stays."""
    empty = {number for number, (_, message) in enumerate(messages) if not any(map(_says, message.parts))}
    if not empty:
        return messages
    empty.discard(max((number for number, (_, message) in enumerate(messages) if message.role == "user"), default=-1))
    for number in sorted(empty):
        place, message = messages[number]
        why = "thinking alone" if any(isinstance(part, Thinking) for part in message.parts) else "an empty message"
        deviations.append(Deviation("dropped", f"messages[{place}]", why))
    return [placed for number, placed in enumerate(messages) if number not in empty]


def _says(part: Part) -> bool:
    """Return whether a message of this part alone can be sent; thinking needs an answer behind it."""
    if isinstance(part, Text):
        return bool(part.text and not part.text.isspace()) or part.signature is not None
    return not isinstance(part, Thinking)
