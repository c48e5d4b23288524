"""Ollama's `/api/generate`: a prompt as text, an answer as text. See https://docs.ollama.com/api/generate (2026-11-22).

The prompt becomes the only message of a chat. Fields that need the server's own prompt handling (a suffix to fill up
to, raw text without a template, the numbers of an earlier context) are only for a server that speaks Ollama itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from dragoman import _json
from dragoman._json import Json
from dragoman.codec.cross_protocol import CrossProtocol, crossed
from dragoman.codec.json_fields import Fields, read, read_body, read_text
from dragoman.codec.timestamps import render_time
from dragoman.errors import WireError
from dragoman.events import Deviation, Event, Failure, Finish, Reply, TextDelta, ThinkingDelta
from dragoman.protocol import Legacy, NewId, Parsed, ReplyStyle, no_glance
from dragoman.protocols.ollama.protocol import PROTOCOL
from dragoman.protocols.ollama.request.parse import parse_request as parse_chat
from dragoman.protocols.ollama.response.encode import render_end
from dragoman.protocols.ollama.wire import REASONS

_PLAIN: Final = ReplyStyle()
_PATH: Final = "/api/generate"
_UNSAYABLE: Final = ("suffix", "raw", "template", "context")
_OWN: Final = ("prompt", "system", "images", *_UNSAYABLE)


def unsayable(body: bytes) -> str:
    """Return the field that only an Ollama server can honour, or ""."""
    fields = read_body(body)
    return next((name for name in _UNSAYABLE if read(fields.get(name))), "")


def parse_request(body: bytes, *, path: str = "", fields: Fields | None = None) -> Parsed:
    """Parse a client's request.

    Raises:
        WireError: the body is not a request, or has a field that only an Ollama server can honour.
    """
    name = unsayable(body)
    if name:
        raise WireError("expected a prompt alone: only a model whose server speaks Ollama takes this", path=name)
    fields = read_body(body, fields)
    messages: list[Json] = []
    if read_text(fields.get("system")):
        messages.append({"role": "system", "content": fields["system"]})
    messages.append({"role": "user", "content": read_text(fields.get("prompt"))})
    if "images" in fields:
        messages[-1]["images"] = fields["images"]
    rest = {key: value for key, value in fields.items() if key not in _OWN}
    return parse_chat(_json.encode({**rest, "messages": messages}))


class Encoder:
    """Encodes one streamed response."""

    __slots__ = ("_after", "_before", "_crossing", "_is_over", "lost")

    def __init__(self, *, new_id: NewId, model: str, created: int, style: ReplyStyle = _PLAIN) -> None:
        self._before = _json.encode({"model": model, "created_at": render_time(created)})[:-1]
        self._after = b',"done":false}\n'
        self._is_over = False
        self._crossing = CrossProtocol(None, None, REASONS)
        self.lost = self._crossing.lost

    @property
    def aborted(self) -> bool:
        """Never: there are no calls."""
        return False

    def encode(self, events: Iterable[Event]) -> bytes:
        out: list[bytes] = []
        for event in events:
            match event:
                case TextDelta(_, text):
                    out.append(b'%b,"response":%b%b' % (self._before, _json.encode_text(text), self._after))
                case ThinkingDelta(_, text):
                    thinking = _json.encode_text(text)
                    out.append(b'%b,"response":"","thinking":%b%b' % (self._before, thinking, self._after))
                case Finish():
                    self._crossing.take(event)
                    end = _json.encode(render_end(event.reason, event.native_reason, event.usage))
                    out.append(b'%b,"response":"",%b\n' % (self._before, end[1:]))
                    self._is_over = True
                case Failure(_, message):
                    out.append(_json.encode({"error": message}) + b"\n")
                    self._is_over = True
                case _:
                    self._crossing.take(event)
        return b"".join(out)

    def keepalive(self) -> bytes:
        """Return a line without words: the protocol has no other way to say nothing."""
        return b"" if self._is_over else b'%b,"response":""%b' % (self._before, self._after)


def render_response(
    reply: Reply,
    *,
    new_id: NewId,
    model: str,
    created: int,
    style: ReplyStyle = _PLAIN,
    lost: list[Deviation] | None = None,
) -> bytes:
    """Render a whole response."""
    crossed(reply, None, None, REASONS, lost)
    fields: dict[str, Json] = {"model": model, "created_at": render_time(created)}
    fields["response"] = reply.text
    if reply.thinking:
        fields["thinking"] = reply.thinking
    reason = "other" if reply.stop_reason == "error" else reply.stop_reason
    return _json.encode(fields | render_end(reason, reply.native_reason, reply.usage))


LEGACY: Final = Legacy(
    msgspec.structs.replace(
        PROTOCOL,
        routes=(("POST", _PATH),),
        parse_request=parse_request,
        encoder=Encoder,
        render_response=render_response,
        peek=no_glance,
    ),
    _PATH,
    unsayable,
)
