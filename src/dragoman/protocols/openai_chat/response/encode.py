"""Encode events as response bytes: chunks of a stream, whole responses, error bodies.

The index of a call counts up and stays with it; id, type and name come once. A call's first chunk waits for its first
argument text, so that a call that fails before it has left nothing behind. Failed calls are reported at the end, as an
error in place of a stop reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.cross_protocol import CrossProtocol, crossed, pass_over
from dragoman.codec.framing.body import write_event
from dragoman.codec.json_fields import Fields, native_fields, read_fields, read_items
from dragoman.codec.logprobs import OF_CHOICE
from dragoman.errors import FailedCalls, failure_of, status_of
from dragoman.events import (
    Deviation,
    Event,
    Failure,
    FailureKind,
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
    ToolCallDelta,
    ToolCallEnd,
    ToolCallFailed,
    ToolCallStart,
    UsageUpdate,
)
from dragoman.protocol import NewId, ReplyStyle
from dragoman.protocols.openai_chat.response.unmodelled import CITED, placed
from dragoman.protocols.openai_chat.response.usage import render_usage
from dragoman.protocols.openai_chat.wire import NAME, REASONS, image_url
from dragoman.types import NO_USAGE, Cost, Media, Native, Opaque, StopReason, Text, Thinking, ToolCall

_PLAIN: Final = ReplyStyle()
_WORDS: Final[dict[StopReason, str]] = {
    "stop": "stop", "length": "length", "tool_use": "tool_calls", "content_filter": "content_filter", "other": "stop",
}  # fmt: skip
#: kind → (type, code) of an error
_ERRORS: Final[dict[FailureKind, tuple[str, str | None]]] = {
    "auth": ("authentication_error", "invalid_api_key"),
    "permission": ("permission_error", None),
    "quota": ("insufficient_quota", "insufficient_quota"),
    "bad_request": ("invalid_request_error", None),
    "too_large": ("invalid_request_error", "request_too_large"),
    "not_found": ("invalid_request_error", "model_not_found"),
    "context": ("invalid_request_error", "context_length_exceeded"),
    "rate": ("rate_limit_error", "rate_limit_exceeded"),
    "overloaded": ("server_error", "overloaded"),
    "timeout": ("server_error", "timeout"),
    "connection": ("server_error", None),
    "wire": ("server_error", None),
    "answer_too_large": ("server_error", "answer_too_large"),
    "internal": ("server_error", None),
}
#: Native fields that stand in a choice, and in the usage: the end tells them.
_OF_THE_END: Final = frozenset({"choices", "usage"})
_ROLE: Final = b'{"role":"assistant","content":""}'
_END: Final = b"data: [DONE]\n\n"


class Encoder:
    """Encodes one streamed response.

    Attributes:
        aborted: a call of which some had left has failed, so the connection must be cut.
    """

    __slots__ = (
        "_after", "_before", "_call_after", "_call_before", "_calls", "_cost", "_crossing", "_details", "_failed",
        "_head", "_held", "_is_over", "_is_refused", "_late", "_native", "_new_id", "_style", "_text_key",
        "_thinking_key", "_usage", "aborted", "lost",
    )  # fmt: skip

    def __init__(self, *, new_id: NewId, model: str, created: int, style: ReplyStyle = _PLAIN) -> None:
        self.aborted = False
        self._new_id = new_id
        self._style = style
        self._head: dict[str, Json] = {
            "id": "", "object": "chat.completion.chunk", "created": created, "model": model,
        }  # fmt: skip
        self._before = b""  # once the response is named
        self._after = b',"finish_reason":null}]}\n\n'
        self._text_key = b"content"
        self._thinking_key = style.reasoning_field.encode()
        self._native: Fields = {}  # of the part that is open
        self._held: ToolCallStart | None = None  # a call of which nothing has left
        self._call_before = b""  # around argument text of the call that is open and has left; b"" when there is none
        self._call_after = b""
        self._calls = 0
        self._details = 0  # entries of `reasoning_details` so far
        self._is_refused = False
        self._late: Fields = {}  # of the response, for its end
        self._failed = FailedCalls()
        self._crossing = CrossProtocol(NAME, CITED, REASONS, OF_CHOICE)
        self.lost = self._crossing.lost
        self._usage = NO_USAGE
        self._cost: Cost | None = None
        self._is_over = False

    def encode(self, events: Iterable[Event]) -> bytes:
        out: list[bytes] = []
        for event in events:
            if self._is_over:
                break
            if type(event) is TextDelta:
                text = _json.encode_text(event.text)
                out.append(b'%b{"%b":%b}%b' % (self._before, self._text_key, text, self._after))
            elif type(event) is ToolCallDelta:
                if self._held is not None:
                    self._open_call(self._held, event.text, out)
                else:
                    out.append(b"%b%b%b" % (self._call_before, _json.encode_text(event.text), self._call_after))
            elif type(event) is ThinkingDelta:
                text = _json.encode_text(event.text)
                out.append(b'%b{"%b":%b}%b' % (self._before, self._thinking_key, text, self._after))
            elif type(event) in _WRITERS:
                if not self._before and type(event) is not Start:
                    self._name_response(None)
                event = self._crossing.take(event, events)
                _WRITERS[type(event)](self, event, out)
        return b"".join(out)

    def keepalive(self) -> bytes:
        """Return a comment."""
        return b"" if self._is_over else b": keep-alive\n\n"

    def _name_response(self, id: str | None) -> None:
        """Fix what every chunk repeats. An id of the protocol's own form is kept."""
        self._head["id"] = id if id is not None and id.startswith("chatcmpl-") else f"chatcmpl-{self._new_id()}"
        self._before = b"data: %b" % _json.encode(self._head)[:-1] + b',"choices":[{"index":0,"delta":'

    def _chunk(self, delta: dict[str, Json]) -> bytes:
        return b"%b%b%b" % (self._before, _json.encode(delta), self._after)

    def _start(self, event: Start, out: list[bytes]) -> None:
        self._name_response(event.id)
        role = b"%b%b%b" % (self._before, _ROLE, self._after)
        fields = native_fields(event.native, NAME)
        self._late = {key: value for key, value in fields.items() if key in _OF_THE_END}
        fields = {key: value for key, value in fields.items() if key not in _OF_THE_END}
        out.append(role[:-3] + b",%b}\n\n" % _json.encode(fields)[1:-1] if fields else role)

    # ------------------------------------------------------------ text and other parts

    def _start_text(self, event: TextStart, out: list[bytes]) -> None:
        self._native = native_fields(event.native, NAME)
        self._text_key = b"refusal" if "refusal" in self._native else b"content"
        self._is_refused = self._is_refused or "refusal" in self._native

    def _end_text(self, event: TextEnd, out: list[bytes]) -> None:
        fields = self._native | native_fields(event.native, NAME)
        delta: dict[str, Json] = {"annotations": fields["annotations"]} if "annotations" in fields else {}
        if event.signature:
            delta |= _seal(event.signature)
        if delta:
            out.append(self._chunk(delta))

    def _start_thinking(self, event: ThinkingStart, out: list[bytes]) -> None:
        self._native = native_fields(event.native, NAME)

    def _end_thinking(self, event: ThinkingEnd, out: list[bytes]) -> None:
        if event.signature or event.redacted:
            whole = Native(NAME, self._native | native_fields(event.native, NAME))
            detail = render_detail(None, event.signature, event.redacted, whole, index=self._details)
            self._details += 1
            out.append(self._chunk({"reasoning_details": [detail]}))

    def _write_part(self, event: PartEvent, out: list[bytes]) -> None:
        delta = render_part(event.part)
        if delta is not None:
            out.append(self._chunk(delta))

    # ------------------------------------------------------------ calls

    def _start_call(self, event: ToolCallStart, out: list[bytes]) -> None:
        self._held = event
        self._native = native_fields(event.native, NAME)

    def _open_call(self, start: ToolCallStart, text: str, out: list[bytes]) -> None:
        self._held = None
        call = ToolCall(start.id, start.name, text, start.kind, native=start.native)
        out.append(self._chunk({"tool_calls": [{"index": self._calls, **render_call(call)}]}))
        field = b'"function":{"arguments":' if start.kind == "function" else b'"custom":{"input":'
        self._call_before = b'%b{"tool_calls":[{"index":%d,%b' % (self._before, self._calls, field)
        self._call_after = b"}}]}%b" % self._after
        self._calls += 1

    def _end_call(self, event: ToolCallEnd, out: list[bytes]) -> None:
        if self._held is not None:
            self._open_call(self._held, "", out)
        late = {key: value for key, value in native_fields(event.call.native, NAME).items() if key not in self._native}
        if event.call.signature or late:
            seal = _seal(event.call.signature) if event.call.signature else {}
            end = {"index": self._calls - 1, "function": {"arguments": ""}, **seal, **late}
            out.append(self._chunk({"tool_calls": [end]}))
        self._call_before = b""

    def _fail_call(self, event: ToolCallFailed, out: list[bytes]) -> None:
        """Record a failed call. If some of it has left, the stream must not end well."""
        self._failed.add(event, has_left=bool(self._call_before))
        self._held, self._call_before = None, b""

    # ------------------------------------------------------------ ends

    def _note_usage(self, event: UsageUpdate | Finish, out: list[bytes]) -> None:
        self._usage = self._usage.merged(event.usage)
        self._cost = event.cost or self._cost

    def _fail(self, event: Failure, out: list[bytes]) -> None:
        out.append(write_event(_json.encode(_render_problem(event))))
        self._is_over = True
        self.aborted = self._failed.has_left

    def _finish(self, finish: Finish, out: list[bytes]) -> None:
        self._note_usage(finish, out)
        failure = self._failed.failure(finish)
        if failure is not None:
            self._fail(failure, out)
            return
        word = _json.encode_text(_word(finish.reason, finish.native_reason, is_refused=self._is_refused))
        late = self._late | native_fields(finish.native, NAME)
        choice, message = _kept_choice(late)
        delta, rest = _json.encode(message), b"%b," % _json.encode(choice)[1:-1] if choice else b""
        said = {key: value for key, value in late.items() if key not in _OF_THE_END}
        top = b",%b" % _json.encode(said)[1:-1] if said else b""
        out.append(b'%b%b,%b"finish_reason":%b}]%b}\n\n' % (self._before, delta, rest, word, top))
        usage = render_usage(self._usage, self._cost, late.get("usage"))
        if self._style.include_usage and usage is not None:
            out.append(write_event(_json.encode({**self._head, "choices": [], "usage": usage})))
        out.append(_END)
        self._is_over = True


