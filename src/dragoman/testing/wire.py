"""Encode a turn of a fake model as the bytes of an answer, in any protocol."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from typing import Final, final

import msgspec

from dragoman import _json
from dragoman.codec.embeddings import Embedded
from dragoman.errors import UsageError, WireError
from dragoman.events import (
    Event,
    Reply,
    TextDelta,
    TextEnd,
    ThinkingDelta,
    ThinkingEnd,
    ToolCallDelta,
    ToolCallEnd,
    unfold,
)
from dragoman.ids import new_id
from dragoman.protocol import Parsed, Protocol
from dragoman.protocols import EMBEDDING, embedder
from dragoman.testing.faults import FAULTS, needs_call, play
from dragoman.testing.turns import Script
from dragoman.types import Part, StopReason, Text, Thinking, ToolCall, Usage

_CREATED: Final = 1_750_000_000  # Unix seconds: the same in every run
_PIECE: Final = 12  # characters of a delta
_SIZE: Final = 8  # numbers of a vector, where the request does not say
_LARGEST_SIZE: Final = 8192
_ENDS: Final = (TextEnd, ThinkingEnd, ToolCallEnd)


@final
class Played(msgspec.Struct, frozen=True):
    """A response. `is_cut`: the connection is lost behind `body`. `delay`: seconds before it."""

    status: int
    headers: dict[str, str]
    body: bytes
    is_cut: bool = False
    delay: float = 0.0


def play_turn(protocol: Protocol, parsed: Parsed, script: Script, usage: Usage) -> Played:
    """Return the answer of a turn to a request.

    Raises:
        UsageError: the protocol has no place for a fault that the turn asks for.
    """
    request = parsed.request
    if script.failure is not None:
        usual, body = protocol.render_error(script.failure)
        status = script.failure.status or usual
        headers = {"content-type": "application/json"}
        if script.failure.retry_after is not None:
            headers["retry-after"] = f"{script.failure.retry_after:g}"
        return Played(status, headers, body, delay=script.delay)
    parts = _with_ids(script, [tool.name for tool in request.tools])
    if protocol.seals_thinking:
        parts = tuple(map(_sealed, parts))
    for name in script.faults:
        if (change := FAULTS[name].parts) is not None:
            parts = change(parts)
    has_calls = any(isinstance(part, ToolCall) for part in parts)
    reason: StopReason = "tool_use" if has_calls else "stop"
    reply: Reply = Reply(f"fake{new_id()}", request.model, _CREATED, parts, reason, None, usage, None, None, (), ())
    if request.stream:
        encoder = protocol.encoder(new_id=new_id, model=request.model, created=_CREATED, style=parsed.style)
        events = list(_in_pieces(unfold(reply)))
        body, content_type = encoder.encode(_begun(events) if script.is_cut else events), protocol.stream_type
    else:
        body = protocol.render_response(reply, new_id=new_id, model=request.model, created=_CREATED, style=parsed.style)
        body, content_type = body[: len(body) // 2] if script.is_cut else body, "application/json"
    for name in script.faults:
        spoiled = play(body, FAULTS[name])
        if spoiled is None:
            raise UsageError(f"deviation: {name!r} cannot be played in {protocol.name}, or not in this answer")
        body = spoiled
    return Played(200, {"content-type": content_type}, body, script.is_cut, script.delay)


def _with_ids(script: Script, offered: Sequence[str]) -> tuple[Part, ...]:
    """Return the parts of a turn, each call with an id; for a fault alone, the parts that it needs."""
    parts = script.parts
    if not parts and script.faults:
        if not needs_call(script.faults):
            parts = (Text("Hello."),)
        elif offered:
            parts = (ToolCall("", offered[0], "{}"),)
    if needs_call(script.faults) and not any(isinstance(part, ToolCall) for part in parts):
        raise UsageError(f"deviation: {script.faults[0]!r} is one of a call: put it into a list beside call(…)")
    return tuple(
        msgspec.structs.replace(part, id=f"call_{new_id()}") if isinstance(part, ToolCall) and not part.id else part
        for part in parts
    )


def _sealed(part: Part) -> Part:
    """Return thinking with a signature, so that the next request takes it back as a real server does."""
    if not isinstance(part, Thinking) or part.signature or part.redacted:
        return part
    digest = hashlib.sha256(part.text.encode("utf-8", "surrogatepass")).digest()
    return msgspec.structs.replace(part, signature=base64.b64encode(digest).decode())


def _in_pieces(events: Sequence[Event]) -> Iterator[Event]:
    """Split long deltas, as models send them."""
    for event in events:
        if isinstance(event, TextDelta | ThinkingDelta | ToolCallDelta):
            text = event.text
            for at in range(0, len(text), _PIECE):
                yield msgspec.structs.replace(event, text=text[at : at + _PIECE])
        else:
            yield event


def _begun(events: Sequence[Event]) -> Sequence[Event]:
    """Events up to the middle of the last part."""
    last = max((place for place, event in enumerate(events) if isinstance(event, _ENDS)), default=1)
    index = getattr(events[last], "index", None)
    grown = [place for place in range(last) if isinstance(events[place], TextDelta | ThinkingDelta | ToolCallDelta)]
    inside = [place for place in grown if getattr(events[place], "index", None) == index]
    if not inside:
        return events[:last]
    middle = inside[(len(inside) - 1) // 2]
    half = events[middle]
    assert isinstance(half, TextDelta | ThinkingDelta | ToolCallDelta)
    text = half.text[: len(half.text) // 2]
    return [*events[:middle], *([msgspec.structs.replace(half, text=text)] if text else [])]


def play_embeddings(protocol: Protocol, path: str, body: bytes) -> Played:
    """Vectors that depend on their texts alone.

    Raises:
        WireError: the protocol has none, or it is no request for them.
    """
    if protocol.name not in EMBEDDING:
        raise WireError(f"{protocol.name} has no embeddings")
    words = embedder(protocol.name)
    request = words.parse_request(body, path=path)
    vectors = tuple(_json.raw(_vector(str(item), request.dimensions or _SIZE)) for item in request.inputs)
    tokens = sum(len(str(item)) // 4 + 1 for item in request.inputs)
    answer = words.render_response(request, Embedded(vectors, tokens), tokens)
    return Played(200, {"content-type": "application/json"}, answer)


def _vector(text: str, size: int) -> list[float]:
    digest = hashlib.shake_256(text.encode("utf-8", "surrogatepass")).digest(min(size, _LARGEST_SIZE))
    return [byte / 256 for byte in digest]


def is_embedding(path: str) -> bool:
    """Return whether a path asks for embeddings."""
    return "embed" in path.partition("?")[0].rpartition("/")[2].rpartition(":")[2].lower()
