"""Decode response bytes of the Messages API; whole messages and error bodies go the same way."""

from __future__ import annotations

from collections.abc import Iterable
from weakref import ref

from dragoman import _json
from dragoman._json import Malformed, Raw
from dragoman.bounds import USUAL_BOUNDS, AnswerBounds
from dragoman.codec.delta_batch import LastFrame
from dragoman.codec.errors.error_body import holds_error, is_problem, read_problem
from dragoman.codec.framing.body import BodyReader, Frame, TooLarge
from dragoman.codec.framing.entries import check_entries
from dragoman.codec.parts import torn_frames
from dragoman.codec.parts.argument_growth import grow_by_many
from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.parts.response_end import SECOND
from dragoman.codec.parts.unread_arguments import note_frame, note_late, tell_unread, tell_unread_event
from dragoman.codec.repeated_keys import repeats_key, tell_twice, tells_more
from dragoman.events import Event, Failure, NativeEvent
from dragoman.protocol import PLAIN, Dialect, NewId, TakesNothing, takes_nothing
from dragoman.protocols.anthropic.response.blocks import Blocks
from dragoman.protocols.anthropic.response.delta_batch import read_burst
from dragoman.protocols.anthropic.response.lenient import (
    calls_in_start,
    event_kind,
    is_message,
    look_in_end,
    look_in_message,
    note_start,
    read_blocks,
    read_event_leniently,
    tell_foreign,
    tell_missing,
)
from dragoman.protocols.anthropic.response.told_again import ToldBlocks, compare, look_at_edge
from dragoman.protocols.anthropic.response.usage import Counts, rest_of_usage
from dragoman.protocols.anthropic.wire import (
    CALL_EVENTS,
    EVENTS,
    MESSAGE,
    NAME,
    OWN_FIELDS,
    SIBLING_REASONS,
    STOP_REASONS,
    UNSET,
    StreamEvent,
    decode_event,
    decode_fields,
    delta_fields,
    is_usual_start,
    keep,
    read,
    read_fields,
    read_items,
    read_object,
    read_text,
    rest_of,
)

_ENVELOPES = ("message", "data", "response", "result", "body", "output", "completion", "chunk")
_AFTER_START = frozenset({"content_block_start", "content_block_delta", "message_delta", "message_stop"})
_TEXTS = ("text_delta", "thinking_delta")


