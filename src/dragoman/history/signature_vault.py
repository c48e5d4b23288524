"""Keep signatures for clients whose protocol has no field for them, or which do not send them back.

Gemini refuses a step whose first call lacks its thought signature, Anthropic a call whose signed thinking is missing. A
vault keeps both, and puts them back when the client returns the call.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Final, Protocol, final

import msgspec

from dragoman import _json
from dragoman.events import (
    EVERY_KIND,
    Deviation,
    Event,
    Finish,
    TextDelta,
    TextEnd,
    ThinkingEnd,
    ToolCallDelta,
    ToolCallEnd,
    UsageUpdate,
    fold,
)
from dragoman.gathered import GatheredRuns
from dragoman.types import Message, Origin, Part, Request, Text, Thinking, ToolCall

#: Calls that are remembered, and the characters of their seals and thinking.
MOST_CALLS: Final = 20_000
MOST_SIZE: Final = 64 * 1024 * 1024
#: Shorter ids (`call_0`) do not name a call beyond their conversation.
_TELLING: Final = 16


@final
class Seal(msgspec.Struct, frozen=True):
    """What one call lost.

    `thinking`: the signed thinking of its turn. It is kept with the turn's first call, and with its first signature
    where most clients have no place for some of it.
    """

    origin: Origin
    signature: str | None = None
    thinking: tuple[Thinking, ...] = ()

    def size(self) -> int:
        """Return its number of characters."""
        return len(self.signature or "") + sum(
            len(part.text) + len(part.signature or "") + len(part.redacted or "") for part in self.thinking
        )


class Vault(Protocol):
    """Keeps signatures by owner (whose conversations they are) and call.

    A call is found by its id and, for clients that change or drop ids, by its name, arguments and place. No owner ever
    gets another's.
    """

    async def restored(self, request: Request, owner: str) -> Request:
        """Return the request with what its answers lost, and with the origin of known answers."""
        ...

    def keep(self, owner: str, seals: Mapping[str, Seal]) -> Awaitable[None] | None:
        """Keep signatures, each by its key. Return what to await, or None if it is done."""
        ...


class SignatureVault:
    """A vault in memory that drops the oldest signatures. For one event loop or thread."""

    __slots__ = ("_most_calls", "_most_size", "_seals", "_size")

    def __init__(self, *, most_calls: int = MOST_CALLS, most_size: int = MOST_SIZE) -> None:
        self._most_calls = most_calls
        self._most_size = most_size
        self._seals: OrderedDict[tuple[str, str], Seal] = OrderedDict()
        self._size = 0

    def note(self, request: Request, answer: Message, owner: str = "") -> None:
        """Keep the signatures of an answer to this request, whose origin is known."""
        self.keep(owner, seals_of(Place(request.messages), answer))

    def watch(self, request: Request, owner: str = "") -> SignatureWatch:
        """Return a reader of the answer's events that keeps their signatures at the end."""
        return SignatureWatch(self, request, owner)

    def restore(self, request: Request, owner: str = "") -> Request:
        """Return the request with what its answers lost, and with the origin of known answers."""

        def find(key: str) -> Seal | None:
            seal = self._seals.get((owner, key))
            if seal is not None:
                self._seals.move_to_end((owner, key))
            return seal

        return put_back(request, find) if self._seals else request

    async def restored(self, request: Request, owner: str) -> Request:
        """As `restore`."""
        return self.restore(request, owner)

    def keep(self, owner: str, seals: Mapping[str, Seal]) -> None:
        """Keep signatures, each by its key."""
        for key, seal in seals.items():
            old = self._seals.pop((owner, key), None)
            self._size += seal.size() - (old.size() if old is not None else 0)
            self._seals[owner, key] = seal
        while len(self._seals) > 2 * self._most_calls or self._size > self._most_size:
            _, oldest = self._seals.popitem(last=False)
            self._size -= oldest.size()


