"""`fit`: the steps that make a conversation fit, in order."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Literal

import msgspec

from dragoman import _json
from dragoman.events import Deviation
from dragoman.history.answers import ThinkingPolicy, handed_over
from dragoman.history.turns import paired
from dragoman.types import (
    Media,
    Message,
    Opaque,
    Origin,
    Part,
    ProtocolName,
    Request,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

MediaKind = Literal["image", "audio", "video", "document"]

#: Protocols whose results are text only: their media follow in a message of the user.
_TEXT_RESULTS: Final[tuple[ProtocolName, ...]] = ("openai-chat", "ollama-chat")
#: Fields of a request that name a conversation at the server.
_STATE: Final = ("previous_response_id", "conversation")
_FOLLOWS: Final = "(The result is in the next message.)"


def fit(
    request: Request,
    *,
    protocol: ProtocolName,
    target: str | None = None,
    thinking: ThinkingPolicy = "same",
    media: Collection[MediaKind] | None = None,
) -> tuple[Request, tuple[Deviation, ...]]:
    """Make the conversation of a request one that its target takes.

    An answer's `origin` says who said it. Without one, a part or field that only one protocol knows tells the
    protocol; an answer of which nothing is known counts as the target's own.

    Args:
        request: is not changed; a healthy conversation comes back as it is.
        protocol: the language in which the target is asked.
        target: `provider/model`; None is not known, then only the protocol tells answers apart.
        thinking: "same": thinking and seals go back to the target that made them and to no other; "keep": its words go
            to every target, seals to their own; "text": for other targets its words become text; "drop": to nobody.
        media: kinds that the target takes; the others become a line of text. None: all.

    Returns:
        The request, and what was left out, moved or changed, each at its place in the request that was given.
    """
    deviations: list[Deviation] = []
    own = Origin(protocol, target)
    messages: list[tuple[int, Message]] = []
    for place, message in enumerate(request.messages):
        where = f"messages[{place}]"
        if message.is_cut:
            deviations.append(Deviation("dropped", where, "an answer that broke off"))
            continue
        if message.role == "assistant":
            message = handed_over(message, own, where, policy=thinking, deviations=deviations)
        message = _clean(message, where, _Cleaner(own, media, deviations))
        messages.append((place, message))
    if not _goes_on_at_the_server(request):
        messages = paired(messages, deviations)
    fitted = tuple(_without_empty(messages, deviations))
    if not deviations and fitted == request.messages:
        return request, ()
    return msgspec.structs.replace(request, messages=fitted), tuple(deviations)


def _goes_on_at_the_server(request: Request) -> bool:
    """Whether the provider holds the conversation before, or parts of it, so that results answer calls unseen here."""
    fields = request.native.fields if request.native is not None else {}
    if any(bytes(fields.get(name, b"null")) != b"null" for name in _STATE):
        return True
    opaque = (part for message in request.messages for part in message.parts if isinstance(part, Opaque))
    return any(b'"item_reference"' in bytes(part.raw) for part in opaque)


# ---------------------------------------------------------------- parts


class _Cleaner:
    """Makes single parts fit."""

    __slots__ = ("_deviations", "_media", "_own")

    def __init__(self, own: Origin, media: Collection[MediaKind] | None, deviations: list[Deviation]) -> None:
        self._own = own
        self._media = media
        self._deviations = deviations

    def part(self, part: Part, where: str) -> Part | None:
        """The part as the target takes it; None when it takes it not at all."""
        match part:
            case Text(text) | Thinking(text) if text and not text.isascii():
                whole = self._text(text, f"{where}.text")
                return part if whole is text else msgspec.structs.replace(part, text=whole)
            case ToolCall(_, _, arguments) if not arguments.isascii():
                whole = self._text(arguments, f"{where}.arguments")
                return part if whole is arguments else msgspec.structs.replace(part, arguments=whole)
            case Media(kind) if self._media is not None and kind not in self._media:
                self._deviations.append(Deviation("changed", where, f"the model takes no {kind}"))
                return Text(f"({kind} left out: the model cannot read it)")
            case Opaque(protocol) if protocol != self._own.protocol:
                self._deviations.append(Deviation("dropped", where, f"a part that only {protocol} knows"))
                return None
            case ToolResult():
                return self._result(part, where)
            case _:
                pass
        return part

    def _text(self, text: str, where: str) -> str:
        """Text without half surrogate pairs, which no JSON reader takes."""
        if _json.has_whole_characters(text):
            return text
        self._deviations.append(Deviation("lone-surrogate", where))
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def _result(self, result: ToolResult, where: str) -> ToolResult:
        parts: list[Text | Media | Opaque] = []
        for number, inner in enumerate(result.parts):
            cleaned = self.part(inner, f"{where}.parts[{number}]")
            if isinstance(cleaned, Text | Media | Opaque):
                parts.append(cleaned)
        has_words = any(isinstance(inner, Text) and inner.text.strip() for inner in parts)
        if any(isinstance(inner, Media) for inner in parts) and not has_words and self._own.protocol in _TEXT_RESULTS:
            parts.insert(0, Text(_FOLLOWS))
        return result if tuple(parts) == result.parts else msgspec.structs.replace(result, parts=tuple(parts))


def _clean(message: Message, where: str, cleaner: _Cleaner) -> Message:
    cleaned = [cleaner.part(part, f"{where}.parts[{number}]") for number, part in enumerate(message.parts)]
    parts = tuple(part for part in cleaned if part is not None)
    if len(parts) == len(message.parts) and all(new is old for new, old in zip(parts, message.parts, strict=True)):
        return message
    return msgspec.structs.replace(message, parts=parts)


# ---------------------------------------------------------------- empty messages


def _without_empty(messages: list[tuple[int, Message]], deviations: list[Deviation]) -> list[Message]:
    """Messages that say something; the last of the user's stays, whatever it says."""
    last = max((number for number, (_, message) in enumerate(messages) if message.role == "user"), default=-1)
    kept: list[Message] = []
    for number, (place, message) in enumerate(messages):
        if number != last and not any(map(_says, message.parts)):
            why = "thinking alone" if any(isinstance(part, Thinking) for part in message.parts) else "an empty message"
            deviations.append(Deviation("dropped", f"messages[{place}]", why))
        else:
            kept.append(message)
    return kept


def _says(part: Part) -> bool:
    """Whether a message of this part alone can be sent; thinking needs an answer behind it."""
    if isinstance(part, Text):
        return bool(part.text.strip()) or part.signature is not None
    return not isinstance(part, Thinking)
