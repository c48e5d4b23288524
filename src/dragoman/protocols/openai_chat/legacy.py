"""OpenAI's `/v1/completions`: a prompt as text, an answer as text.

https://platform.openai.com/docs/api-reference/completions (read 2026-11-22). The prompt becomes the only message of a
chat. Fields that need the server's own prompt handling (a suffix, an echo, log probabilities) are only for a server
that has this path itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from dragoman import _json
from dragoman._json import Json
from dragoman.codec.cross_protocol import CrossProtocol, crossed
from dragoman.codec.framing.body import write_event
from dragoman.codec.json_fields import Fields, read, read_body
from dragoman.errors import WireError
from dragoman.events import Deviation, Event, Failure, Finish, Reply, Start, TextDelta, UsageUpdate
from dragoman.protocol import Legacy, NewId, Parsed, ReplyStyle, no_glance
from dragoman.protocols.openai_chat.protocol import PROTOCOL
from dragoman.protocols.openai_chat.request.parse import parse_request as parse_chat
from dragoman.protocols.openai_chat.response.encode import render_error
from dragoman.protocols.openai_chat.response.usage import render_usage
from dragoman.protocols.openai_chat.wire import REASONS
from dragoman.types import NO_USAGE, StopReason

_PLAIN: Final = ReplyStyle()
_UNSAYABLE: Final = ("suffix", "echo", "logprobs")
_COUNTS: Final = ("n", "best_of")
_OWN: Final = ("prompt", *_UNSAYABLE, *_COUNTS)
_END: Final = b"data: [DONE]\n\n"
_WORDS: Final[dict[StopReason, str]] = {"length": "length", "content_filter": "content_filter"}


def unsayable(body: bytes) -> str:
    """Return the field that only a server with this path can honour, or ""."""
    fields = read_body(body)
    for name in _UNSAYABLE:
        value: Json = read(fields.get(name))
        if value or (name == "logprobs" and value == 0 and value is not False):
            return name
    for name in _COUNTS:
        if read(fields.get(name)) not in (None, 1):
            return name
    return "" if _prompt(read(fields.get("prompt"))) is not None else "prompt"


def _prompt(value: Json) -> str | None:
    """Return the text to continue, or None if there are several, or tokens."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, str) else None


def parse_request(body: bytes, *, path: str = "", fields: Fields | None = None) -> Parsed:
    """Parse a client's request.

    Raises:
        WireError: the body is not a request, or has a field that only a server with this path can honour.
    """
    name = unsayable(body)
    if name:
        raise WireError("expected one prompt of text alone: only a server of OpenAI's kind takes this", path=name)
    fields = read_body(body, fields)
    rest = {key: value for key, value in fields.items() if key not in _OWN}
    message = {"role": "user", "content": _prompt(read(fields.get("prompt")))}
    return parse_chat(_json.encode({**rest, "messages": [message]}))


class Encoder:
    """Encodes one streamed response. It has no place for thinking."""

    __slots__ = ("_after", "_before", "_crossing", "_head", "_is_over", "_style", "_usage", "lost")

    def __init__(self, *, new_id: NewId, model: str, created: int, style: ReplyStyle = _PLAIN) -> None:
        self._head: dict[str, Json] = {
            "id": f"cmpl-{new_id()}", "object": "text_completion", "created": created, "model": model,
        }  # fmt: skip
        self._before = b"data: %b" % _json.encode(self._head)[:-1] + b',"choices":[{"index":0,"text":'
        self._after = b',"logprobs":null,"finish_reason":null}]}\n\n'
        self._style = style
        self._usage = NO_USAGE
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
                    out.append(b"%b%b%b" % (self._before, _json.encode_text(text), self._after))
                case Start():
                    self._crossing.take(event)
                    out.append(b'%b""%b' % (self._before, self._after))
                case UsageUpdate(usage):
                    self._usage = self._usage.merged(usage)
                case Finish():
                    self._crossing.take(event)
                    self._finish(event, out)
                case Failure():
                    out.append(write_event(render_error(event)[1]))
                    self._is_over = True
                case _:
                    self._crossing.take(event)
        return b"".join(out)

    def _finish(self, finish: Finish, out: list[bytes]) -> None:
        word = _json.encode_text(_WORDS.get(finish.reason, "stop"))
        out.append(b'%b"","logprobs":null,"finish_reason":%b}]}\n\n' % (self._before, word))
        usage = render_usage(self._usage.merged(finish.usage), None)
        if self._style.include_usage and usage is not None:
            out.append(write_event(_json.encode({**self._head, "choices": [], "usage": usage})))
        out.append(_END)
        self._is_over = True

    def keepalive(self) -> bytes:
        """Return a comment."""
        return b"" if self._is_over else b": keep-alive\n\n"


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
    text = reply.text
    reason: StopReason = "other" if reply.stop_reason == "error" else reply.stop_reason
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": _WORDS.get(reason, "stop")}
    body: dict[str, Json] = {
        "id": f"cmpl-{new_id()}", "object": "text_completion", "created": created, "model": model, "choices": [choice],
    }  # fmt: skip
    usage = render_usage(reply.usage, None)
    return _json.encode(body if usage is None else {**body, "usage": usage})


LEGACY: Final = Legacy(
    msgspec.structs.replace(
        PROTOCOL,
        routes=(("POST", "/v1/completions"),),
        parse_request=parse_request,
        encoder=Encoder,
        render_response=render_response,
        peek=no_glance,
    ),
    "/completions",
    unsayable,
)
