"""Events → response bytes of Gemini: event streams, JSON arrays, whole responses, error bodies.

Every chunk holds one part. Calls are whole in this protocol, so a call leaves at its end, and one that fails never
leaves. A signature that is known only at a part's end leaves with the part's last text where that has not left yet,
else as an empty part of its own, as Gemini itself does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dragoman import _json
from dragoman._json import Json
from dragoman.contract import NewId, ReplyStyle
from dragoman.errors import status_of
from dragoman.events import (
    Event,
    Failure,
    Finish,
    PartEvent,
    Reply,
    Start,
    TextDelta,
    TextEnd,
    ThinkingDelta,
    ThinkingEnd,
    ToolCallEnd,
    ToolCallFailed,
)
from dragoman.protocols.gemini.wire import NAME, REASONS
from dragoman.types import Media, Opaque, Part, StopReason, Text, Thinking, ToolCall, Usage

_PLAIN: Final = ReplyStyle()
_REASON_WORDS: Final[dict[StopReason, str]] = {
    "stop": "STOP", "tool_use": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY", "other": "OTHER",
}  # fmt: skip
#: HTTP status → google.rpc.Code by name; https://cloud.google.com/apis/design/errors (read 2026-11-21).
_STATUS_WORDS: Final[dict[int, str]] = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 402: "RESOURCE_EXHAUSTED", 403: "PERMISSION_DENIED",
    404: "NOT_FOUND", 409: "ABORTED", 413: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 499: "CANCELLED",
    500: "INTERNAL", 501: "UNIMPLEMENTED", 502: "UNAVAILABLE", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}  # fmt: skip


#: Events that are written, beside text and thinking: starts of parts and pieces of calls have no form here.
_RARE: Final = frozenset({ToolCallEnd, ToolCallFailed, PartEvent, Finish, Failure})


class Encoder:
    """Encodes one streamed response."""

    __slots__ = ("_after", "_before", "_is_array", "_is_begun", "_is_over", "_model", "_new_id", "_text", "_thought")

    def __init__(self, *, new_id: NewId, model: str, created: int, style: ReplyStyle = _PLAIN) -> None:
        self._new_id = new_id
        self._model = model
        self._is_array = style.array
        self._is_begun = False
        self._is_over = False
        self._before = (b"" if style.array else b"data: ") + b'{"candidates":[{"content":{"parts":['
        self._text = self._before + b'{"text":'
        self._thought = self._before + b'{"thought":true,"text":'
        self._after = b""

    @property
    def aborted(self) -> bool:
        """Never: no part of a call leaves before the whole of it."""
        return False

    def encode(self, events: Iterable[Event]) -> bytes:
        """Write what these events say."""
        out: list[bytes] = []
        previous: Event | None = None
        if not self._after:
            events = list(events)
            first = next((event.id for event in events if type(event) is Start), None)
            self._open(first or self._new_id())
        for event in events:
            if type(event) is TextDelta:
                out.append(b"%b%b%b" % (self._text, _json.encode_text(event.text), self._after))
            elif type(event) is ThinkingDelta:
                out.append(b"%b%b%b" % (self._thought, _json.encode_text(event.text), self._after))
            elif type(event) is TextEnd or type(event) is ThinkingEnd:
                if event.signature is not None:
                    self._sign(event, previous, out)
            elif type(event) in _RARE:
                self._encode_rare(event, out)
            previous = event
        return self._join(out)

    def keepalive(self) -> bytes:
        """A blank line; comments make Google's own client fail, and an array takes white space."""
        return b"" if self._is_over else b"\n"

    def _open(self, id: str) -> None:
        """The response's id is known: what follows the part in every chunk."""
        ids = _json.encode({"modelVersion": self._model, "responseId": id})[1:]
        end = b"" if self._is_array else b"\r\n\r\n"
        self._after = b'}],"role":"model"},"index":0}],' + ids + end

    def _join(self, out: list[bytes]) -> bytes:
        """An event stream needs nothing between chunks, an array its brackets and commas."""
        if not self._is_array or not out:
            return b"".join(out)
        head = b",\r\n" if self._is_begun else b"["
        self._is_begun = True
        return head + b",\r\n".join(out) + (b"]" if self._is_over else b"")

    def _sign(self, event: TextEnd | ThinkingEnd, previous: Event | None, out: list[bytes]) -> None:
        part: dict[str, Json] = {"text": ""}
        if isinstance(previous, TextDelta | ThinkingDelta) and previous.index == event.index:
            part["text"] = previous.text
            out.pop()
        if type(event) is ThinkingEnd:
            part["thought"] = True
        out.append(self._part(part | {"thoughtSignature": event.signature}))

    def _part(self, part: dict[str, Json]) -> bytes:
        return b"%b%b%b" % (self._before, _json.encode(part)[:-1], self._after)

    def _encode_rare(self, event: Event, out: list[bytes]) -> None:
        match event:
            case ToolCallEnd(_, call):
                out.append(self._part(render_part(call) or {}))
            case ToolCallFailed(_, _, _, _, message):
                out.append(self._part({"text": message}))
            case PartEvent(_, part):
                rendered = render_part(part)
                if rendered is not None:
                    out.append(self._part(rendered))
            case Finish(reason, native_reason, usage):
                out.append(self._last_chunk(_reason_word(reason, native_reason), usage))
                self._is_over = True
            case Failure():
                body = render_error(event)[1]
                out.append(body if self._is_array else b"data: %b\r\n\r\n" % body)
                self._is_over = True
            case _:
                raise AssertionError(f"not a rare event: {type(event).__name__}")

    def _last_chunk(self, word: str, usage: Usage) -> bytes:
        counts = render_usage(usage)
        before = b'%b"finishReason":"%b","index":0}],' % (
            self._text + b'""}],"role":"model"},',
            word.encode(),
        )
        after = self._after.removeprefix(b'}],"role":"model"},"index":0}],')
        return before + (b'"usageMetadata":%b,' % _json.encode(counts) if counts else b"") + after


