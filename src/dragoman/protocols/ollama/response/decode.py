"""Decode response bytes of Ollama: streams of lines, whole responses, error bodies.

The end is a line with `done: true`; a body that ends without one is cut. Calls stand in `tool_calls` of some line, the
last one included (`calls.py`).
"""

from __future__ import annotations

from typing import Final

from dragoman import _json
from dragoman._json import Json, Malformed
from dragoman.bounds import USUAL_BOUNDS, AnswerBounds
from dragoman.codec.containers import straighten
from dragoman.codec.errors.error_body import holds_error, is_problem, read_problem
from dragoman.codec.framing.body import BodyReader, TooLarge
from dragoman.codec.framing.entries import check_entries
from dragoman.codec.json_fields import read
from dragoman.codec.parts import torn_frames
from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.parts.unread_arguments import fields_at, note_frame, noted, tell_unread
from dragoman.codec.repeated_keys import has_plain_parts, repeats_key, tell_twice, tells_more
from dragoman.codec.timestamps import parse_time
from dragoman.events import Event, Failure
from dragoman.protocol import PLAIN, Dialect, NewId, TakesNothing, takes_nothing
from dragoman.protocol.media_types import type_of_base64
from dragoman.protocols.ollama.response.calls import CallReader, text_of, whole_calls
from dragoman.protocols.ollama.response.unmodelled import Kept, tell_unread_of
from dragoman.protocols.ollama.wire import (
    ENVELOPES,
    FOREIGN_REASONS,
    HEADS,
    NAME,
    NOT_MODELLED,
    NOTHING,
    OBJECTS,
    PLACES,
    REASONS,
    Answer,
    Head,
    Line,
    PlainLine,
    decode_fields,
    decode_head,
    decode_known,
    decode_line,
    decode_plain_line,
    holds_more,
    is_nameless,
    read_line_leniently,
    says_message_alone,
    says_nothing,
    unread_in,
    with_unread,
)
from dragoman.types import Media, Native, Usage

#: What an image has that goes back to a client of this protocol alone.
_OWN: Final = Native(NAME, {})


