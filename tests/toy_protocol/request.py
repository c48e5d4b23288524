"""Requests, both directions, and what is seen of one before it passes."""

from __future__ import annotations

from dragoman.protocols.toy.wire import decode_body

from dragoman import _json
from dragoman._json import Malformed, Raw
from dragoman.errors import WireError
from dragoman.protocol import PLAIN, UNKNOWN_MODEL, Dialect, HttpRequest, ModelLimits, Parsed, Peek, Rendered
from dragoman.types import Message, Request, Text


def parse_request(body: bytes, *, path: str = "", fields: dict[str, Raw] | None = None) -> Parsed:
    """As `ParseRequest`."""
    found = decode_body(body)
    if isinstance(found, Malformed):
        raise WireError("expected a model and turns")
    messages = tuple(
        Message("assistant" if turn.who == "assistant" else "user", (Text(turn.says),)) for turn in found.turns
    )
    return Parsed(Request(found.model, messages, stream=found.stream))


def render_request(request: Request, *, dialect: Dialect = PLAIN, limits: ModelLimits = UNKNOWN_MODEL) -> Rendered:
    """As `RenderRequest`."""
    turns = [
        {"who": message.role, "says": "".join(part.text for part in message.parts if isinstance(part, Text))}
        for message in request.messages
    ]
    body = _json.encode({"model": request.model, "turns": turns, "stream": request.stream})
    return Rendered(HttpRequest("/toy/talk", body, {"content-type": "application/json"}))


def peek(body: bytes, *, path: str = "") -> Peek | None:
    """As `PeekAtRequest`."""
    return None
