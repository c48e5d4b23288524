"""Seals kept for clients whose protocol has no field for them, or which do not send them back.

Gemini refuses a step whose first call lacks the thought signature that came with it, Anthropic a call whose signed
thinking is missing. The vault keeps both, and puts them back when the client returns the call.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias, final

import msgspec

from dragoman import _json
from dragoman.events import Event, Finish, Fold, TextDelta, ToolCallDelta
from dragoman.types import Message, Origin, Part, Request, Text, Thinking, ToolCall

#: Calls that are remembered, and the characters of their seals and thinking.
MOST_CALLS: Final = 20_000
MOST_SIZE: Final = 64 * 1024 * 1024
#: Shorter ids (`call_0`) do not name a call beyond their conversation.
_TELLING: Final = 16

_Key: TypeAlias = tuple[str, ...]


@final
class _Seal(msgspec.Struct, frozen=True):
    """What one call lost. `thinking`: the sealed thinking of its turn, kept with the turn's first call."""

    origin: Origin
    signature: str | None = None
    thinking: tuple[Thinking, ...] = ()

    def size(self) -> int:
        return len(self.signature or "") + sum(
            len(part.text) + len(part.signature or "") + len(part.redacted or "") for part in self.thinking
        )


class SignatureVault:
    """Remembers seals by call: by its id, and for clients that change or drop ids by name, arguments and place.

    The place is the conversation before the call, as its user told it, so that no seal gets into another conversation.
    Bounded: the oldest are forgotten. For one event loop or thread; nothing is written anywhere.
    """

    __slots__ = ("_most_calls", "_most_size", "_seals", "_size")

    def __init__(self, *, most_calls: int = MOST_CALLS, most_size: int = MOST_SIZE) -> None:
        self._most_calls = most_calls
        self._most_size = most_size
        self._seals: OrderedDict[_Key, _Seal] = OrderedDict()
        self._size = 0

    def note(self, request: Request, answer: Message) -> None:
        """Remember the seals of an answer to this request, whose origin is known."""
        if answer.origin is None:
            return
        place = _Place()
        for message in request.messages:
            place.add(message)
        for text in _seals_in(answer):
            self._put(("seal", _digest(text)), _Seal(answer.origin))
        sealed = tuple(part for part in answer.parts if isinstance(part, Thinking) and _is_sealed_thinking(part))
        for number, call in enumerate(answer.tool_calls):
            seal = _Seal(answer.origin, call.signature, sealed if number == 0 else ())
            if seal.signature or seal.thinking:
                for key in _keys(call, number, place.name()):
                    self._put(key, seal)

    def watch(self, request: Request) -> Watch:
        """Reads the events of the answer to this request, and notes their seals at its end."""
        return Watch(self, request)

    def restore(self, request: Request) -> Request:
        """The request with what its answers lost, and with the origin of those that are known."""
        messages: list[Message] = []
        place = _Place()
        for message in request.messages:
            messages.append(self._restored(message, place) if message.role == "assistant" else message)
            place.add(message)
        if all(new is old for new, old in zip(messages, request.messages, strict=True)):
            return request
        return msgspec.structs.replace(request, messages=tuple(messages))

    def _restored(self, message: Message, place: _Place) -> Message:
        calls = message.tool_calls
        found = [self._find(call, number, place.name()) for number, call in enumerate(calls)]
        kept = (self._seals.get(("seal", _digest(text))) for text in _seals_in(message))
        known = next((seal.origin for seal in (*kept, *found) if seal is not None), None)
        origin = message.origin or known
        if origin is None or origin != known:
            return message
        seals = iter(found)
        parts = [_signed(part, next(seals), origin) if isinstance(part, ToolCall) else part for part in message.parts]
        first = found[0] if found else None
        if first is not None and first.origin == origin and first.thinking and not any(map(_is_sealed_thinking, parts)):
            parts = [*first.thinking, *(part for part in parts if not isinstance(part, Thinking))]
        if origin == message.origin and tuple(parts) == message.parts:
            return message
        return msgspec.structs.replace(message, parts=tuple(parts), origin=origin)

    def _find(self, call: ToolCall, number: int, place: str) -> _Seal | None:
        for key in _keys(call, number, place):
            seal = self._seals.get(key)
            if seal is not None:
                self._seals.move_to_end(key)
                return seal
        return None

    def _put(self, key: _Key, seal: _Seal) -> None:
        old = self._seals.pop(key, None)
        self._size += seal.size() - (old.size() if old is not None else 0)
        self._seals[key] = seal
        while len(self._seals) > 2 * self._most_calls or self._size > self._most_size:
            _, oldest = self._seals.popitem(last=False)
            self._size -= oldest.size()


def _keys(call: ToolCall, number: int, place: str) -> Iterator[_Key]:
    """The names of a call, the surest first. `number`: its place among the calls of its turn."""
    if len(call.id) >= _TELLING:
        yield ("id", call.id, call.name)
    elif call.id:
        yield ("id", call.id, call.name, place)
    yield ("call", call.name, _canonical(call), str(number), place)


def _canonical(call: ToolCall) -> str:
    """The arguments in one form for all ways to write them."""
    value = _json.decode_object(call.arguments) if call.kind == "function" else call.arguments
    return call.arguments if isinstance(value, _json.Malformed) else _digest(_json.to_text(_sorted(value)))


def _sorted(value: object) -> object:
    if isinstance(value, dict):
        return {key: _sorted(inner) for key, inner in sorted(value.items())}
    return [_sorted(inner) for inner in value] if isinstance(value, list) else value


class _Place:
    """The conversation so far, by what clients do not change: the user's words and how many answers there were."""

    __slots__ = ("_answers", "_words")

    def __init__(self) -> None:
        self._words = hashlib.sha256()
        self._answers = 0

    def add(self, message: Message) -> None:
        if message.role == "assistant":
            self._answers += 1
        elif message.role == "user":
            data = message.text.encode("utf-8", "replace")
            self._words.update(len(data).to_bytes(8, "big") + data)

    def name(self) -> str:
        return f"{self._answers} {self._words.hexdigest()}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _signed(call: ToolCall, seal: _Seal | None, origin: Origin) -> ToolCall:
    if seal is None or seal.signature is None or call.signature is not None or seal.origin != origin:
        return call
    return msgspec.structs.replace(call, signature=seal.signature)


def _is_sealed_thinking(part: Part) -> bool:
    return isinstance(part, Thinking) and bool(part.signature or part.redacted)


def _seals_in(message: Message) -> Iterator[str]:
    """The seals of an answer."""
    for part in message.parts:
        if isinstance(part, Thinking) and part.redacted:
            yield part.redacted
        if isinstance(part, Thinking | Text | ToolCall) and part.signature:
            yield part.signature


class Watch:
    """Notes the seals of one answer while its events pass. Text and argument fragments are not kept."""

    __slots__ = ("_fold", "_request", "_vault")

    def __init__(self, vault: SignatureVault, request: Request) -> None:
        self._vault = vault
        self._request = request
        self._fold = Fold()

    def add(self, events: Iterable[Event]) -> None:
        """Take the next events; the last one notes."""
        for event in events:
            kind = type(event)
            if kind is TextDelta or kind is ToolCallDelta:
                continue
            self._fold.add(event)
            if kind is Finish:
                self._vault.note(self._request, self._fold.reply().message)
