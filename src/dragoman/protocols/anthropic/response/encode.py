"""Encode events as bytes of the Messages API: the stream, the whole message, error bodies.

Blocks stand strictly one after the other, counted from 0. Every event has its `event:` line, because the official SDK
skips those without. A block opens with its first content, so that an empty text and a call that fails before its first
argument leave no trace of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.cross_protocol import CrossProtocol, crossed
from dragoman.codec.framing.body import write_event
from dragoman.errors import CALL_FAILED, NOT_STORED, STATUS, FailedCalls, failure_kind, failure_of
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
    ToolCallDelta,
    ToolCallEnd,
    ToolCallFailed,
    ToolCallStart,
    UsageUpdate,
)
from dragoman.protocol import NewId, ReplyStyle
from dragoman.protocols.anthropic.response.search_blocks import cited
from dragoman.protocols.anthropic.response.usage import render_usage
from dragoman.protocols.anthropic.wire import (
    ERROR_TYPES,
    NAME,
    STOP_REASONS,
    own_fields,
    read_fields,
    read_items,
    read_text,
    sent_id,
)
from dragoman.types import NO_USAGE, Media, Native, Opaque, Part, StopReason, Text, Thinking, ToolCall, ToolResult

_Object: TypeAlias = dict[str, Json]

_PLAIN_STYLE: Final = ReplyStyle()
_PING: Final = b'event: ping\ndata: {"type":"ping"}\n\n'
_STOP: Final = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
_START: Final = (
    b'event: message_start\ndata: {"type":"message_start","message":{"id":%b,"type":"message","role":"assistant",'
    b'"model":%b,"content":[],"stop_reason":null,"stop_sequence":null,"usage":%b%b}}'
    b"\n\n"
)
_BLOCK_START: Final = (
    b'event: content_block_start\ndata: {"type":"content_block_start","index":%d,"content_block":%b}\n\n'
)
_BLOCK_STOP: Final = b'event: content_block_stop\ndata: {"type":"content_block_stop","index":%d}\n\n'
_END: Final = b'event: message_delta\ndata: {"type":"message_delta","delta":%b,"usage":%b%b}\n\n'
_BLOCK_DELTA: Final = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":%b}\n\n'
_DELTA: Final = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":%s:'
_WORD_OF_REASON: Final[dict[StopReason, str]] = {
    "stop": "end_turn", "length": "max_tokens", "tool_use": "tool_use", "content_filter": "refusal",
    "other": "end_turn",
}  # fmt: skip
_KEYS_OF_START: Final = frozenset({"id", "type", "role", "model", "content", "stop_reason", "usage"})
#: Kept fields that a stream tells in the delta of its end; what else its end tells stands beside that.
_KEYS_OF_DELTA: Final = frozenset({"stop_sequence", "stop_details", "container"})
_NO_COUNTS: Final[_Object] = {"input_tokens": 0, "output_tokens": 0}


class Encoder:
    """Encodes one response."""

    __slots__ = (
        "_aborted", "_at_start", "_crossing", "_failed", "_head", "_index", "_kept", "_kind", "_model", "_new_id",
        "_opening", "_state", "lost",
    )  # fmt: skip

    def __init__(self, *, new_id: NewId, model: str, created: int, style: ReplyStyle = _PLAIN_STYLE) -> None:
        """Create it. This protocol has no place for `created`."""
        self._new_id = new_id
        self._model = model
        self._kept: dict[str, Raw] = {}  # the native fields that `Start` told
        self._at_start = NO_USAGE  # the counts that came with `Start`
        self._index = -1  # of the block that was opened last
        self._state: Literal["closed", "pending", "open"] = "closed"  # of the block that the events speak of
        self._kind: Literal["text", "thinking", "call"] = "text"
        self._opening: _Object = {}  # the `content_block` to come
        self._head = b""  # what stands before the text of a delta
        self._aborted = False
        self._failed = FailedCalls()
        self._crossing = CrossProtocol(NAME, cited(style), STOP_REASONS)
        self.lost = self._crossing.lost

    def encode(self, events: Iterable[Event]) -> bytes:
        out: list[bytes] = []
        events = events if isinstance(events, list | tuple) else list(events)  # looked at ahead of time
        for event in events:
            kind = type(event)
            if kind is TextDelta or kind is ToolCallDelta or kind is ThinkingDelta:
                if self._state != "open":
                    if self._state == "closed":  # free text, which leaves whole, or what follows an abort
                        continue
                    self._open(out)
                out.append(self._head + _json.encode_text(event.text) + b"}}\n\n")  # type: ignore[union-attr]
            elif kind in _WRITERS and not self._aborted:
                event = self._crossing.take(event, events)
                if kind is Start:
                    self._at_start = next((later.usage for later in events if type(later) is UsageUpdate), NO_USAGE)
                _WRITERS[kind](self, event, out)
                if self._crossing.further:
                    self._write_further(out)
        return b"".join(out)

    def keepalive(self) -> bytes:
        """Return a ping, which may stand anywhere."""
        return _PING

    @property
    def aborted(self) -> bool:
        """Whether a call that had begun to leave has failed: cut the connection, do not end it."""
        return self._aborted

    # ------------------------------------------------------------ the message

    def _start(self, event: Start, out: list[bytes]) -> None:
        self._kept = own_fields(event.native)
        extras = {key: value for key, value in _extras(event.native).items() if not key.startswith("stop_")}
        id = _json.encode_text(_message_id(event.id, self._new_id))
        usage = _NO_COUNTS | render_usage(self._at_start, self._kept.get("usage"))
        out.append(_START % (id, _json.encode_text(self._model), _json.encode(usage), _beside(extras)))

    def _finish(self, event: Finish, out: list[bytes]) -> None:
        failure = self._failed.failure(event)
        if failure is not None:
            self._fail(failure, out)
            return
        for part in self._crossing.blocks:
            self._write_whole(dict(read_fields(part.raw) or {}), out)
        delta: _Object = {"stop_reason": _stop_word(event.reason, event.native_reason), "stop_sequence": None}
        said = own_fields(event.native)
        delta |= {key: value for key, value in self._kept.items() if key.startswith("stop_") and key != "stop_reason"}
        delta |= {key: value for key, value in said.items() if key in _KEYS_OF_DELTA}
        beside = {key: value for key, value in _extras(event.native).items() if key not in _KEYS_OF_DELTA}
        usage = render_usage(event.usage, said.get("usage", self._kept.get("usage")))
        out.append(_END % (_json.encode(delta), _json.encode(usage), _beside(beside)) + _STOP)

    def _fail(self, failure: Failure, out: list[bytes]) -> None:
        """End with a failure. An open block is never closed, because the SDKs would run a half call."""
        self._aborted = self._failed.has_left or (self._state == "open" and self._kind == "call")
        self._state = "closed"
        out.append(b"event: error\ndata: " + _error_body(failure) + b"\n\n")

    # ------------------------------------------------------------ blocks

    def _start_text(self, event: TextStart, out: list[bytes]) -> None:
        self._expect("text", {"type": "text", "text": "", **own_fields(event.native)})

    def _start_thinking(self, event: ThinkingStart, out: list[bytes]) -> None:
        self._expect("thinking", {"type": "thinking", "thinking": "", "signature": "", **own_fields(event.native)})

    def _start_call(self, event: ToolCallStart, out: list[bytes]) -> None:
        self._expect("call", _call_block(event.id, event.name, Raw(b"{}"), event.native))
        if event.kind == "custom":
            self._state = "closed"

    def _expect(self, kind: Literal["text", "thinking", "call"], block: _Object) -> None:
        """Prepare a block, which opens with its first content."""
        self._kind, self._opening, self._state = kind, block, "pending"

    def _open(self, out: list[bytes]) -> None:
        self._index += 1
        self._state = "open"
        out.append(_BLOCK_START % (self._index, _json.encode(self._opening)))
        head = {
            "text": b'"text_delta","text"', "thinking": b'"thinking_delta","thinking"',
            "call": b'"input_json_delta","partial_json"',
        }[self._kind]  # fmt: skip
        self._head = _DELTA % (self._index, head)

    def _delta(self, delta: _Object, out: list[bytes]) -> None:
        out.append(_BLOCK_DELTA % (self._index, _json.encode(delta)))

    def _stop(self, out: list[bytes]) -> None:
        if self._state == "open":
            out.append(_BLOCK_STOP % self._index)
        self._state = "closed"

    def _end_text(self, event: TextEnd, out: list[bytes]) -> None:
        citations = read_items(own_fields(event.native).get("citations")) or []
        if citations and self._state == "pending":
            self._open(out)
        for citation in citations:
            self._delta({"type": "citations_delta", "citation": citation}, out)
        self._stop(out)

    def _end_thinking(self, event: ThinkingEnd, out: list[bytes]) -> None:
        if event.redacted is not None:
            self._stop(out)
            self._write_whole({"type": "redacted_thinking", "data": event.redacted}, out)
            return
        if event.signature:
            if self._state == "pending":
                self._open(out)
            self._delta({"type": "signature_delta", "signature": event.signature}, out)
        self._stop(out)

    def _end_call(self, event: ToolCallEnd, out: list[bytes]) -> None:
        if self._state != "open":
            self._open(out)
            arguments = _arguments(event.call)
            if arguments not in ("", "{}"):
                self._delta({"type": "input_json_delta", "partial_json": arguments}, out)
        self._stop(out)

    def _fail_call(self, event: ToolCallFailed, out: list[bytes]) -> None:
        """Keep a failed call for the end. A block that opened for it is never closed."""
        self._failed.add(event, has_left=self._state == "open" and self._kind == "call")
        self._state = "closed"

    def _write_part(self, event: PartEvent, out: list[bytes]) -> None:
        block = _block(event.part)
        if block is not None and block.get("type") == "text":
            self._write_text(block["text"], out)
        elif block is not None:
            self._write_whole(block, out)

    def _write_further(self, out: list[bytes]) -> None:
        """Write the blocks that belong to the previous one."""
        for part in self._crossing.further:
            self._write_whole(dict(read_fields(part.raw) or {}), out)
        self._crossing.further = []

    def _native_event(self, event: NativeEvent, out: list[bytes]) -> None:
        """Write an event of this protocol that may stand between blocks."""
        fields = read_fields(event.raw) if event.protocol == NAME else None
        if fields is not None:
            out.append(write_event(_json.encode(fields), read_text(fields.get("type"))))

    def _write_text(self, text: str, out: list[bytes]) -> None:
        self._expect("text", {"type": "text", "text": ""})
        self._open(out)
        self._delta({"type": "text_delta", "text": text}, out)
        self._stop(out)

    def _write_whole(self, block: _Object, out: list[bytes]) -> None:
        """Write a block whose start contains all of it."""
        self._opening = block
        self._open(out)
        self._stop(out)


#: What writes an event, beside those that let a part grow. The others are not written: the last usage is on `Finish`.
_WRITERS: Final[Mapping[type, Callable[[Encoder, Any, list[bytes]], None]]] = {
    Start: Encoder._start, Finish: Encoder._finish, Failure: Encoder._fail, PartEvent: Encoder._write_part,
    TextStart: Encoder._start_text, ThinkingStart: Encoder._start_thinking, ToolCallStart: Encoder._start_call,
    TextEnd: Encoder._end_text, ThinkingEnd: Encoder._end_thinking,
    ToolCallEnd: Encoder._end_call, ToolCallFailed: Encoder._fail_call,
    NativeEvent: Encoder._native_event,
}  # fmt: skip


def render_response(
    reply: Reply,
    *,
    new_id: NewId,
    model: str,
    created: int,
    style: ReplyStyle = _PLAIN_STYLE,
    lost: list[Deviation] | None = None,
) -> bytes:
    """Render a whole message. This protocol has no place for `created`."""
    reply = crossed(reply, NAME, cited(style), STOP_REASONS, lost)
    blocks = [_block(part) for part in reply.parts]
    reason: StopReason = "other" if reply.stop_reason == "error" else reply.stop_reason
    message: _Object = {
        "id": _message_id(reply.id, new_id),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [block for block in blocks if block is not None],
        "stop_reason": _stop_word(reason, reply.native_reason),
        "stop_sequence": None,
        "usage": {"input_tokens": 0, **render_usage(reply.usage, own_fields(reply.native).get("usage"))},
    }
    failure = failure_of(reply)
    if failure is not None:
        message["error"] = _problem(failure)
    return _json.encode(message | _extras(reply.native))


def render_error(failure: Failure) -> tuple[int, bytes]:
    """Render a failure before the first byte: HTTP status and body."""
    return _status(failure), _error_body(failure)


def _extras(native: Native | None) -> _Object:
    """Return the native fields that a message may have beside those written here."""
    return {key: value for key, value in own_fields(native).items() if key not in _KEYS_OF_START} if native else {}


def _beside(fields: _Object) -> bytes:
    """Return fields that follow others in an object."""
    return b"," + _json.encode(fields)[1:-1] if fields else b""


def _message_id(id: str | None, new_id: NewId) -> str:
    return id if id and id.startswith("msg_") else f"msg_{new_id()}"


def _stop_word(reason: StopReason, native: str | None) -> str:
    """Return the wire's own word if it is one of this protocol's for this reason, else the usual one."""
    if native is not None and STOP_REASONS.get(native) == reason:
        return native
    return _WORD_OF_REASON[reason]


def _status(failure: Failure) -> int:
    """Return the provider's own status if it matches the failure, else the kind's; overload is 529 here."""
    if failure.kind == "overloaded":
        return 529
    if failure.status is not None and failure.status >= 400 and failure_kind(failure.status) == failure.kind:
        return failure.status
    return STATUS[failure.kind]


def _error_body(failure: Failure) -> bytes:
    return _json.encode({"type": "error", "error": _problem(failure)})


def _problem(failure: Failure) -> _Object:
    status = _status(failure)
    kind = ERROR_TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
    return {"type": kind, "message": failure.message, **_code(failure.code)}


def _code(code: str | None) -> _Object:
    """Return the field for a failure's code. Clients know what to do for some of the API's own ones."""
    if code == CALL_FAILED:
        return {"code": code}
    if code is None or code in ERROR_TYPES.values():
        return {}
    return {"details": {"error_code": "thread_unsupported_request" if code == NOT_STORED else code}}


def _call_block(id: str, name: str, input: Raw, native: Native | None) -> _Object:
    return {"type": "tool_use", "id": sent_id(id), "name": name, "input": input, **own_fields(native)}


def _arguments(call: ToolCall) -> str:
    """Return the text of an object; free text stands under `input`."""
    return call.arguments if call.kind == "function" else _json.to_text({"input": call.arguments})


def _block(part: Part) -> _Object | None:
    """Return a part of an answer as a whole block; None if this protocol has no block for it."""
    match part:
        case Text(text, _, native):
            return {"type": "text", "text": text, **own_fields(native)}
        case Thinking(text, signature, redacted, native):
            if redacted is not None:
                return {"type": "redacted_thinking", "data": redacted, **own_fields(native)}
            return {"type": "thinking", "thinking": text, "signature": signature or "", **own_fields(native)}
        case ToolCall():
            arguments = _json.embed(_arguments(part) or "{}")
            return _call_block(part.id, part.name, arguments, part.native)
        case Opaque(protocol, raw):
            return dict(read_fields(raw) or {}) or None if protocol == NAME else None
        case Media() | ToolResult():  # a result stands in requests only
            return None
