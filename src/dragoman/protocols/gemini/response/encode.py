"""Encode events as response bytes of Gemini: event streams, JSON arrays, whole responses, error bodies.

Every chunk contains one part. Calls are whole in this protocol, so a call leaves at its end, and a failed one never
leaves: the stop reason reports it. A signature that is known only at a part's end leaves with the part's last text if
that has not left yet, else as a separate empty part, as Gemini itself does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.cross_protocol import CrossProtocol, crossed
from dragoman.codec.hosted.citations import CitationForm
from dragoman.codec.json_fields import Fields, native_fields, overlaid, read, read_count, read_fields, read_items
from dragoman.codec.logprobs import OF_CANDIDATE
from dragoman.errors import FailedCalls, failure_of, status_of
from dragoman.events import (
    Deviation,
    Event,
    Failure,
    Finish,
    NativeEvent,
    PartEvent,
    Reply,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallEnd,
    ToolCallFailed,
)
from dragoman.protocol import NewId, ReplyStyle
from dragoman.protocols.gemini.response.enum_numbers import FINISH_REASONS, with_names
from dragoman.protocols.gemini.wire import NAME, REASONS, render_seal
from dragoman.types import Media, Opaque, Part, StopReason, Text, Thinking, ToolCall, Usage

#: Why an answer stopped, as words and as numbers.
_OWN_REASONS: Final = frozenset({*REASONS, "JAILBREAK", *map(str, range(len(FINISH_REASONS)))})
#: Pages and files stand beside the whole answer.
_CITED: Final = CitationForm(None, has_files=True)
_PLAIN: Final = ReplyStyle()
_EMPTY: Final[dict[str, Json]] = {"content": {"parts": [{"text": ""}], "role": "model"}}
_CANDIDATES: Final = b'{"candidates":[{"content":{"parts":['
_REASON_WORDS: Final[dict[StopReason, str]] = {
    "stop": "STOP", "tool_use": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY", "other": "OTHER",
}  # fmt: skip
#: The stop reason of an answer whose calls failed; `finishMessage` says why.
_FAILED_WORD: Final = "MALFORMED_FUNCTION_CALL"
#: HTTP status → google.rpc.Code by name; https://cloud.google.com/apis/design/errors (read 2026-11-21).
_STATUS_WORDS: Final[dict[int, str]] = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 402: "RESOURCE_EXHAUSTED", 403: "PERMISSION_DENIED",
    404: "NOT_FOUND", 409: "ABORTED", 413: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 499: "CANCELLED",
    500: "INTERNAL", 501: "UNIMPLEMENTED", 502: "UNAVAILABLE", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}  # fmt: skip


#: Events that are written, beside text and thinking: starts of parts and pieces of calls have no form here.
_RARE: Final = frozenset(
    {Start, TextStart, ThinkingStart, ToolCallEnd, ToolCallFailed, PartEvent, NativeEvent, Finish, Failure}
)


class Encoder:
    """Encodes one streamed response."""

    __slots__ = (
        "_after", "_before", "_crossing", "_failed", "_is_array", "_is_begun", "_is_over", "_kept", "_kept_of_part",
        "_model", "_new_id", "_text", "_thought", "lost",
    )  # fmt: skip

    def __init__(self, *, new_id: NewId, model: str, created: int, style: ReplyStyle = _PLAIN) -> None:
        self._new_id = new_id
        self._model = model
        self._is_array = style.array
        self._failed = FailedCalls()
        self._crossing = CrossProtocol(NAME, _CITED, _OWN_REASONS, OF_CANDIDATE)
        self.lost = self._crossing.lost
        self._is_begun = False
        self._is_over = False
        self._before = (b"" if style.array else b"data: ") + _CANDIDATES
        self._text = self._before + b'{"text":'
        self._thought = self._before + b'{"thought":true,"text":'
        self._after = b""
        self._kept: Fields = {}  # the native fields that `Start` told; they leave with the last chunk
        self._kept_of_part: Fields = {}  # those of the text or thinking that is open

    @property
    def aborted(self) -> bool:
        """Never: no part of a call leaves before the whole of it."""
        return False

    def encode(self, events: Iterable[Event]) -> bytes:
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
                ended: Any = self._crossing.take(event, events)
                kept = native_fields(ended.native, NAME) if ended.native is not None else {}
                if ended.signature is not None or kept or self._kept_of_part:
                    self._close_part(ended, previous, kept, out)
            elif type(event) in _RARE:
                event = self._crossing.take(event, events)
                self._encode_rare(event, out)
            previous = event
        return self._join(out)

    def keepalive(self) -> bytes:
        """Return an empty line; comments make Google's own client fail, and an array accepts white space."""
        return b"" if self._is_over else b"\n"

    def _open(self, id: str) -> None:
        """Fix the response's id: what follows the part in every chunk."""
        ids = _json.encode({"modelVersion": self._model, "responseId": id})[1:]
        end = b"" if self._is_array else b"\r\n\r\n"
        self._after = b'}],"role":"model"},"index":0}],' + ids + end

    def _join(self, out: list[bytes]) -> bytes:
        """Join chunks: an event stream needs nothing between them, an array its brackets and commas."""
        if not self._is_array or not out:
            return b"".join(out)
        head = b",\r\n" if self._is_begun else b"["
        self._is_begun = True
        return head + b",\r\n".join(out) + (b"]" if self._is_over else b"")

    def _close_part(self, event: TextEnd | ThinkingEnd, previous: Event | None, kept: Fields, out: list[bytes]) -> None:
        part: dict[str, Json] = {"text": ""}
        if isinstance(previous, TextDelta | ThinkingDelta) and previous.index == event.index:
            part["text"] = previous.text
            out.pop()
        if type(event) is ThinkingEnd:
            part["thought"] = True
        out.append(self._part(part | _signed(event.signature) | self._kept_of_part | kept))
        self._kept_of_part = {}

    def _part(self, part: dict[str, Json]) -> bytes:
        return b"%b%b%b" % (self._before, _json.encode(part)[:-1], self._after)

    def _encode_rare(self, event: Event, out: list[bytes]) -> None:
        match event:
            case ToolCallEnd(_, call):
                out.append(self._part(render_part(call) or {}))
            case ToolCallFailed():
                self._failed.add(event)
            case PartEvent(_, part):
                rendered = render_part(part)
                if rendered is not None:
                    out.append(self._part(rendered))
            case Start():
                self._kept = native_fields(event.native, NAME)
            case TextStart() | ThinkingStart():
                self._kept_of_part = native_fields(event.native, NAME)
            case Finish():
                out.append(self._last_chunk(event))
                self._is_over = True
            case Failure():
                body = render_error(event)[1]
                out.append(body if self._is_array else b"data: %b\r\n\r\n" % body)
                self._is_over = True
            case NativeEvent():
                pass  # it has no form here
            case _:
                raise AssertionError(f"not a rare event: {type(event).__name__}")

    def _last_chunk(self, event: Finish) -> bytes:
        kept = self._kept | native_fields(event.native, NAME)
        failure = self._failed.failure(event)
        word = _reason_word(event.reason, event.native_reason) if failure is None else _FAILED_WORD
        counts = render_usage(event.usage)
        if kept or failure is not None:
            candidate = _EMPTY if failure is None else _EMPTY | {"finishMessage": failure.message}
            last = _render_last(candidate, word, event.native_reason, counts, kept)
            before = self._before[: -len(_CANDIDATES)] + _json.encode(last)[:-1] + b","
        else:
            before = b'%b"finishReason":"%b","index":0}],' % (self._text + b'""}],"role":"model"},', word.encode())
            before += b'"usageMetadata":%b,' % _json.encode(counts) if counts else b""
        return before + self._after.removeprefix(b'}],"role":"model"},"index":0}],')