#: What writes an event, beside those that let a part grow. Deviations have no form here.
_WRITERS: Final[Mapping[type, Callable[[Encoder, Any, list[bytes]], None]]] = {
    Start: Encoder._start, Finish: Encoder._finish, Failure: Encoder._fail, UsageUpdate: Encoder._note_usage,
    TextStart: Encoder._start_text, ThinkingStart: Encoder._start_thinking, ToolCallStart: Encoder._start_call,
    TextEnd: Encoder._end_text, ThinkingEnd: Encoder._end_thinking, ToolCallEnd: Encoder._end_call,
    ToolCallFailed: Encoder._fail_call, PartEvent: Encoder._write_part, NativeEvent: pass_over,
}  # fmt: skip


# ---------------------------------------------------------------- whole responses and errors


def render_response(
    reply: Reply,
    *,
    new_id: NewId,
    model: str,
    created: int,
    style: ReplyStyle = _PLAIN,
    lost: list[Deviation] | None = None,
) -> bytes:
    """Render a whole response. All text stands before all calls: the protocol has no other order."""
    reply = crossed(reply, NAME, CITED, REASONS, lost, OF_CHOICE)
    id = reply.id if reply.id is not None and reply.id.startswith("chatcmpl-") else f"chatcmpl-{new_id()}"
    reason = "other" if reply.stop_reason == "error" else reply.stop_reason
    fields = native_fields(reply.native, NAME)
    message = _render_message(reply, style)
    kept_choice: dict[str, Json] = {}
    if "choices" in fields:
        kept_choice, kept_message = _kept_choice(fields)
        _merge(message, kept_message)
    word = _word(reason, reply.native_reason, is_refused=message["refusal"] is not None)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": word} | kept_choice
    body: dict[str, Json] = {
        "id": id, "object": "chat.completion", "created": created, "model": model, "choices": [choice],
    }  # fmt: skip
    usage = render_usage(reply.usage, reply.cost, fields.get("usage"))
    if usage is not None:
        body["usage"] = usage
    failure = failure_of(reply)
    if failure is not None:
        body |= _render_problem(failure)
    if fields:
        body |= {key: value for key, value in fields.items() if key not in _OF_THE_END}
    return _json.encode(body)