class Decoder:
    """Decodes one response."""

    __slots__ = (
        "__weakref__", "_assembly", "_blocks", "_content_of_start", "_counts", "_grown", "_held_content", "_id",
        "_last", "_reader", "_start_reason", "_told_at_start", "_told_blocks",
    )  # fmt: skip

    def __init__(
        self,
        *,
        new_id: NewId,
        offered_names: frozenset[str] = frozenset(),
        takes_nothing: TakesNothing = takes_nothing,
        dialect: Dialect = PLAIN,
        bounds: AnswerBounds = USUAL_BOUNDS,
    ) -> None:
        self._assembly = Assembly(new_id, offered_names, takes_nothing=takes_nothing, bounds=bounds)
        self._reader = BodyReader(self._assembly.deviate, bounds=bounds, decoder=ref(self), of_calls=CALL_EVENTS)
        self._blocks = Blocks(self._assembly)
        self._told_blocks = ToldBlocks(self._assembly)
        self._last = LastFrame()
        self._grown = self._blocks.by_index.get(-1)  # the block that it let grow: none so far
        self._counts = Counts(self._assembly.deviate, self._assembly.usage)
        self._held_content = UNSET  # of `message_start`: it counts where no block says it
        self._content_of_start = UNSET  # where blocks say it
        self._told_at_start: frozenset[str] = frozenset()  # ids of calls with arguments in `message_start`
        self._start_reason = ""  # of `message_start`: it counts at the end, where no other came
        self._id: str | None = None  # None: it did not start

    def feed(self, data: bytes) -> list[Event]:
        if self._assembly.phase != "closed":
            if (text := self._last.read(data)) and (total := self._reader.total_with(data)):  # as the event before
                self._reader.total = total
                self._grow(text)
            else:
                self._read(self._reader.feed(data))
        return self._assembly.take()

    def _grow(self, text: str) -> None:
        """Append a text to what the last frame let grow."""
        block = self._grown
        if block is not None and block.call is not None:
            self._assembly.add_arguments(block.call, text)
        elif block is not None and block.part is not None:
            self._assembly.add(block.part, text)

    def close(self) -> list[Event]:
        self._read(self._reader.close())
        if self._assembly.phase == "open":
            self._blocks.finish(is_good=self._assembly.ending.reason is not None)
            if self._assembly.is_empty and self._reader.stray and not self._assembly.started:
                failure = read_problem(self._reader.stray, status=None)
                self._assembly.fail("wire", f"expected a response, got {failure.message}", code=failure.code)
        self._assembly.close(marker="message_stop", empty=self._reader.seen, body=self._reader.document)
        return self._assembly.take()

    def fail(self, failure: Failure) -> list[Event]:
        if self._assembly.phase == "open":
            self._blocks.finish(is_good=False)
        self._assembly.break_off(failure)
        return self._assembly.take()

    @property
    def ended(self) -> bool:
        return self._assembly.phase != "open"

    def _read(self, frames: Iterable[Frame]) -> None:
        """Take frames; the usual deltas at once."""
        assembly, by_index, calls, last = self._assembly, self._blocks.by_index, self._blocks.open_calls, self._last
        try:
            for frame, name in frames:
                if text := last.read(frame):  # as the one before
                    self._grow(text)
                    continue
                event = decode_event(frame)
                if type(event) is not StreamEvent:
                    last.forget()
                    self._read_leniently(frame, name)
                    continue
                is_alone = not (event.error or event.content_block or event.message)
                if is_alone and (delta := event.delta) is not None and event.type == "content_block_delta":
                    block = self._grown = by_index.get(event.index)
                    if block is not None and block.takes == delta.type != "":
                        if block.call is not None:
                            if (
                                (text := delta.partial_json)
                                and ('"' in text or block.call.text.phase != "held")
                                and frame.count(b'"partial_json"') == frame.count(b'"delta"') == 1
                                and frame.count(b'"type"') < 3
                                and (len(calls) < 2 or frame.count(b'"index"') < 2)
                            ):
                                assembly.add_arguments(block.call, text)
                                last.learn(frame, b'"partial_json"', self._reader.head)
                                continue
                        elif block.part is not None:
                            is_text = block.takes == "text_delta"
                            if text := delta.text if is_text else delta.thinking:
                                key = b'"text"' if is_text else b'"thinking"'
                                if frame.count(key) > 1 and tells_more(frame, key):
                                    assembly.deviate("repeated-key", "delta")
                                assembly.add(block.part, text)
                                last.learn(frame, key, self._reader.head)
                                continue
                last.forget()
                self._process(event, frame, name)
        except TooLarge as problem:
            assembly.fail("answer_too_large", str(problem))

    def read_batch(self, lines: list[bytes]) -> int:
        """Take deltas that all let one block grow."""
        burst = read_burst(lines)
        block = self._blocks.by_index.get(burst.block) if burst is not None else None
        if burst is None or block is None or block.takes != burst.takes:
            return 0
        if block.call is not None:
            if block.call.text.phase == "held" and not any('"' in text for text in burst.texts):
                return 0  # they may say nothing, and something beside them arguments
            return grow_by_many(block.call, burst.texts, self._assembly)
        if block.part is None:
            return 0
        self._assembly.add_many(block.part, burst.texts)
        return len(lines)

    # ------------------------------------------------------------ events

    def _process(self, event: StreamEvent, frame: bytes, name: bytes) -> None:
        kind = event_kind(event, frame, name, self._assembly)
        if kind == "error" or (event.error and self._holds_error(event)):
            if kind == "message" and self._assembly.is_empty and self._assembly.phase == "open":
                self._read_message(frame)  # what came beside the error stays
            self._fail(frame)
        elif self._assembly.phase != "open":
            self._process_late(kind, event)
        else:
            if not self._assembly.started and kind in _AFTER_START:
                self._assembly.deviate("missing-start", "message_start")
                self._assembly.start()
            self._dispatch(kind, event, frame)

    def _dispatch(self, kind: str, event: StreamEvent, frame: bytes) -> None:
        is_call = frame.find(b"tool_use") >= 0
        if is_call and kind == "content_block_start" and is_usual_start(frame):
            return self._start_block(event, frame, is_usual=True)
        if (is_call or frame.find(b"partial_json") >= 0) and repeats_key(frame):
            name = read_text((read_fields(event.content_block) or {}).get("name"))
            torn_frames.refuse(self._assembly, kind, frame, name)
            kind = kind if kind == "message" else "ping"  # of a whole message its end counts
        again = event.content_block if kind == "content_block_stop" else UNSET
        if again and self._told_blocks.has(self._blocks.by_index.get(event.index), again):
            event.content_block = UNSET
        if kind in ("message_start", "message_stop"):
            look_at_edge(kind, event, frame, self._assembly)
        tell_foreign(kind, event, frame, self._assembly)
        if kind == "content_block_delta":
            delta = event.delta
            if delta is not None and delta.type in _TEXTS and not (delta.text or delta.thinking):
                if tells_more(frame, b'"text"' if delta.type == "text_delta" else b'"thinking"', 0):
                    self._assembly.deviate("repeated-key", "delta")
                tell_missing(delta.type.removesuffix("_delta"), frame, self._assembly)
            self._blocks.grow(event, frame)
        elif kind == "content_block_start":
            self._start_block(event, frame)
        elif kind == "content_block_stop":
            self._blocks.stop(event.index)
        elif kind == "message_start":
            self._start(event)
        elif kind == "message_delta":
            self._message_delta(event, frame)
        elif kind == "message_stop":
            self._counts.take(event.usage)
            self._end()
        elif kind == "message":
            self._message(frame)
        elif kind == "system.message":
            self._assembly.native_event(NativeEvent(NAME, Raw(bytes(frame))))
        elif kind != "ping":
            self._process_unknown(kind, frame)

    def _process_late(self, kind: str, event: StreamEvent) -> None:
        """Take an event after the end, of which only usage counts."""
        if kind in ("message_delta", "message_start"):
            self._counts.take(event.usage)
        if event.delta is not None:
            note_late(self._assembly, event.delta.partial_json)
        if kind != "ping":
            self._assembly.deviate("after-end", "end", kind)

    def _process_unknown(self, kind: str, frame: bytes) -> None:
        """Take an unknown event: a wrapper, an error of another form, or a new type."""
        fields = decode_fields(frame)
        if isinstance(fields, Malformed):
            return
        for key in _ENVELOPES:
            inner = read_fields(fields.get(key))
            if inner is not None and (read_text(inner.get("type")) in EVENTS or is_message(inner)):
                self._assembly.deviate("envelope", key)
                tell_unread(self._assembly, {name: fields[name] for name in fields.keys() - {key}}, "event")
                return self._read([(bytes(fields[key]), b"")])
        value = _json.decode_lenient(frame)
        if not kind and isinstance(value, dict) and is_problem(value):
            return self._fail(frame)
        self._assembly.deviate("unknown-event", kind or "(no type)")
        tell_unread_event(self._assembly, value, kind or "(no type)")
        note_frame(self._assembly, frame)

    # ------------------------------------------------------------ the message

    def _start(self, event: StreamEvent) -> None:
        fields = read_object(event.message, MESSAGE, "message", self._assembly.deviate)
        if fields is None:
            self._assembly.deviate("missing-field", "message_start.message")
            fields = {}
        elif self._assembly.started:
            is_another = self._id and read_text(fields.get("id")) not in ("", self._id)
            if self._id is None:
                self._blocks.go_on()
            elif self._assembly.opened_calls or (is_another and not self._assembly.is_empty):
                self._blocks.finish(is_good=False)
                return self._assembly.fail(*SECOND)
            self._assembly.deviate("duplicate-start", "message_start")
        if bytes(fields.get("content", UNSET)) not in (b"", b"[]", b"null", b'""', b'"[]"'):
            self._held_content = keep(fields["content"])
        self._start_reason = read_text(fields.get("stop_reason"))
        self._begin({"usage": event.usage, **fields}, "stop_sequence")
        self._counts.take(fields.get("usage", event.usage))

    def _begin(self, fields: dict[str, Raw], *skipped: str) -> None:
        native = rest_of(
            fields | rest_of_usage(fields.get("usage")),
            "id", "type", "role", "model", "content", "stop_reason", *skipped,
        )  # fmt: skip
        if native is not None:
            beside = {key: native.fields[key] for key in native.fields.keys() - OWN_FIELDS}
            tell_unread(self._assembly, beside, "message")
        self._id = self._id or read_text(fields.get("id"))
        self._assembly.start(self._id, read_text(fields.get("model")), native=native)

    def _start_block(self, event: StreamEvent, frame: bytes, *, is_usual: bool = False) -> None:
        """Open a block. The content of `message_start` stands before blocks that count on from it.

        `is_usual`: nothing else stands in the frame.
        """
        if self._held_content:
            held, self._held_content = self._held_content, UNSET
            if event.index == len(read_items(held) or ()):
                self._content(held)
            else:
                self._assembly.deviate("duplicate-final", "message_start.message.content")
                self._told_at_start = calls_in_start(held, self._assembly)
                self._content_of_start = held
        block = self._blocks.start(event, frame, is_usual=is_usual)
        if not is_usual or self._told_at_start:
            note_start(block, event, frame, self._told_at_start, assembly=self._assembly)

    def _message_delta(self, event: StreamEvent, frame: bytes) -> None:
        tell_twice(frame, (b'"stop_reason"', b'"usage"', b'"output_tokens"'), self._assembly.deviate)
        fields = delta_fields(frame)
        self._counts.take(event.usage or fields.get("usage"))
        beside = {} if isinstance(top := decode_fields(frame), Malformed) else top
        reason = event.delta.stop_reason if event.delta is not None else ""
        if not reason and (reason := read_text(beside.get("stop_reason"))):
            self._assembly.deviate("wrong-type", "message_delta", "a stop reason outside of the delta")
        look_in_end(beside, fields, self._assembly)
        if reason:
            told = {key: value for key, value in beside.items() if key not in ("delta", "index", "error", "usage")}
            self._stop_reason(reason, told | fields)

    def _message(self, frame: bytes) -> None:
        """Take a whole message: the response if no stream came, else a repetition of it."""
        fields = self._read_message(frame)
        if not fields:
            return
        if reason := read_text(fields.get("stop_reason")):
            self._stop_reason(reason, {key: value for key, value in fields.items() if key.startswith("stop_")})
        self._end()

    def _read_message(self, frame: bytes) -> dict[str, Raw]:
        """Read the content and counts of a whole message. Return its fields."""
        fields = decode_fields(frame)
        if isinstance(fields, Malformed):
            return {}
        if not self._assembly.is_empty:
            self._assembly.deviate("duplicate-final", "message")
            compare(fields.get("content"), self._assembly)
        else:
            self._begin(fields)
            self._assembly.said.is_whole = True
            self._content(fields.get("content"))
            look_in_message(fields, self._assembly)
        self._counts.take(fields.get("usage"))
        return fields

    def _content(self, content: Raw | None) -> None:
        """Read the content of a whole message."""
        items = read_blocks(content, self._assembly)
        if items is None:
            text = read_text(content)
            is_missing = content is None or bytes(content) in (b"null", b'""')
            self._assembly.deviate("missing-field" if is_missing else "wrong-type", "content")
            if text:
                self._assembly.text(text)
                self._assembly.end_run()
            return
        check_entries(items, self._assembly.bounds)
        for index, item in enumerate(items):
            fields = read_fields(item)
            if fields is None:
                self._assembly.deviate("wrong-type", f"content[{index}]")
                if text := read_text(item):
                    self._assembly.text(text)
                continue
            self._assembly.end_run()
            self._blocks.open(index, fields)
            self._blocks.stop(index)

    def _stop_reason(self, word: str, fields: dict[str, Raw]) -> None:
        reason = STOP_REASONS.get(word)
        if reason is None:
            reason = SIBLING_REASONS.get(word.lower(), "other")
            self._assembly.deviate("stop-reason", "stop_reason", word)
        told = fields | ({"usage": _json.raw(self._counts.rest)} if self._counts.rest else {})
        self._assembly.finish(word, reason, native=rest_of(told, "stop_reason", "type"))

    def _end(self) -> None:
        """Take `message_stop`, or the end of a whole message."""
        assembly = self._assembly
        if assembly.is_empty and self._held_content:
            self._content(self._held_content)
        if assembly.ending.reason is None and self._start_reason:
            self._stop_reason(self._start_reason, {})
        if assembly.ending.reason is None:
            assembly.deviate("missing-stop-reason", "stop_reason")
        if self._content_of_start:
            compare(self._content_of_start, assembly, is_start=True)
        self._blocks.finish(is_good=assembly.ending.reason is not None)
        assembly.end()

    # ------------------------------------------------------------ errors and the lenient reader

    def _holds_error(self, event: StreamEvent) -> bool:
        error = read(event.error)
        if error is not None and not holds_error(error):
            self._assembly.deviate("empty-error", "error")
            return False
        return error is not None

    def _fail(self, frame: bytes) -> None:
        if self._assembly.phase != "open":
            self._assembly.deviate("after-end", "end", "error")
            return
        failure = read_problem(frame, status=None)
        self._blocks.finish(is_good=False)
        self._assembly.fail(
            failure.kind, failure.message, status=failure.status, retry_after=failure.retry_after, code=failure.code
        )

    def _read_leniently(self, frame: bytes, name: bytes) -> None:
        """Read a frame that breaks the specification field by field."""
        if frame.strip() == b"[DONE]":
            self._process_done()
            return
        if name == b"error":
            return self._fail(frame)
        value = _json.decode_lenient(frame)
        if isinstance(value, Malformed):
            is_stream = self._reader.kind != "document"
            torn_frames.unreadable(self._assembly, "stream", value.problem, frame, is_stream=is_stream)
        elif isinstance(value, dict):
            try:
                event, plain = read_event_leniently(value, frame, self._assembly)
            except RecursionError:
                torn_frames.lose_open_calls(self._assembly, "stream", "nested too deeply")
                return
            self._process(event, plain, name)
        elif value is not None:
            self._read((_json.encode(item), name) for item in torn_frames.objects_in(self._assembly, "stream", value))

    def _process_done(self) -> None:
        """Take OpenAI's end marker, which only confirms an end."""
        if (assembly := self._assembly).phase == "open" and assembly.ending.reason is not None:
            assembly.deviate("no-end-marker", "end", "[DONE] in place of message_stop")
            self._blocks.finish(is_good=True)
            assembly.end()
