"""Decode response bytes of Gemini: event streams, JSON arrays, whole responses, error bodies.

The end is the end of the body after a finishReason; parts and usage may follow that. A call is one whole part, except
for Vertex AI's streamed arguments. A part with a signature is a separate part, never merged with its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.bounds import USUAL_BOUNDS, AnswerBounds
from dragoman.codec.errors.error_body import holds_error, is_problem, read_problem
from dragoman.codec.framing.body import BodyReader, TooLarge
from dragoman.codec.json_fields import Fields, make_native
from dragoman.codec.parts import torn_frames
from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.parts.unread_arguments import note_astray, note_frame, tell_unknown, tell_unread
from dragoman.codec.repeated_keys import repeats_key, tell_twice, tells_more
from dragoman.codec.timestamps import parse_time
from dragoman.events import Event, Failure, TextStart, ThinkingStart
from dragoman.protocol import PLAIN, Dialect, NewId, TakesNothing, takes_nothing
from dragoman.protocols.gemini.response.calls import CallReader, are_plain, few_candidates, numbered
from dragoman.protocols.gemini.response.enum_numbers import FINISH_REASONS, enum_name
from dragoman.protocols.gemini.response.lenient import (
    ANSWERED,
    ENVELOPES,
    read_chunk_leniently,
    read_feedback_leniently,
    read_usage_leniently,
    straighten_chunk,
    unrepeated,
)
from dragoman.protocols.gemini.response.unmodelled import (
    Around,
    Kept,
    Split,
    note_rest,
    other_part,
    split,
    tell_unread_beside,
    without_arguments,
)
from dragoman.protocols.gemini.response.usage import merged, read_apart, read_usage
from dragoman.protocols.gemini.wire import (
    FAILED_REASONS,
    KNOWN_PARTS,
    NAME,
    NOTHING,
    REASONS,
    UNSPECIFIED,
    Candidate,
    Chunk,
    FunctionCall,
    Part,
    PlainChunk,
    UsageMetadata,
    decode_chunk,
    decode_plain_chunk,
    is_answer,
    is_known,
    says_nothing,
    told_by,
)
from dragoman.types import Opaque

#: How a frame tells its calls: each with its arguments as an object and nothing else, no key of it twice; no key twice
#: with different values; some key so.
_Told: TypeAlias = Literal["plainly", "once", "twice"]


class Decoder:
    """Decodes one response."""

    __slots__ = (
        "_assembly", "_begun", "_calls", "_choice", "_counted", "_failed_reason", "_is_call", "_is_plain", "_is_stream",
        "_kept", "_reader", "_usage",
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
        self._assembly = Assembly(
            new_id, offered_names, takes_nothing=takes_nothing, bounds=bounds, names_tool_use=False, needs_ids=None
        )
        self._reader = BodyReader(self._assembly.deviate, bounds=bounds, look=few_candidates)
        self._calls = CallReader(self._assembly)
        self._begun = self._is_stream = False  # a chunk came, and another one
        self._is_plain = self._is_call = False  # the next chunk may say text, or a call, and nothing else
        self._choice: int | None = None  # the index of the candidate that is read
        self._usage: UsageMetadata | None = None  # as it came last
        self._counted = UsageMetadata()  # the most of each part that was told
        self._failed_reason = ""
        self._kept = Kept()

    @property
    def ended(self) -> bool:
        """Whether the response is over before its body is: after an error only."""
        return self._assembly.phase != "open"

    def feed(self, data: bytes) -> list[Event]:
        assembly = self._assembly
        if assembly.phase == "closed":
            return []
        try:
            for frame, _ in self._reader.feed(data):
                if self._is_plain:
                    chunk = decode_plain_chunk(frame)
                    if type(chunk) is PlainChunk and (chunk.candidates[0].index or 0) == self._choice:
                        self._read_plain(chunk, frame)
                        continue
                elif self._is_call and (chunk := self._calls.takes_frame(frame, self._choice)) is not None:
                    self._is_stream = True
                    if chunk.usageMetadata != self._usage:
                        self._count(chunk.usageMetadata, frame, [chunk.candidates[0].content.parts[0].functionCall])
                    continue
                self._read_frame(frame)
        except TooLarge as problem:
            self._assembly.fail("answer_too_large", str(problem))
        return assembly.take()

    def close(self) -> list[Event]:
        assembly = self._assembly
        try:
            for frame, _ in self._reader.close():
                self._read_frame(frame)
        except TooLarge as problem:
            assembly.fail("answer_too_large", str(problem))
        if self._begun and assembly.ending.reason is None and not self._failed_reason and self._is_whole():
            assembly.deviate("missing-stop-reason", "finishReason")
            assembly.finish(None, "stop")
        self._calls.close()
        if self._begun and assembly.phase != "closed":
            assembly.ending.native = self._kept.native(assembly)
        if self._failed_reason:
            message = f"the model's turn was not usable: {self._failed_reason}"
            assembly.fail("wire", message, code=self._failed_reason)
        empty = read_problem(stray, status=None).message if (stray := self._reader.stray) else self._reader.seen
        assembly.close(empty=empty, body=self._reader.document)
        return assembly.take()

    def fail(self, failure: Failure) -> list[Event]:
        self._assembly.break_off(failure)
        return self._assembly.take()

    def _is_whole(self) -> bool:
        """Return whether the body was one JSON document with content: no stream has this form, so nothing was cut."""
        is_whole = self._reader.kind in ("document", "lines") and not self._is_stream
        return is_whole and not (self._assembly.is_empty or self.ended)

    # ------------------------------------------------------------ chunks

    def _read_plain(self, chunk: Any, frame: bytes) -> None:
        """Take a `PlainChunk` of the candidate that is read. It is not the first chunk."""
        self._is_stream = True
        (part,) = chunk.candidates[0].content.parts
        if frame.count(b'"text"') > 1 or not part.text:
            self._weigh(frame, bool(part.text))
        if part.text:
            (self._assembly.thinking if part.thought else self._assembly.text)(part.text)
        self._count(chunk.usageMetadata, frame)

    def _read_frame(self, frame: bytes) -> None:
        chunk = decode_chunk(frame)
        if type(chunk) is Chunk:
            self._read_chunk(chunk, frame)
        else:
            self._read_odd_frame(frame)

    def _weigh(self, frame: bytes, told: int) -> None:
        """See whether a frame tells a text twice, of which one is lost. `told`: how many were read."""
        if tells_more(frame, b'"text"', told):
            self._assembly.deviate("repeated-key", "part")

    def _read_odd_frame(self, frame: bytes) -> None:
        """Read a frame with unmodelled fields, invalid JSON, or fields of other types or names."""
        note_frame(self._assembly, frame)
        if (b"functionCall" in frame or b"function_call" in frame) and repeats_key(frame):
            return torn_frames.refuse(self._assembly, "functionCall", frame)
        found = split(frame, self._assembly.bounds)
        chunk = decode_chunk(found.frame) if found is not None else None
        if type(chunk) is Chunk and found is not None:
            return self._read_chunk(chunk, found.frame, found)
        value = _json.decode_lenient(frame)
        if rb"\ud" in frame.lower() and not _json.is_json(frame):
            self._assembly.deviate("lone-surrogate", "chunk")
        if isinstance(value, dict):
            self._read_loosely(value)
        elif isinstance(value, Malformed):
            if frame.strip() != b"[DONE]":
                is_stream = self._reader.kind != "document"
                torn_frames.unreadable(self._assembly, "chunk", value.problem, frame, is_stream=is_stream)
        else:
            for item in torn_frames.objects_in(self._assembly, "chunk", value):
                self._read_loosely(item)

    def _read_loosely(self, value: dict[str, Json]) -> None:
        assembly = self._assembly
        inner = value.get("response")
        if isinstance(inner, dict) and "candidates" not in value:
            assembly.deviate("envelope", "response")
            value = inner
        value = straighten_chunk(value, assembly)
        frame = read_chunk_leniently(value, assembly.deviate, assembly.lenient_text)
        found = split(frame, self._assembly.bounds)
        chunk = decode_chunk(frame := found.frame if found is not None else frame)
        if isinstance(chunk, Malformed):
            torn_frames.lose_open_calls(assembly, "chunk", chunk.problem)
        elif not is_known(chunk):
            self._read_bare(value)
        else:
            self._read_chunk(chunk, frame, found)

    def _read_chunk(self, chunk: Chunk, frame: bytes, found: Split | None = None) -> None:
        """Read a chunk. `found`: its unmodelled fields; `frame` contains the rest."""
        texts, calls = told_by(chunk)
        told: _Told = "plainly" if calls and are_plain(calls, chunk, frame) else "once"
        if told == "once" and found is None:
            self._weigh(frame, len(texts))
        self._is_stream = self._begun
        if not self._begun:
            self._begin(chunk, frame, calls)
        if self._calls.fails_by_id(chunk.responseId, frame, calls):
            return
        candidates = chunk.candidates
        if calls:
            told = "twice" if told == "once" and repeats_key(frame) else told
            if told != "plainly" or not chunk.createTime is chunk.create_time is None:  # else nothing is unread
                tell_unread_beside(frame, self._assembly, told=len(calls))
        elif frame.rfind(b"unction") >= 0:  # found sooner than by `find`
            if found is not None and any("functionCall" in part for part in found.parts.values()):
                told = "twice" if repeats_key(frame) else "once"
            elif torn_frames.hides_call(frame):
                torn_frames.refuse(self._assembly, "functionCall", frame)
        if candidates is not None:
            for place, candidate in enumerate(candidates if len(candidates) == 1 else numbered(candidates)):
                self._read_candidate(candidate, place, frame, found, told)
        is_sure = self._choice is not None and not self._assembly.calls.may_lack()
        self._is_plain, self._is_call = is_sure and not calls, is_sure and bool(calls)
        if chunk.usageMetadata is not None:
            self._count(chunk.usageMetadata, frame, calls)
        elif candidates is None or chunk.usage_metadata is not NOTHING:
            self._read_rare(chunk, frame)
        if chunk.error is not NOTHING:
            self._read_error(_json.decode_lenient(bytes(chunk.error)))
        if not candidates and chunk.promptFeedback is not None:
            blocked = chunk.promptFeedback.blockReason
            if blocked and blocked not in UNSPECIFIED:
                self._kept.last = frame
                self._assembly.finish(str(blocked), "content_filter")

    def _read_rare(self, chunk: Chunk, frame: bytes) -> None:
        """Read snake case, an envelope, or nothing of this protocol."""
        deviate = self._assembly.deviate
        if chunk.usage_metadata is not NOTHING:
            deviate("sibling-key", "usage_metadata")
            usage = _json.decode(bytes(chunk.usage_metadata))
            if isinstance(usage, dict):
                self._count(read_usage_leniently(usage, deviate), frame)
        if chunk.prompt_feedback is not NOTHING:
            deviate("sibling-key", "prompt_feedback")
            feedback = _json.decode(bytes(chunk.prompt_feedback))
            if isinstance(feedback, dict):
                chunk.promptFeedback = read_feedback_leniently(feedback, deviate)
        if chunk.candidates is None and chunk.response is not NOTHING:
            self._read_envelope(chunk.response)
        elif not is_known(chunk):
            value = _json.decode_lenient(frame)
            if isinstance(value, dict):
                self._read_bare(value)

    def _read_envelope(self, inner: Raw) -> None:
        """Read `{"response": {…}}`, as Code Assist wraps its chunks."""
        # quirk: gem-cloudcode-response-envelope
        frame = bytes(inner)
        chunk = decode_chunk(frame)
        self._assembly.deviate("envelope", "response")
        if isinstance(chunk, Malformed):
            self._read_odd_frame(frame)
        elif is_known(chunk):
            self._read_chunk(chunk, frame)

    def _begin(self, chunk: Chunk, frame: bytes, calls: Sequence[FunctionCall]) -> None:
        """Begin the response with the first chunk that is more than an error or an envelope."""
        if not is_answer(chunk):
            return
        self._begun = True
        self._kept.first = without_arguments(frame, calls)
        self._assembly.start(
            _text(chunk.responseId) or _text(chunk.response_id),
            _text(chunk.modelVersion) or _text(chunk.model_version),
            parse_time(chunk.create_time if chunk.createTime is None else chunk.createTime),
        )

    def _read_bare(self, value: dict[str, Json]) -> None:
        """Read an object with nothing of this protocol: an envelope, an error in another form, or nothing."""
        for key in ENVELOPES:
            inner = value.get(key)
            if isinstance(inner, dict) and not inner.keys().isdisjoint(ANSWERED):
                self._assembly.deviate("envelope", key)
                return self._read_frame(_json.encode(inner))
        if is_problem(value):
            self._read_error(value)
        elif value:
            tell_unknown(self._assembly, value, "unknown-event", "chunk", ", ".join(value))
            note_frame(self._assembly, _json.encode(value))

    def _read_error(self, error: Json | Malformed) -> None:
        if isinstance(error, Malformed) or not holds_error(error):
            return self._assembly.deviate("empty-error", "error")
        told = read_problem(error, status=None)
        self._assembly.fail(told.kind, told.message, status=told.status, retry_after=told.retry_after, code=told.code)

    # ------------------------------------------------------------ candidates

    def _read_candidate(self, candidate: Candidate, place: int, frame: bytes, found: Split | None, told: _Told) -> None:
        """Read a candidate. `told`: how the frame gives its calls."""
        index = candidate.index or 0
        if (is_other := self._choice not in (None, index)) or place:  # clients read the first one
            self._assembly.deviate("extra-choice", f"candidates[{place}]", f"index {index}")
        if is_other:
            return self._pass_over(candidate, place, is_odd=found is not None and b"unction" in frame)
        self._choice = index
        content, reason = candidate.content, candidate.finishReason or candidate.finish_reason
        around: Around | None = None  # once something says nothing
        if found is not None:
            note_astray(self._assembly, found.candidates[place] | found.contents[place])
        if content is None or not content.parts:
            tell_unread_beside(frame, self._assembly)
        if content is not None and content.parts is not None:
            for number, part in enumerate(unrepeated(content.parts, self._assembly) if reason else content.parts):
                text = part.text
                if (
                    text is not None
                    and part.thoughtSignature is None
                    and part.functionCall is None
                    and part.thought_signature is None
                    and found is None
                ):
                    if text:
                        (self._assembly.thinking if part.thought else self._assembly.text)(text)
                    continue
                if told == "plainly" and found is None and text is None and self._calls.takes(part):
                    continue
                rest = found.parts.get((place, number), {}) if found is not None else {}
                if (call := part.functionCall) is not None or "functionCall" in rest:
                    if told == "twice" or (call is not None and "functionCall" in rest):
                        torn_frames.refuse(self._assembly, "functionCall", frame, (call and call.name) or "")
                        continue
                    if call is not None and (not call.name or "name" in rest or says_nothing(call)):
                        around = around or Around(frame, place, self._assembly)
                        around.note(call, number, rest)
                elif text is None and not rest:
                    around = around or Around(frame, place, self._assembly)
                    around.tell()
                self._read_part(part, rest)
        is_last = reason and self._is_stream  # whose fields may not be kept
        if self._assembly.calls.has_bare or is_last or ((around or reason) and self._assembly.calls.may_lack()):
            tell_unread_beside(frame, self._assembly)
        if found is not None:
            self._kept.add_rest(found, place, self._assembly)
        if candidate.finish_reason:
            self._assembly.deviate("sibling-key", "candidate", "finish_reason")
        if reason:
            self._read_reason(reason, frame)

    def _pass_over(self, candidate: Candidate, place: int, *, is_odd: bool) -> None:
        if (calls := told_by(Chunk(candidates=[candidate]))[1]) or is_odd:
            self._assembly.deviate("ignored-call", f"candidates[{place}]", f"index {candidate.index}")
            self._calls.pass_over(candidate.index, calls)

    def _read_reason(self, word: str | int, frame: bytes) -> None:
        tell_twice(frame, (b'"finishReason"', b'"usageMetadata"'), self._assembly.deviate)
        native = str(word)
        name = enum_name(FINISH_REASONS, word).upper()
        if name in UNSPECIFIED:
            return
        if name != "STOP":  # which some servers tell in each chunk
            self._assembly.calls.settle_ripe(self._assembly)
        if name in FAILED_REASONS:
            # calls, text and usage that still come count beside the error
            self._failed_reason = name
            return
        if name not in REASONS or (name != native and word is native):
            self._assembly.deviate("stop-reason", "finishReason", native)
        self._assembly.finish(native, REASONS.get(name, "other"))

    def _count(self, usage: UsageMetadata | None, frame: bytes, calls: Sequence[FunctionCall] = ()) -> None:
        """Take the tokens of a chunk, and keep its frame, if they are new. `calls`: those of the chunk."""
        if usage is not None and usage != self._usage:
            self._kept.last = without_arguments(frame, calls) if self._is_stream else self._kept.first
            self._usage, self._counted = usage, merged(self._counted, usage)
            self._assembly.usage(read_usage(self._counted, read_apart(frame)))

    def _read_part(self, part: Part, rest: Fields) -> None:
        """Read a part that is not plain text. `rest`: its unmodelled fields."""
        signature = part.thoughtSignature or part.thought_signature or ""
        if part.thought_signature:
            self._assembly.deviate("sibling-key", "part", "thought_signature")
        note_rest(rest, self._assembly, is_call=part.functionCall is None and part.text is None)
        if part.text is not None:
            self._read_text(part.text, signature, rest, is_thought=part.thought is True)
        if part.functionCall is not None:
            native = make_native(NAME, rest) if rest and part.text is None else None
            self._calls.read(part.functionCall, signature, native)
        elif part.text is None:
            self._read_other_part(part, rest, signature)

    def _read_text(self, text: str, signature: str, rest: Fields, *, is_thought: bool) -> None:
        """Read text or thinking; with a signature or fields of its own it is a separate part."""
        assembly = self._assembly
        if signature or rest:
            assembly.end_run()
            kind = ThinkingStart if is_thought else TextStart
            opened = assembly.open_part(kind, native=make_native(NAME, rest))
            assembly.add(opened, text)
            opened.signature = signature or None
            assembly.end_part(opened)
        elif text:
            (assembly.thinking if is_thought else assembly.text)(text)

    def _read_other_part(self, part: Part, rest: Fields, signature: str) -> None:
        """Read media, a lone signature, and what only this protocol knows."""
        is_thought = part.thought is True
        if "functionCall" in rest:
            self._assembly.deviate("sibling-key", "part", "function_call")
            return self._calls.read_sibling(rest["functionCall"], signature)
        if not rest:
            if signature:
                self._read_text("", signature, rest, is_thought=is_thought)
            return
        whole = other_part(rest, signature, thought=part.thought)
        if type(whole) is Opaque and (KNOWN_PARTS | {"inlineData", "fileData"}).isdisjoint(rest):
            self._assembly.deviate("unknown-part", "part", next(iter(rest)))
            tell_unread(self._assembly, rest, "part")
        self._assembly.whole_part(whole)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