class Decoder:
    """Decodes one response."""

    __slots__ = ("_assembly", "_begun", "_calls", "_is_call", "_is_plain", "_kept", "_reader")

    def __init__(
        self,
        *,
        new_id: NewId,
        offered_names: frozenset[str] = frozenset(),
        takes_nothing: TakesNothing = takes_nothing,
        dialect: Dialect = PLAIN,
        bounds: AnswerBounds = USUAL_BOUNDS,
    ) -> None:
        self._assembly = Assembly(
            new_id, offered_names, takes_nothing=takes_nothing, bounds=bounds, names_tool_use=False, needs_ids="note"
        )
        self._reader = BodyReader(self._assembly.deviate, bounds=bounds)
        self._kept = Kept(bounds)
        self._begun = False
        self._is_plain = self._is_call = False  # the next line may say text, or a call, and nothing else
        self._calls = CallReader(self._assembly)

    @property
    def ended(self) -> bool:
        """Whether `done: true` (or an error) was seen."""
        return self._assembly.phase != "open"

    def feed(self, data: bytes) -> list[Event]:
        assembly = self._assembly
        if assembly.phase == "closed":
            return []
        texts: list[str] = []  # those that came since anything else did
        try:
            for frame, _ in self._reader.feed(data):
                if self._is_plain:
                    line = decode_plain_line(frame)
                    if type(line) is PlainLine and line.done is False:
                        answer = line.message
                        if answer.thinking:
                            if answer.content is None or frame.count(b'"thinking"') + frame.count(b'"content"') > 2:
                                self._weigh(answer, frame)
                            self._say(texts)
                            assembly.thinking(answer.thinking)
                        if content := answer.content:
                            if frame.count(b'"content"') > 1 and not answer.thinking:
                                self._weigh(answer, frame)
                            texts.append(content)
                        elif not answer.thinking:
                            self._weigh(answer, frame)
                        continue
                elif self._is_call and self._calls.takes_line(frame):
                    continue
                if texts:
                    self._say(texts)
                self._read_frame(frame)
        except TooLarge as problem:
            self._say(texts)
            self._assembly.fail("answer_too_large", str(problem))
        if texts:
            self._say(texts)
        return assembly.take()

    def _say(self, texts: list[str]) -> None:
        if texts:
            self._assembly.texts(texts)
            texts.clear()

    def close(self) -> list[Event]:
        try:
            for frame, _ in self._reader.close():
                self._read_frame(frame)
        except TooLarge as problem:
            self._assembly.fail("answer_too_large", str(problem))
        native = self._kept.native()
        if native is not None:
            self._assembly.ending.native = native
        stray = self._reader.stray
        empty = read_problem(stray, status=None).message if stray else self._reader.seen
        self._assembly.close(empty=empty, body=self._reader.document)
        return self._assembly.take()

    def fail(self, failure: Failure) -> list[Event]:
        self._assembly.break_off(failure)
        return self._assembly.take()

    # ------------------------------------------------------------ lines

    def _read_frame(self, frame: bytes) -> None:
        line = decode_line(frame)
        if type(line) is not Line:
            self._read_odd_frame(frame)
        elif self._begun and (answer := line.message) is not None and says_message_alone(line):
            self._is_plain = answer.tool_calls is None  # the next is like this one
            self._is_call = not self._is_plain
            if not answer.tool_calls:
                self._see_hidden(frame)
            self._read_answer(answer, line, frame, is_alone=True)
        else:
            self._read_line(line, frame, is_known=True)

    def _weigh(self, answer: Answer, frame: bytes) -> None:
        """See whether a line tells a text twice, of which one is lost."""
        for key, text in ((b'"content"', answer.content), (b'"thinking"', answer.thinking)):
            if tells_more(frame, key, bool(text)):
                self._assembly.deviate("repeated-key", f"message.{key[1:-1].decode()}")

    def _see_hidden(self, frame: bytes) -> None:
        """Check a line without calls: a repeated key may have replaced one."""
        if frame.rfind(b'_calls"') >= 0 and torn_frames.hides_call(frame):
            torn_frames.refuse(self._assembly, "message.tool_calls", frame)

    def _read_odd_frame(self, frame: bytes) -> None:
        """Read a frame that is not JSON, or whose fields have other types or are unknown."""
        note_frame(self._assembly, frame)
        line = decode_known(frame)
        if type(line) is Line:
            self._read_line(line, frame)
            return
        value = _json.decode_lenient(frame)
        if isinstance(value, dict):
            self._read_loosely(value, frame)
        elif not isinstance(value, Malformed):
            for item in torn_frames.objects_in(self._assembly, "line", value):
                self._read_loosely(item, frame)
        elif frame.strip() != b"[DONE]":
            is_stream = self._reader.kind != "document"
            torn_frames.unreadable(self._assembly, "line", value.problem, frame, is_stream=is_stream)

    def _read_loosely(self, value: dict[str, Json], frame: bytes) -> None:
        if isinstance(value.get("message"), str) and value.keys().isdisjoint(HEADS):  # words of another service
            return self._read_bare(frame, value)
        value = straighten(value, PLACES, self._assembly.deviate)
        torn_frames.check_places(self._assembly, value, OBJECTS)
        self._read_line(read_line_leniently(value, self._assembly.deviate), frame, value=value)

    def _read_line(
        self, line: Line, frame: bytes, *, value: dict[str, Json] | None = None, is_known: bool = False
    ) -> None:
        """Take one line.

        Args:
            value: the line from the lenient reader, or None if it is well-formed.
            is_known: the Struct has all its fields.
        """
        assembly = self._assembly
        answer = line.message
        self._is_plain = is_known and answer is not None and answer.tool_calls is None  # the next is like this one
        self._is_call = is_known and answer is not None and not self._is_plain
        if line.delta is not None:
            assembly.deviate("sibling-key", "delta")
            if answer is None:
                answer = line.delta
            else:
                self._read_answer(line.delta, line, frame, lenient=value is not None)
        if answer is None and line.response is not NOTHING and bytes(line.response)[:1] == b'"':
            assembly.deviate("sibling-key", "response")
            answer = Answer(content=text_of(line.response), thinking=line.thinking)
        if answer is None and line.done is None and line.done_reason is None:
            return self._read_bare(frame, value)
        if not self._begun:
            self._begin(line, frame, value, is_known=is_known)
        if answer is None or not answer.tool_calls:
            self._see_hidden(frame)
        if answer is None:
            assembly.deviate("missing-field", "message")
        else:
            if answer.tool_calls and not is_known:  # arguments in an object around those
                tell_unread_of(frame, value, assembly)
            self._read_answer(answer, line, frame, lenient=value is not None)
        if not is_known:
            self._kept.line(frame)
            tell_unread_of(frame, value, assembly)
        elif holds_more(line):
            self._kept.known_line(line)
        if line.done or line.done_reason:
            tell_twice(frame, (b'"done"', b'"done_reason"', b'"eval_count"', b'"prompt_eval_count"'), assembly.deviate)
        self._read_end(line)

    def _begin(self, line: Line, frame: bytes, value: dict[str, Json] | None, *, is_known: bool) -> None:
        """Take the first line with an answer. `value`, `is_known`: see `_read_line`."""
        self._begun = True
        deviate = self._assembly.deviate
        if self._reader.kind == "events":
            deviate("envelope", "body", "an event stream")
        head = None if is_known else decode_head(frame)
        if head is None:
            model, created = line.model, line.created_at
            role = "assistant" if line.message is None else line.message.role
        elif type(head) is Head:
            model, created = read(head.model), read(head.created_at)
            role = "assistant" if head.message is None else read(head.message.role)
        else:
            message = (value or {}).get("message")
            role = message.get("role") if isinstance(message, dict) else "assistant"
            model, created = (value or {}).get("model"), (value or {}).get("created_at")
        if not isinstance(model, str) or not model:
            deviate("missing-field", "model")
            model = None
        created = parse_time(created)
        if created is None:
            deviate("missing-field", "created_at")
        if role != "assistant":
            deviate("missing-field", "message.role", role or "")
        self._assembly.start(None, model, created)

    def _read_answer(
        self, answer: Answer, line: Line, frame: bytes, *, lenient: bool = False, is_alone: bool = False
    ) -> None:
        """Read thinking, then text, then calls: the specification's order. `is_alone`: the line has nothing else."""
        assembly = self._assembly
        calls = answer.tool_calls or []
        if calls:
            check_entries(calls, assembly.bounds)
        else:
            self._weigh(answer, frame)
        if answer.thinking or answer.reasoning or answer.reasoning_content:
            self._read_thinking(answer, lenient=lenient)
        functions = whole_calls(calls) if calls and (is_alone or _is_usual(line)) else []
        is_plain = bool(functions) and has_plain_parts(frame, line, [function.arguments for function in functions])
        if calls and not is_plain and repeats_key(frame):
            for call in calls:
                named = (call.function and call.function.name) or call.name
                torn_frames.refuse(assembly, "message.tool_calls", frame, named or "")
            calls = answer.tool_calls = []
        is_again = False
        if answer.content:
            is_again = bool(line.done) and assembly.repeats_all(answer.content, "message.content")
            if not is_again:
                assembly.text(assembly.lenient_text(answer.content) if lenient else answer.content)
        elif answer.content is None:
            assembly.deviate("missing-field", "message.content")
        for image in answer.images or ():
            assembly.whole_part(Media("image", type_of_base64(image), image, native=_OWN))
        if calls and line.done and self._calls.repeats_all(calls, is_sure=is_again):
            return
        if is_plain and self._calls.take_all(calls, functions):
            return
        told: dict[str, Json] | None = None
        for number, call in enumerate(calls):
            if self._calls.takes(call, number):
                continue
            if (is_nameless(call) or says_nothing(call)) and not (noted(call.unread) or lenient):
                told = fields_at(frame, "message") or fields_at(frame, "delta") if told is None else told
                entries = told.get("tool_calls")
                entry = entries[number] if isinstance(entries, list) and number < len(entries) else None
                with_unread(call, unread_in(entry) if isinstance(entry, dict) else "", entry)
            self._calls.read(call, f"message.tool_calls[{number}]")

    def _read_thinking(self, answer: Answer, *, lenient: bool) -> None:
        assembly = self._assembly
        for name in ("thinking", "reasoning", "reasoning_content"):
            thinking: str | None = getattr(answer, name)
            if thinking:
                if name != "thinking":
                    assembly.deviate("sibling-key", f"message.{name}")
                assembly.thinking(assembly.lenient_text(thinking) if lenient else thinking)
                break

    def _read_end(self, line: Line) -> None:
        assembly = self._assembly
        if line.error is not NOTHING and self._read_error(_json.decode_lenient(bytes(line.error))):
            return
        counts = (line.prompt_eval_count, line.eval_count)
        if counts != (None, None):
            counted, answered = (count if count is None or count >= 0 else None for count in counts)
            assembly.usage(Usage(input=counted, output=answered))
        if line.done:
            self._finish(line.done_reason)
            assembly.end()
        elif line.done is None and line.done_reason:
            assembly.deviate("missing-field", "done")
            self._finish(line.done_reason)

    def _finish(self, native: str | None) -> None:
        if not native:
            self._assembly.deviate("missing-stop-reason", "done_reason")
            return
        reason = REASONS.get(native)
        if reason is None:
            self._assembly.deviate("stop-reason", "done_reason", native)
            reason = FOREIGN_REASONS.get(native, "other")
        self._assembly.finish(native, reason)

    # ------------------------------------------------------------ lines without an answer

    def _read_bare(self, frame: bytes, value: dict[str, Json] | None) -> None:
        """Read an error, an envelope, or nothing of this protocol."""
        fields = _json.decode_lenient(frame) if value is None else value
        if not isinstance(fields, dict):
            return
        for name in ENVELOPES:
            inner = fields.get(name)
            if isinstance(inner, dict) and self._read_envelope(inner, frame, name):
                return
        if is_problem(fields):  # quirk: ollama-error-under-odd-key
            self._read_error(fields)
        elif fields:
            self._assembly.deviate("unknown-event", "line", ", ".join(fields))

    def _read_envelope(self, inner: dict[str, Json], frame: bytes, name: str) -> bool:
        """Read a line that stands in another object. Return False if the object contains no line."""
        texts = decode_fields(frame)
        text = _json.encode(inner) if isinstance(texts, Malformed) else bytes(texts[name])
        line = decode_line(text)
        value = None
        if isinstance(line, Malformed):
            line, value = read_line_leniently(inner, self._assembly.deviate), inner
        if line.message is None and line.done is None:
            return False
        self._assembly.deviate("envelope", name)
        if not isinstance(texts, Malformed):
            tell_unread(self._assembly, {key: texts[key] for key in texts.keys() - {name}}, "line")
        self._read_line(line, text, value=value)
        return True

    def _read_error(self, error: Json | Malformed) -> bool:
        """End the response with an error that says something. Return False if it says nothing."""
        if isinstance(error, Malformed) or not holds_error(error):
            self._assembly.deviate("empty-error", "error")
            return False
        failure = read_problem(error, status=None)
        self._assembly.fail(
            failure.kind, failure.message, status=failure.status, retry_after=failure.retry_after, code=failure.code
        )
        return True


def _is_usual(line: Line) -> bool:
    """Return whether nothing in a line but its message can contain an object."""
    if line.delta is not None or not line.error is line.response is NOTHING:
        return False
    return not (holds_more(line) and any(b"{" in bytes(getattr(line, name)) for name in NOT_MODELLED))