def _render_last(
    candidate: dict[str, Json], word: str, native_reason: str | None, counts: dict[str, Json], kept: Fields
) -> dict[str, Json]:
    """Render a response with its end, over what was kept of it. A blocked one has no candidates."""
    entries = read_items(kept.get("candidates")) or [Raw(b"{}")]
    feedback = read_fields(kept.get("promptFeedback")) or {}
    blocked = read(feedback.get("blockReason"))
    is_blocked = blocked is not None and str(blocked) == native_reason and len(entries[0]) == 2
    body: dict[str, Json] = {
        key: with_names(value) for key, value in kept.items() if key not in ("candidates", "usageMetadata")
    }
    if not is_blocked:
        body["candidates"] = [overlaid(with_names(entries[0]), candidate | {"finishReason": word, "index": 0})]
    usage = _overlaid_usage(with_names(kept["usageMetadata"]), counts) if "usageMetadata" in kept else counts
    return body | ({"usageMetadata": usage} if usage else {})


def render_response(
    reply: Reply,
    *,
    new_id: NewId,
    model: str,
    created: int,
    style: ReplyStyle = _PLAIN,
    lost: list[Deviation] | None = None,
) -> bytes:
    """Render a whole response; the parts keep their order and their signatures."""
    reply = crossed(reply, NAME, _CITED, _OWN_REASONS, lost, OF_CANDIDATE)
    rendered = [render_part(part) for part in reply.parts]
    parts: list[Json] = [part for part in rendered if part is not None]
    reason = "other" if reply.stop_reason == "error" else reply.stop_reason
    failure = failure_of(reply)
    is_standing = failure is None or reason in ("length", "content_filter")
    word = _reason_word(reason, reply.native_reason) if is_standing else _FAILED_WORD
    candidate: dict[str, Json] = {"content": {"parts": parts, "role": "model"}}
    if failure is not None:
        candidate["finishMessage"] = failure.message
    body = _render_last(
        candidate, word, reply.native_reason, render_usage(reply.usage), native_fields(reply.native, NAME)
    )
    return _json.encode(body | {"modelVersion": model, "responseId": reply.id or new_id()})