def _word(reason: StopReason, native: str | None, *, is_refused: bool) -> str:
    """Return the stop reason in the protocol's words. A `refusal` ends with "stop", as OpenAI's own does."""
    return "stop" if is_refused and native == "stop" and reason == "content_filter" else _WORDS[reason]


def _kept_choice(fields: Fields) -> tuple[dict[str, Json], dict[str, Json]]:
    """Return what was kept of the choice and of its message."""
    choices = read_items(fields.get("choices"))
    choice: dict[str, Json] = dict(read_fields(choices[0]) or {}) if choices else {}
    message = read_fields(choice.pop("message", None)) or {}
    return choice, dict(message)


def _render_message(reply: Reply, style: ReplyStyle) -> dict[str, Json]:
    texts = [part for part in reply.parts if isinstance(part, Text)]
    refusals, content = list[str](), ""
    if texts:
        refusals = [part.text for part in texts if "refusal" in native_fields(part.native, NAME)]
        content = "".join([part.text for part in texts if "refusal" not in native_fields(part.native, NAME)])
    calls = [part for part in reply.parts if isinstance(part, ToolCall)]
    is_silent = not content and bool(calls or refusals)
    message: dict[str, Json] = {
        "role": "assistant", "content": None if is_silent else content, "refusal": "".join(refusals) or None,
    }  # fmt: skip
    at = 0
    for text in texts:
        notes = native_fields(text.native, NAME).get("annotations")
        _merge(message, {"annotations": placed(notes, at, at + len(text.text))} if notes is not None else {})
        at += len(text.text)
        message |= _seal(text.signature) if text.signature else {}
    thinking = [part for part in reply.parts if isinstance(part, Thinking)]
    if thinking and (thought := "".join([part.text for part in thinking])):
        message[style.reasoning_field] = thought
    if thinking and any(part.signature or part.redacted for part in thinking):
        message["reasoning_details"] = [
            render_detail(part.text, part.signature, part.redacted, part.native, index=index)
            for index, part in enumerate(thinking)
        ]
    if calls:
        message["tool_calls"] = [render_call(call) for call in calls]
    for part in reply.parts:
        if isinstance(part, (Media, Opaque)):
            _merge(message, render_part(part) or {})
    return message