def seals_of(place: Place, answer: Message) -> dict[str, Seal]:
    """Return what to keep of an answer at this place, by key; nothing if its origin is unknown."""
    found: dict[str, Seal] = {}
    if answer.origin is None:
        return found
    for text in _seals_in(answer):
        found[_key("seal", text)] = Seal(answer.origin)
    sealed = tuple(part for part in answer.parts if isinstance(part, Thinking) and _seal_of(part))
    signed = next((part.signature for part in sealed if part.signature), None)
    if signed is not None and any(part.redacted for part in sealed):  # most protocols have no place for the latter
        found[_key("seal", signed)] = Seal(answer.origin, thinking=sealed)
    calls = [
        (number, call, Seal(answer.origin, call.signature, sealed if number == 0 else ()))
        for number, call in enumerate(answer.tool_calls)
    ]
    if not any(seal.signature or seal.thinking for _, _, seal in calls):
        return found
    for number, call, seal in calls:
        if seal.signature or seal.thinking:
            found |= dict.fromkeys(_keys(call, number, place.name()), seal)
    return found


def keys_of(request: Request) -> list[str]:
    """Return the keys under which the signatures of this request's answers may have been kept."""
    keys: list[str] = []
    for _, message, place in _answers(request):
        keys += [_key("seal", text) for text in _seals_in(message)]
        for number, call in enumerate(message.tool_calls):
            keys += _keys(call, number, place)
    return keys


def put_back(request: Request, find: Callable[[str], Seal | None]) -> Request:
    """Return the request with its answers' signatures put back. `find` returns the one of a key."""
    messages = list(request.messages)
    for number, message, place in _answers(request):
        messages[number] = _restored(message, place, find)
    if all(new is old for new, old in zip(messages, request.messages, strict=True)):
        return request
    return msgspec.structs.replace(request, messages=tuple(messages))


def _answers(request: Request) -> Iterator[tuple[int, Message, str]]:
    """Yield the answers in a request, each with its number and its place."""
    place = Place()
    for number, message in enumerate(request.messages):
        if message.role == "assistant":
            yield number, message, place.name()
        place.add(message)


def _restored(message: Message, place: str, find: Callable[[str], Seal | None]) -> Message:
    found = [
        next(filter(None, map(find, _keys(call, number, place))), None)
        for number, call in enumerate(message.tool_calls)
    ]
    kept = [find(_key("seal", text)) for text in _seals_in(message)]
    known = next((seal.origin for seal in (*kept, *found) if seal is not None), None)
    origin = message.origin or known
    if origin is None or origin != known:
        return message
    by_call = iter(found)
    parts = [_signed(part, next(by_call), origin) if isinstance(part, ToolCall) else part for part in message.parts]
    for seal in (*found[:1], *kept):
        if seal is not None and seal.origin == origin and seal.thinking:
            parts = _with_left_out(parts, seal.thinking)
            break
    if origin == message.origin and tuple(parts) == message.parts:
        return message
    return msgspec.structs.replace(message, parts=tuple(parts), origin=origin)


def _with_left_out(parts: list[Part], kept: Sequence[Thinking]) -> list[Part]:
    """Return the parts with the sealed thinking that a client left out, all of it or some.

    A part of it stands behind the one that it followed. Where the client has other seals too, nothing is put back.
    """
    own = {seal for part in parts if (seal := _seal_of(part))}
    if not own:
        return [*kept, *(part for part in parts if not isinstance(part, Thinking))]
    if not own < {_seal_of(part) for part in kept}:
        return parts
    behind: dict[str, list[Part]] = {"": []}
    last = ""
    for thinking in kept:
        if (seal := _seal_of(thinking)) in own:
            last = seal
        else:
            behind.setdefault(last, []).append(thinking)
    whole = behind[""]
    for part in parts:
        whole += [part, *behind.pop(_seal_of(part) or " ", ())]
    return whole


def _keys(call: ToolCall, number: int, place: str) -> Iterator[str]:
    """Yield the keys of a call, the most certain first. `number`: its place among the calls of its turn."""
    if len(call.id) >= _TELLING:
        yield _key("id", call.id, call.name)
    elif call.id:
        yield _key("id", call.id, call.name, place)
    yield _key("call", call.name, _canonical(call), str(number), place)


def _key(*names: str) -> str:
    return _digest("\0".join(names))


def _canonical(call: ToolCall) -> str:
    """Return the arguments in one form for all ways to write them."""
    value = _json.decode_object(call.arguments) if call.kind == "function" else call.arguments
    return call.arguments if isinstance(value, _json.Malformed) else _json.to_text(_sorted(value))