def render_response(reply: Reply, *, new_id: NewId, model: str, created: int, style: ReplyStyle = _PLAIN) -> bytes:
    """Write a whole response; the parts keep their order and their signatures."""
    rendered = [render_part(part) for part in reply.parts]
    parts: list[Json] = [part for part in rendered if part is not None]
    parts += [{"text": failed.message} for failed in reply.failed_calls]
    reason = "other" if reply.stop_reason == "error" else reply.stop_reason
    candidate = {
        "content": {"parts": parts, "role": "model"},
        "finishReason": _reason_word(reason, reply.native_reason),
        "index": 0,
    }
    usage = render_usage(reply.usage)
    body: dict[str, Json] = {"candidates": [candidate]} | ({"usageMetadata": usage} if usage else {})
    return _json.encode(body | {"modelVersion": model, "responseId": reply.id or new_id()})


def render_part(part: Part) -> dict[str, Json] | None:
    """A part of an answer; None for what this protocol cannot say."""
    match part:
        case Text(text, signature):
            return {"text": text} | _signed(signature)
        case Thinking(text, signature):
            return {"text": text, "thought": True} | _signed(signature) if text or signature else None
        case ToolCall(id, name, arguments, kind, signature):
            args: Json = {"input": arguments} if kind == "custom" else _json.embed(arguments)
            return {"functionCall": {"id": id, "name": name, "args": args}} | _signed(signature)
        case Media(_, mime, data, url, native):
            rest: dict[str, Json] = dict(native.fields) if native is not None and native.protocol == NAME else {}
            named: dict[str, Json] = {"mimeType": mime} if mime is not None else {}
            if data is not None:
                return {"inlineData": named | {"data": data}} | rest
            return {"fileData": named | {"fileUri": url}} | rest
        case Opaque(protocol, raw):
            fields = _json.decode(bytes(raw)) if protocol == NAME else None
            return fields if isinstance(fields, dict) else None
        case _:
            return None


def render_usage(usage: Usage) -> dict[str, Json]:
    """`usageMetadata`; the candidates' count excludes thoughts. What nobody reported is left out."""
    answer = usage.output
    if answer is not None and usage.reasoning is not None:
        answer = max(0, answer - usage.reasoning)
    total = None if usage.input is None and usage.output is None else (usage.input or 0) + (usage.output or 0)
    counts = {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": answer,
        "totalTokenCount": total,
        "thoughtsTokenCount": usage.reasoning,
        "cachedContentTokenCount": usage.cache_read,
    }
    return {key: value for key, value in counts.items() if value is not None}


def render_error(failure: Failure) -> tuple[int, bytes]:
    """Write a failure: `{"error": {code, message, status}}`, and when to try again where that is known."""
    status = status_of(failure)
    word = _STATUS_WORDS.get(status) or ("INVALID_ARGUMENT" if status < 500 else "UNAVAILABLE")
    error: dict[str, Json] = {"code": status, "message": failure.message, "status": word}
    if failure.retry_after is not None:
        retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{failure.retry_after:g}s"}
        error["details"] = [retry]
    return status, _json.encode({"error": error})


def _reason_word(reason: StopReason, native_reason: str | None) -> str:
    """Gemini's own word where it came from Gemini and still holds."""
    if native_reason is not None and REASONS.get(native_reason) == reason:
        return native_reason
    return _REASON_WORDS[reason]


def _signed(signature: str | None) -> dict[str, Json]:
    return {} if signature is None else {"thoughtSignature": signature}
