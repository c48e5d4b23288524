"""Encode events as response bytes of Ollama: lines of a stream, whole responses, error bodies.

Calls are whole in this protocol, so a call leaves at its end, and a failed one never leaves: it is reported at the end
of the answer, as an error in place of the last line. Each call has a line of its own (Zed reads only the first of a
line) with `id` and `function`, never `type` (old Zed accepts no other key).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dragoman import _json
from dragoman._json import Json
from dragoman.codec.counterparts import takes_media
from dragoman.codec.cross_protocol import CrossProtocol, crossed
from dragoman.codec.json_fields import Fields, native_fields
from dragoman.codec.logprobs import OF_ANSWER
from dragoman.codec.timestamps import render_time
from dragoman.errors import CALL_FAILED, FailedCalls, failure_of, status_of
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
from dragoman.protocols.ollama.response.unmodelled import kept_fields
from dragoman.protocols.ollama.wire import NAME, REASONS
from dragoman.types import Media, Native, StopReason, Text, Thinking, ToolCall, Usage

_PLAIN: Final = ReplyStyle()
#: Nanoseconds. Nothing here knows the time, and clients divide by these figures: the least that is not zero.
_UNMEASURED: Final = 1


#: Events that are written, beside text and thinking: starts of parts and pieces of calls have no form here.
_RARE: Final = frozenset(
    {Start, TextStart, TextEnd, ThinkingStart, ThinkingEnd, ToolCallEnd, ToolCallFailed, PartEvent, Finish, Failure,
     NativeEvent}
)  # fmt: skip


class Encoder:
    """Encodes one streamed response."""

    __slots__ = (
        "_after", "_before", "_calls", "_crossing", "_failed", "_held", "_is_over", "_native", "_style", "_thinking",
        "lost",
    )  # fmt: skip

    def __init__(self, *, new_id: NewId, model: str, created: int, style: ReplyStyle = _PLAIN) -> None:
        head = _json.encode({"model": model, "created_at": render_time(created)})[:-1]
        self._before = head + b',"message":{"role":"assistant","content":'
        self._thinking = self._before + b'"","thinking":'
        self._after = b'},"done":false}\n'
        self._style = style
        self._calls = 0
        self._failed = FailedCalls()
        self._crossing = CrossProtocol(NAME, None, REASONS, OF_ANSWER)
        self.lost = self._crossing.lost
        self._held: list[Json] = []  # calls that leave together, where the client wants that
        self._is_over = False
        self._native: Fields = {}  # of the response; the last line tells it

    @property
    def aborted(self) -> bool:
        """Never: no part of a call leaves before the whole of it."""
        return False

    def encode(self, events: Iterable[Event]) -> bytes:
        out: list[bytes] = []
        for event in events:
            if type(event) is TextDelta:
                out.append(b"%b%b%b" % (self._before, _json.encode_text(event.text), self._after))
            elif type(event) is ThinkingDelta:
                out.append(b"%b%b%b" % (self._thinking, _json.encode_text(event.text), self._after))
            elif type(event) in _RARE:
                event = self._crossing.take(event, events)
                self._encode_rare(event, out)
        return b"".join(out)

    def keepalive(self) -> bytes:
        """Return a line without content: the protocol has no other way to say nothing."""
        return b"" if self._is_over else self._line({})

    def _encode_rare(self, event: Event, out: list[bytes]) -> None:
        match event:
            case Start():
                self._native = native_fields(event.native, NAME)
            case ToolCallEnd(_, call):
                rendered = render_call(call, self._calls, is_bare=self._style.bare_calls)
                self._calls += 1
                if self._style.batch_calls:
                    self._held.append(rendered)
                else:
                    out.append(self._line({"tool_calls": [rendered]}))
            case ToolCallFailed():
                self._failed.add(event)
            case PartEvent(_, Media() as media) if takes_media(NAME, media):
                out.append(self._line({"images": [media.data]}))
            case Finish():
                self._flush(out)
                failure = self._failed.failure(event)
                out.append(
                    self._last_line(event) if failure is None else _json.encode(_render_problem(failure)) + b"\n"
                )
                self._is_over = True
            case Failure():
                self._flush(out)
                out.append(_json.encode(_render_problem(event)) + b"\n")
                self._is_over = True
            case _:
                pass  # other parts have no form here

    def _flush(self, out: list[bytes]) -> None:
        if self._held:
            out.append(self._line({"tool_calls": self._held}))
            self._held = []

    def _line(self, message: dict[str, Json]) -> bytes:
        """Return a line whose message has these fields; `content` is always text."""
        rest = {key: value for key, value in message.items() if key != "content"}
        fields = b"," + _json.encode(rest)[1:-1] if rest else b""
        content = _json.encode_text(message.get("content", ""))
        return b"%b%b%b%b" % (self._before, content, fields, self._after)

    def _last_line(self, finish: Finish) -> bytes:
        native = Native(NAME, self._native | native_fields(finish.native, NAME))
        kept, message = kept_fields(native)
        fields = _json.encode(render_end(finish.reason, finish.native_reason, finish.usage) | kept)
        rest = b"," + _json.encode(message)[1:-1] if message else b""
        return b'%b""%b},%b\n' % (self._before, rest, fields[1:])


def render_response(
    reply: Reply,
    *,
    new_id: NewId,
    model: str,
    created: int,
    style: ReplyStyle = _PLAIN,
    lost: list[Deviation] | None = None,
) -> bytes:
    """Render a whole response: one object with all text, all thinking and all calls."""
    reply = crossed(reply, NAME, None, REASONS, lost, OF_ANSWER)
    message: dict[str, Json] = {"role": "assistant"}
    texts = [part.text for part in reply.parts if isinstance(part, Text)]
    message["content"] = "".join(texts)
    thinking = "".join(part.text for part in reply.parts if isinstance(part, Thinking))
    if thinking:
        message["thinking"] = thinking
    images = [part.data for part in reply.parts if isinstance(part, Media) and takes_media(NAME, part)]
    if images:
        message["images"] = images
    calls = [part for part in reply.parts if isinstance(part, ToolCall)]
    if calls:
        message["tool_calls"] = [
            render_call(call, number, is_bare=style.bare_calls) for number, call in enumerate(calls)
        ]
    reason = "other" if reply.stop_reason == "error" else reply.stop_reason
    kept, rest = kept_fields(reply.native)
    end = render_end(reason, reply.native_reason, reply.usage) | kept
    failure = failure_of(reply)
    if failure is not None:
        end |= _render_problem(failure)
    return _json.encode({"model": model, "created_at": render_time(created), "message": message | rest, **end})


def render_call(call: ToolCall, number: int, *, is_bare: bool) -> Json:
    """Render an entry of `tool_calls`; free text of a custom tool is its only argument, `input`."""
    arguments: Json = {"input": call.arguments} if call.kind == "custom" else _json.embed(call.arguments)
    if is_bare:
        return {"function": {"name": call.name, "arguments": arguments}}
    return {"id": call.id, "function": {"index": number, "name": call.name, "arguments": arguments}}


def render_end(reason: StopReason, native_reason: str | None, usage: Usage) -> dict[str, Json]:
    """Return the fields of the last line. Unreported counts are left out."""
    word = "length" if reason == "length" else "stop"
    if native_reason in ("load", "unload") and REASONS[native_reason] == reason:
        word = native_reason
    counts = {
        "total_duration": _UNMEASURED,
        "load_duration": _UNMEASURED,
        "prompt_eval_count": usage.input,
        "prompt_eval_duration": _UNMEASURED,
        "eval_count": usage.output,
        "eval_duration": _UNMEASURED,
    }
    return {"done": True, "done_reason": word} | {key: value for key, value in counts.items() if value is not None}


def render_error(failure: Failure) -> tuple[int, bytes]:
    """Render a failure before the first byte: `{"error": "words"}`."""
    return status_of(failure), _json.encode(_render_problem(failure))


def _render_problem(failure: Failure) -> dict[str, Json]:
    code: dict[str, Json] = {"code": CALL_FAILED} if failure.code == CALL_FAILED else {}
    return {"error": failure.message, **code}