def _sorted(value: object) -> object:
    if isinstance(value, dict):
        return {key: _sorted(inner) for key, inner in sorted(value.items())}
    return [_sorted(inner) for inner in value] if isinstance(value, list) else value


class Place:
    """The conversation so far, by what clients do not change: the user's words and the number of answers.

    Words are read when the name is needed, which is rare.
    """

    __slots__ = ("_answers", "_read", "_words")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._answers = 0
        self._words: list[str] = []
        self._read: hashlib._Hash | None = None
        for message in messages:
            self.add(message)

    def add(self, message: Message) -> None:
        """Add the next message."""
        if message.role == "assistant":
            self._answers += 1
        elif message.role == "user":
            self._words.append(message.text)

    def name(self) -> str:
        """Return the place's name."""
        self._read = read = self._read or hashlib.sha256()
        for text in self._words:
            data = text.encode("utf-8", "replace")
            read.update(len(data).to_bytes(8, "big") + data)
        self._words.clear()
        return f"{self._answers} {read.hexdigest()}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _signed(call: ToolCall, seal: Seal | None, origin: Origin) -> ToolCall:
    if seal is None or seal.signature is None or call.signature is not None or seal.origin != origin:
        return call
    return msgspec.structs.replace(call, signature=seal.signature)


def _seal_of(part: Part) -> str:
    """Return the seal of thinking, "" for other parts and for thinking without one."""
    return part.signature or part.redacted or "" if isinstance(part, Thinking) else ""


def _seals_in(message: Message) -> Iterator[str]:
    """Yield the signatures of an answer."""
    for part in message.parts:
        if isinstance(part, Thinking) and part.redacted:
            yield part.redacted
        if isinstance(part, Thinking | Text | ToolCall) and part.signature:
            yield part.signature


#: Events that tell nothing of seals.
_UNNOTED: Final = frozenset[type]({TextDelta, ToolCallDelta, UsageUpdate, Deviation})
_is_noted: Final = (EVERY_KIND - _UNNOTED).__contains__
#: Events that may tell a seal.
_ENDS: Final = frozenset({TextEnd, ThinkingEnd, ToolCallEnd})


class SignatureWatch:
    """Keeps the signatures of one answer, if it has any. Text and argument fragments are not kept."""

    __slots__ = ("_events", "_keeping", "_owner", "_place", "_seals", "_vault")

    def __init__(self, vault: Vault, request: Request, owner: str = "") -> None:
        self._vault = vault
        self._place = Place(request.messages)  # not the request, which may be large and the answer long
        self._owner = owner
        self._events: GatheredRuns[Event] = GatheredRuns()
        self._seals: Mapping[str, Seal] = {}  # of the whole answer, that the vault was not given
        self._keeping: Awaitable[None] | None = None

    def keep(self) -> Awaitable[None] | None:
        """Give the vault the signatures of a complete answer, once, in the vault's thread (`add` may run in another).

        Return what to await before the client sees the answer's end, so that its next request finds the signatures, or
        None.
        """
        if self._seals:
            self._keeping = self._vault.keep(self._owner, self._seals)
            self._seals = {}
        return self._keeping

    def add(self, events: Sequence[Event]) -> None:
        """Take the next events. With the last one the signatures are known."""
        if not events:
            return
        is_over = type(events[-1]) is Finish
        if is_over and not self._events and not _is_any_sealed(events):
            return  # as a whole answer mostly comes
        noted = compress(events, map(_is_noted, map(type, events)))
        for event in noted:
            self._events.add(event)
        if is_over and _is_any_sealed(events := self._events.items):
            self._seals = seals_of(self._place, fold(events).message)


def _is_any_sealed(events: Sequence[Event]) -> bool:
    return any(map(_is_sealed, compress(events, map(_ENDS.__contains__, map(type, events)))))


def _is_sealed(event: Event) -> bool:
    """Return whether a part that ends carries what a provider wants back."""
    if type(event) is ToolCallEnd:
        return bool(event.call.signature)
    if type(event) is ThinkingEnd:
        return bool(event.signature or event.redacted)
    return type(event) is TextEnd and bool(event.signature)
