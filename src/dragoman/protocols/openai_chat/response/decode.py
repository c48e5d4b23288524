"""Decode response bytes: streams, whole responses and error bodies, distinguished by shape."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from weakref import ref

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.bounds import USUAL_BOUNDS, AnswerBounds
from dragoman.codec.errors.error_body import holds_error, is_problem, read_problem
from dragoman.codec.framing.body import BodyReader, Frame, TooLarge
from dragoman.codec.parts import torn_frames
from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.parts.call_matching import CallSlots
from dragoman.codec.parts.unread_arguments import note_frame, tell_unread, tell_unread_event
from dragoman.events import Event, Failure
from dragoman.protocol import PLAIN, Dialect, NewId, TakesNothing, takes_nothing
from dragoman.protocols.openai_chat.response import lenient
from dragoman.protocols.openai_chat.response.calls import CallReader
from dragoman.protocols.openai_chat.response.decode_extensions import Extensions, read_odd_places
from dragoman.protocols.openai_chat.response.delta_batch import Growth, read_arguments, read_bare_usage, read_texts
from dragoman.protocols.openai_chat.response.plain_chunk import read_plain, tell_plain
from dragoman.protocols.openai_chat.response.unmodelled import Kept, tell_unread_of, without_unknown, without_usual
from dragoman.protocols.openai_chat.response.usage import read_cost, read_usage, rest_of_usage
from dragoman.protocols.openai_chat.wire import (
    NOTHING,
    REASONS,
    Choice,
    Chunk,
    Delta,
    decode_chunk,
    foreign_reason,
    google_fields,
    has_rare,
    read_head,
    read_tier,
)

_OBJECT_ARGUMENTS: Final = re.compile(rb'"(?:arguments|parameters|input)"\s*:\s*[{\[]')
_NATIVE_REASON: Final = re.compile(rb'"native_finish_reason"\s*:\s*"(\w+)"')  # of a gateway's provider
_MOST_ODD: Final = 4  # chunks that are read twice in vain
_NO_CHOICE: Final = -(1 << 62)  # before the first choice; no index is this


class Decoder:
    """Decodes one response, streamed or whole."""

    __slots__ = (
        "__weakref__", "_arguments", "_assembly", "_calls", "_choice", "_first_text", "_growth", "_kept", "_odd",
        "_passed_over", "_rare", "_reader", "_slots", "_whole",
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
        self._slots = CallSlots(self._assembly)
        self._calls = CallReader(self._assembly, self._slots)
        self._rare: Extensions | None = None  # until there are any
        self._kept = Kept(bounds)
        self._reader = BodyReader(self._assembly.deviate, bounds=bounds, decoder=ref(self), look=lenient.few_choices)
        self._growth = Growth(self._assembly, self._slots, self._reader)
        self._choice: int | None = _NO_CHOICE  # the index of the choice that is read
        self._odd = 0  # chunks that were not plain
        self._passed_over = False  # whether another choice came
        self._first_text = ""
        self._arguments = NOTHING  # of a whole message's first call, as they stand there
        self._whole = False  # a whole message came, not in an event stream: its JSON's end is the end

    @property
    def ended(self) -> bool:
        return self._assembly.phase != "open"

    def feed(self, data: bytes) -> list[Event]:
        if self._assembly.phase != "closed" and self._growth.take_alone(data) is None:
            self._read(self._reader.feed(data))
        return self._assembly.take()

    def close(self) -> list[Event]:
        self._odd = _MOST_ODD  # a whole answer is no chunk
        if self._assembly.phase != "closed":
            self._read(self._reader.close())
        if self._whole:
            self._end()
        if self._rare is not None:
            self._rare.end_audio()
        self._assembly.ending.native = self._kept.native() or self._assembly.ending.native
        self._calls.close(is_ended=self._assembly.ending.reason is not None)
        empty = read_problem(stray, status=None).message if (stray := self._reader.stray).strip() else self._reader.seen
        self._assembly.close(marker="" if self._whole else "[DONE]", empty=empty, body=self._reader.document)
        return self._assembly.take()

    def fail(self, failure: Failure) -> list[Event]:
        self._calls.close(is_ended=False)
        self._assembly.break_off(failure)
        return self._assembly.take()

    def _end(self) -> None:
        """Take the end marker, or the end of a whole response."""
        assembly = self._assembly
        if self._rare is not None:
            self._rare.end_audio()
        if assembly.phase == "open" and assembly.ending.reason is None and not assembly.is_empty:
            assembly.deviate("missing-stop-reason", "choices[0].finish_reason")
            if self._rare is not None and self._rare.refused:
                assembly.finish(None, "content_filter")
        if self._passed_over and assembly.ending.reason is None:
            self._calls.drop_empty()  # another choice may have their arguments
        self._calls.close(is_ended=True)
        assembly.end()

    # ------------------------------------------------------------ frames

    def _read(self, frames: Iterable[Frame]) -> None:
        growth = self._growth
        try:
            for data, name in frames:
                if growth.kind and growth.take(data, self._choice) is not None:
                    continue
                if data == b"[DONE]":
                    self._end()
                    continue
                if self._plain(data):
                    continue
                chunk = decode_chunk(data)
                if type(chunk) is not Chunk:
                    self._odd_frame(data, name)
                elif chunk.choices:
                    self._chunk(growth.weigh(chunk, data), data)
                else:
                    self._bare_chunk(growth.weigh(chunk, data), data, name)
        except TooLarge as problem:
            self._assembly.fail("answer_too_large", str(problem))

    def read_batch(self, lines: list[bytes]) -> int:
        """Take chunks that all let the text grow, or all one call."""
        if b'"arguments"' in lines[0]:
            grown = read_arguments(lines, self._choice)
            return self._slots.grow_many(*grown) if grown is not None else 0
        told = None if self._calls.is_watching else read_texts(lines, self._choice)
        if told is None:
            return 0
        texts, filters = told
        if filters is not NOTHING:
            self._kept.filters = Raw(bytes(filters))
        self._assembly.texts(texts)
        self._first_text = self._first_text or texts[0]
        return len(texts)

    def _odd_frame(self, data: bytes, name: bytes) -> None:
        """Read what the typed reader refuses: the end marker, another shape, broken JSON."""
        text = data.strip()
        if text.strip(b'"').upper() in (b"[DONE]", b"DONE"):
            return self._end()
        value = _json.decode(text) if text[:1] != b"[" else _json.decode_lenient(text)
        if not isinstance(value, Malformed):
            if _OBJECT_ARGUMENTS.search(text) and not isinstance(exact := _json.decode_lenient(text), Malformed):
                value = exact  # with numbers as they are written
            return self._odd_value(value, data, name, is_exact=True)
        value = _json.decode_lenient(text)
        if not isinstance(value, Malformed):
            lenient.say_why_lenient(text, self._assembly)
            return self._odd_value(value, _json.encode(value), name)
        if values := lenient.several_in(text, value.problem, self._assembly):
            self._read((inner, name) for inner in values)
        elif name == b"error":
            self._fail(text.decode("utf-8", "replace"))
        elif self.ended:
            self._assembly.deviate("after-end", "chunk")
        else:
            torn_frames.unreadable(
                self._assembly, "chunk", value.problem, text, is_stream=self._reader.kind != "document"
            )

    def _odd_value(self, value: Json, data: bytes, name: bytes, *, is_exact: bool = False) -> None:
        """Read JSON that does not fit the Structs: an object by fields, a list one by one. `is_exact`: it is JSON."""
        if not isinstance(value, dict):
            for item in torn_frames.objects_in(self._assembly, "chunk", value):
                self._odd_value(item, _json.encode(item), name)
            return
        if (straight := lenient.straighten_chunk(value, self._assembly)) is not value:
            value, data = straight, _json.encode(straight)
        known, taken = without_unknown(value)
        chunk = decode_chunk(_json.encode(known)) if is_exact and taken else None
        if not isinstance(chunk, Chunk):
            chunk = lenient.read_chunk_leniently(known, self._assembly.deviate)
            lenient.join_surrogates(chunk, self._assembly)
        if self._unwrap(value, chunk, name):
            return
        self._kept.unknown(chunk, taken, None if self._choice == _NO_CHOICE else self._choice)
        tell_unread_of(taken, self._assembly)  # what was open before, and below what this chunk opens
        if chunk.choices:
            self._chunk(self._growth.weigh(chunk, data), data)
            tell_unread_of(taken, self._assembly)
        else:
            self._bare_chunk(chunk, data, name)

    def _unwrap(self, value: Json, chunk: Chunk, name: bytes) -> bool:
        """Read the response that an object wraps. Return False if it wraps none."""
        inner = lenient.unwrap(value, self._assembly.deviate) if isinstance(value, dict) else value
        if inner is value or "choices" not in inner or holds_error(chunk.error):
            return False
        frame = _json.encode(inner)
        self._usage(chunk, frame)
        self._odd_value(inner, frame, name)
        return True

    def _bare_chunk(self, chunk: Chunk, data: bytes, name: bytes) -> None:
        """Read a chunk without choices: usage, an error, a wrapped response, something else."""
        value: Json | Malformed | None = None
        if chunk.choices is None and self._unwrap(value := _json.decode_lenient(data), chunk, name):
            return
        if data.find(b"_call") >= 0:
            self._calls.find_hidden(chunk, data)
        if self._calls.is_watching:
            self._calls.look_around(data)
        usage = chunk.usage
        if isinstance(usage, dict) and not self._assembly.started:
            self._start(data)
        elif usage is not None and chunk.choices is not None and (told := read_bare_usage(data)) is not None:
            counts, cost, rest = told
            self._assembly.usage(counts, cost)
            self._kept.usage(rest)
            self._kept.late(data)
            return
        self._usage(chunk, data)
        self._kept.late(data)
        value = _json.decode_lenient(data) if value is None else value
        if lenient.error_in(chunk.error, self._assembly) is not None:
            return self._fail(value)
        if not isinstance(value, dict):
            return
        if name == b"error" or is_problem(value):
            return self._fail(value)
        if "usage" not in value and "choices" not in value:
            self._assembly.deviate("missing-field", "choices")
        tell_unread_event(self._assembly, value, "chunk")
        note_frame(self._assembly, data)

    # ------------------------------------------------------------ chunks

    def _plain(self, data: bytes) -> bool:
        """Read a plain chunk that begins, ends or counts the answer, or has calls. Return False if it may be none."""
        if self._assembly.started and not (b"_calls" in data or b'_reason":"' in data or b'"usage":{' in data):
            return False
        chunk = read_plain(data) if self._odd < _MOST_ODD and self._assembly.phase == "open" else None
        choice = chunk.choices[0] if chunk is not None and chunk.choices else None
        if chunk is None or (choice and self._choice not in (_NO_CHOICE, choice.index)):
            self._odd += 1
            return False
        if choice is not None:
            self._choice = choice.index
        tell_plain(chunk, data, self._assembly, self._calls, self._growth, self._kept)
        if choice is not None and choice.finish_reason:
            self._finish(choice.finish_reason, data)
        return True

    def _chunk(self, chunk: Chunk, data: bytes) -> None:
        if is_first := not self._assembly.started:
            self._start(data)
        if chunk.usage is not None or chunk.x_groq is not None:
            self._usage(chunk, data)
        if self._assembly.is_late():
            return self._calls.read_late(chunk)  # usage alone counts
        error = None if chunk.error is None else lenient.error_in(chunk.error, self._assembly)
        choices = lenient.numbered(chunk.choices or [], self._assembly)
        said = (choices[0].delta or choices[0].message) if choices else None
        if data.count(b"_call") > (said is not None and bool(said.tool_calls)):  # it names more than are read
            self._calls.find_hidden(chunk, data)
        for choice in choices:
            if choice.index != self._choice and not self._is_ours(choice.index):
                self._pass_over(choice, data)
                continue
            if choice.error is not None:
                error = lenient.error_in(choice.error, self._assembly) or error
            if choice.content_filter_results is not NOTHING:
                self._kept.filters = Raw(bytes(choice.content_filter_results))
            if choice.delta is not None:
                if choice.finish_reason and self._assembly.repeats_all(choice.delta.content or "", "choices[0].delta"):
                    choice.delta.content = None
                self._delta(choice.delta, data)
            if choice.message is not None:
                if choices and choice is not choices[0]:  # clients read the first one
                    self._assembly.deviate("extra-choice", "choices", "a second message")
                self._calls.judge(choice.message, data, self._arguments)
                self._message(choice.message)
                self._calls.is_watching = True
            if choice.text is not None or choice.usage is not None:
                read_odd_places(choice, self._assembly)
            if self._calls.is_watching and (choice.finish_reason or not (choice.delta and choice.delta.tool_calls)):
                self._calls.look_around(data)
            if (choice.delta is None and choice.message is None) or (choice.finish_reason and self._assembly.is_empty):
                self._calls.tell_beside(data)
            if choice.finish_reason and error is None:
                self._finish(choice.finish_reason, data)
                if not is_first:  # whose fields the start has told
                    self._kept.late(data)
        if not self._assembly.has_said:
            note_frame(self._assembly, data)
        if error is not None:
            self._fail({"error": error})

    def _start(self, data: bytes) -> None:
        id, model, created, rest, self._arguments, is_plain = read_head(data)
        if is_plain:
            self._calls.note_plain(data)
        tell_unread(self._assembly, without_usual(rest), "chunk")
        self._assembly.start(id, model, created, native=self._kept.begin(rest))
        self._calls.fails_by_id(id, data)

    def _is_ours(self, index: int | None) -> bool:
        """Return whether a choice belongs to the answer: those of the first one's index do; others were not asked."""
        if self._choice == _NO_CHOICE or (self._choice is None and index is not None):
            self._choice = index
            return True
        if index is None:
            return True
        # quirk: answer-in-two-choices
        self._assembly.deviate("extra-choice", "choices", f"index {index}")
        self._passed_over = True
        return False

    def _pass_over(self, choice: Choice, data: bytes) -> None:
        said = choice.delta or choice.message or Delta()
        if said.tool_calls or said.function_call:  # before a judge takes them out
            self._assembly.deviate("ignored-call", "choices", f"index {choice.index}")
            self._calls.pass_over(choice.index, said)
        self._calls.judge(said, data)

    def _delta(self, delta: Delta, frame: bytes = b"") -> None:
        if has_rare(delta):
            self._calls.judge(delta, frame)
            self._rare_delta(delta)
            return
        thinking, content, calls = delta.reasoning_content or delta.reasoning, delta.content, delta.tool_calls
        if thinking:
            self._assembly.thinking(thinking)
            self._growth.expect_thinking(len(thinking), is_alone=not (content or calls or self._calls.is_watching))
        if thinking and content == thinking and self._first_text.lstrip()[:6] == "<think":
            self._assembly.deviate("duplicate-final", "choices[0].delta.content")  # quirk: thinking-in-tags-and-beside
        elif content:
            self._assembly.text(content)
            self._first_text = self._first_text or content
            if not self._calls.is_watching:
                self._growth.expect("text")
        if calls and len(calls) == 1:
            self._calls.read(calls[0], frame)
            self._growth.expect("call")
        elif calls:
            self._calls.read_many(calls, frame)

    def _rare_delta(self, delta: Delta) -> None:
        """Read the usual fields, and all that stands beside them."""
        rare, content = self._rare_fields(), delta.content
        thinking = rare.thinking_in(delta)
        self._delta(Delta(reasoning_content=thinking))
        rare.sealed_thinking(delta)
        is_tagged = (self._first_text or content or "").lstrip().startswith("<thought>")  # a stage takes these tags
        if content and not is_tagged and google_fields(delta.extra_content).get("thought") is True:
            self._assembly.thinking(content)
        else:
            self._delta(Delta(content=content))
        rare.read(delta)
        self._calls.compare_forms(delta)
        self._delta(Delta(tool_calls=delta.tool_calls))
        self._calls.read_legacy(delta)

    def _message(self, message: Delta) -> None:
        """Take a whole message: the answer itself, or the last chunk's repetition of the deltas."""
        if self._reader.kind != "events":
            self._whole = True
        rare = self._rare_fields() if has_rare(message) else None
        thinking = message.reasoning_content or message.reasoning or (rare.thinking_in(message) if rare else "")
        if thinking and (count := self._growth.thought):
            thinking = self._unsaid(thinking[count:] if len(thinking) >= count else None, "reasoning")
        if thinking:
            self._assembly.thinking(thinking)
        if rare and not self._growth.thought:
            rare.sealed_thinking(message)
        content = message.content or ""
        if content and self._first_text:  # in deltas: whole messages are not compared
            self._assembly.tell_again(content)
            content = self._unsaid(self._assembly.said.rest_of(content), "content")
        if content:
            self._assembly.text(content)
        if rare and not self._first_text:
            rare.read(message)
        self._calls.compare_forms(message)
        for piece in message.tool_calls or ():
            self._calls.read_whole(piece)
        if rare:
            self._calls.read_whole_legacy(message)

    def _rare_fields(self) -> Extensions:
        if self._rare is None:
            self._rare = Extensions(self._assembly, self._slots, self._kept)
        return self._rare

    def _unsaid(self, rest: str | None, where: str) -> str:
        """Return what a final text tells beyond the deltas, which it tells again. None: it is another one."""
        self._assembly.deviate("duplicate-final", f"choices[0].message.{where}")
        if rest is None:
            self._assembly.deviate("final-differs", f"choices[0].message.{where}")
        return rest or ""

    def _finish(self, word: str, data: bytes) -> None:
        self._calls.tell_end_twice(data)
        reason = REASONS.get(word) or foreign_reason(word)
        if reason is None:
            return  # quirk: finish-reason-empty-then-foreign
        native = _NATIVE_REASON.search(data) if reason == "stop" else None
        if native is not None and foreign_reason(native[1].decode()) == "failed":
            reason, word = "failed", native[1].decode()  # quirk: failed-under-a-native-reason
        if reason == "failed":
            return self._fail(f"the provider ended the answer with finish_reason {word[:80]!r}")
        if word not in REASONS:
            self._assembly.deviate("stop-reason", "choices[0].finish_reason", word)
        if self._rare is not None:
            self._rare.end_audio()
        if reason == "stop" and self._rare is not None and self._rare.refused:
            reason = "content_filter"
        if reason == "tool_use" and not self._assembly.opened_calls:
            self._calls.tell_beside(data)  # the calls may stand there
        self._assembly.finish(word, reason)
        self._assembly.calls.settle_ripe(self._assembly)

    def _usage(self, chunk: Chunk, data: bytes) -> None:
        usage, groq = chunk.usage, chunk.x_groq
        if not isinstance(usage, dict) and isinstance(groq, dict) and isinstance(groq.get("usage"), dict):
            self._assembly.deviate("usage-place", "x_groq.usage")  # quirk: usage-of-groq
            usage = groq["usage"]
        if isinstance(usage, dict):
            self._assembly.usage(read_usage(usage, read_tier(data)), read_cost(usage))
            self._kept.usage(rest_of_usage(usage))
        if isinstance(groq, dict) and holds_error(groq.get("error")):
            self._fail(groq)

    def _fail(self, value: Json) -> None:
        self._calls.close(is_ended=False)
        told = read_problem(value, status=None)
        self._assembly.fail(told.kind, told.message, status=told.status, retry_after=told.retry_after, code=told.code)