def _merge(message: dict[str, Json], delta: dict[str, Json]) -> None:
    """Add a part's fields to a message; lists grow."""
    for key, value in delta.items():
        earlier = message.get(key)
        if isinstance(value, Raw):
            value = read_items(value) or value
        if isinstance(value, list) and isinstance(earlier, str) and earlier:
            earlier = [{"type": "text", "text": earlier}]
        message[key] = [*(earlier or ()), *value] if isinstance(value, list) else value


def render_call(call: ToolCall) -> dict[str, Json]:
    """Render an entry of `tool_calls`."""
    if call.kind == "custom":
        body: Json = {"custom": {"name": call.name, "input": call.arguments}}
    else:
        body = {"function": {"name": call.name, "arguments": call.arguments}}
    seal = _seal(call.signature) if call.signature else {}
    return {"id": call.id, "type": call.kind, **body, **seal, **native_fields(call.native, NAME)}


def _seal(signature: str) -> dict[str, Json]:
    """Return the place of the signature behind a call in Gemini's OpenAI endpoint."""
    return {"extra_content": {"google": {"thought_signature": signature}}}


def render_detail(
    text: str | None, signature: str | None, redacted: str | None, native: Native | None, *, index: int | None = None
) -> Json:
    """Render an entry of `reasoning_details`, the form in which OpenRouter sends signatures and accepts them back.

    `index`: its place in an answer: clients join the entries of one index and accept none without. What goes back to a
    provider is unchanged.
    """
    kept = _json.decode(bytes(native_fields(native, NAME).get("reasoning_detail", b"{}")))
    fields: dict[str, Json] = kept if isinstance(kept, dict) else {}
    fields.setdefault("type", "reasoning.encrypted" if redacted else "reasoning.text")
    if index is not None:
        fields["index"] = index
    if redacted:
        return {**fields, "data": redacted}
    if text:
        fields["summary" if fields["type"] == "reasoning.summary" else "text"] = text
    return {**fields, "signature": signature} if signature else fields


def render_part(part: Media | Opaque) -> dict[str, Json] | None:
    """Render a whole part as fields of a delta or a message; None if the protocol has none for it."""
    if isinstance(part, Opaque):
        return {"content": [_json.embed(_json.raw_text(part.raw))]} if part.protocol == NAME else None
    if part.kind == "image":
        return {"images": [{"type": "image_url", "image_url": {"url": image_url(part)}}]}
    if part.kind == "audio" and part.data is not None:
        audio: Mapping[str, Json] = native_fields(part.native, NAME)
        if not audio:  # what the vendor's type requires, with nothing in it, and where our own reader finds the form
            form = {"format": part.mime.removeprefix("audio/")} if part.mime else {}
            audio = {"id": "", "expires_at": 0, "transcript": "", **form}
        return {"audio": {**audio, "data": part.data}}
    return None


def render_error(failure: Failure) -> tuple[int, bytes]:
    """Render a failure before the first byte."""
    # OpenAI's own word for a quota that is spent, where no provider gave another: its SDKs know the error by it.
    is_ours = failure.kind == "quota" and failure.status is None
    return 429 if is_ours else status_of(failure), _json.encode(_render_problem(failure))


def _render_problem(failure: Failure) -> dict[str, Json]:
    type, code = _ERRORS[failure.kind]
    return {"error": {"message": failure.message, "type": type, "param": None, "code": failure.code or code}}