def render_part(part: Part) -> dict[str, Json] | None:
    """Render a part of an answer; None if this protocol cannot express it."""
    match part:
        case Text(text, signature, native):
            return {"text": text} | _signed(signature) | native_fields(native, NAME)
        case Thinking(text, signature, _, native):
            part_fields = {"text": text, "thought": True} | _signed(signature) | native_fields(native, NAME)
            return part_fields if text or signature else None
        case ToolCall(id, name, arguments, kind, signature, native):
            args: Json = {"input": arguments} if kind == "custom" else _json.embed(arguments)
            function: Json = {"id": id, "name": name, "args": args}
            return {"functionCall": function} | _signed(signature) | native_fields(native, NAME)
        case Media(_, mime, data, url, native):
            rest: dict[str, Json] = dict(native.fields) if native is not None and native.protocol == NAME else {}
            named: dict[str, Json] = {"mimeType": mime} if mime is not None else {}
            if data is not None:
                return {"inlineData": named | {"data": data}} | rest
            return {"fileData": named | {"fileUri": url}} | rest
        case Opaque(protocol, raw):
            fields = _json.decode(bytes(with_names(raw))) if protocol == NAME else None
            return fields if isinstance(fields, dict) else None
        case _:
            return None


def render_usage(usage: Usage) -> dict[str, Json]:
    """Render `usageMetadata`; the candidates' count excludes thoughts. Unreported counts are left out."""
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


def _overlaid_usage(kept: Raw, counts: dict[str, Json]) -> dict[str, Json]:
    """Return counts over kept ones. Our count of the prompt includes what tools put into it."""
    usage = overlaid(kept, counts)
    of_tools = read_count(usage.get("toolUsePromptTokenCount"))
    if of_tools and "promptTokenCount" in counts:
        usage["promptTokenCount"] = max(0, counts["promptTokenCount"] - of_tools)
    return usage


def render_error(failure: Failure) -> tuple[int, bytes]:
    """Render a failure: `{"error": {code, message, status}}`, and when to retry if that is known."""
    status = status_of(failure)
    word = _STATUS_WORDS.get(status) or ("INVALID_ARGUMENT" if status < 500 else "UNAVAILABLE")
    error: dict[str, Json] = {"code": status, "message": failure.message, "status": word}
    if failure.retry_after is not None:
        retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{failure.retry_after:g}s"}
        error["details"] = [retry]
    return status, _json.encode({"error": error})


def _reason_word(reason: StopReason, native_reason: str | None) -> str:
    """Return Gemini's own word if it came from Gemini, as a word or a number, and still applies."""
    if native_reason is not None:
        number = int(native_reason) if native_reason.isdecimal() and len(native_reason) < 3 else -1
        word = FINISH_REASONS[number] if 0 <= number < len(FINISH_REASONS) else native_reason
        if REASONS.get(word) == reason:
            return word
    return _REASON_WORDS[reason]


def _signed(signature: str | None) -> dict[str, Json]:
    return {} if signature is None else {"thoughtSignature": render_seal(signature)}
