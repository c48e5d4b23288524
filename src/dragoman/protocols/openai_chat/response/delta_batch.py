"""Decode chunks that came together and let one thing grow, and the final one with usage, with a Struct of their shape.

What does not fit these Structs is read chunk by chunk (`decode.py`), with the same result.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import repeat
from typing import Any, Final, Literal

import msgspec

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.codec.delta_batch import LastFrame, narrowed, one, read_alike
from dragoman.codec.framing.body import BodyReader
from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.parts.call_matching import CallSlots
from dragoman.codec.repeated_keys import tells_more
from dragoman.protocols.openai_chat.response.frame_look import hides_call
from dragoman.protocols.openai_chat.response.usage import read_cost, read_usage, rest_of_usage
from dragoman.protocols.openai_chat.wire import NOTHING, CallPiece, Choice, Chunk, Delta, FunctionPiece
from dragoman.types import Cost, Usage

_NO_OTHERS: Final[Mapping[str, Any]] = {}

#: What a delta may say besides without a change of the events.
_SAYS_NOTHING: Final[Mapping[str, Any]] = {"role": ..., "channel": ..., "token_id": ...}

_Text: Final = narrowed(Delta, {"content": str, **_SAYS_NOTHING})
_Function: Final = narrowed(FunctionPiece, {"arguments": str})
_Call: Final = narrowed(CallPiece, {"index": int, "function": _Function, "type": ...})
_Arguments: Final = narrowed(Delta, {"tool_calls": one(_Call), **_SAYS_NOTHING})


def _chunk(delta: Any, others: Mapping[str, Any] = _NO_OTHERS) -> Any:
    """Return the type of a chunk of one choice with such a delta. `others`: what else its choice may have."""
    return narrowed(Chunk, {"choices": one(narrowed(Choice, {"index": int, "delta": delta, **others}))})


class _UsageChunk(msgspec.Struct, gc=False):
    """A chunk without choices that has usage and nothing else: other fields may report an error."""

    object: Literal["chat.completion.chunk"]
    usage: dict[str, Json]
    service_tier: Raw = NOTHING
    x_groq: None = None
    message: None = None
    msg: None = None
    detail: None = None
    type: None = None
    status: None = None
    success: None = None
    base_resp: None = None


#: Of chunks that are alike the first tells what its choice holds besides.
_decode_first: Final = _json.lines_decoder(_chunk(_Text, {"content_filter_results": ...}))
_TextChunk: Final = _chunk(_Text)
_CallChunk: Final = _chunk(_Arguments)
_decode_texts: Final = _json.lines_decoder(_TextChunk)
_decode_arguments: Final = _json.lines_decoder(_CallChunk)
_decode_usage: Final = _json.typed_decoder(_UsageChunk)
_decode_text: Final = _json.typed_decoder(_TextChunk)
_decode_call: Final = _json.typed_decoder(_CallChunk)
_TEXTS: Final = (b'"content"', b'"reasoning_content"', b'"reasoning"')
_THINKING: Final = tuple(
    (_json.typed_decoder(_chunk(narrowed(Delta, {key: str, **_SAYS_NOTHING}))), b'"%b"' % key.encode())
    for key in ("reasoning_content", "reasoning")
)
_ODDS: Final = re.compile(rb'"logprobs"\s{0,8}:\s{0,8}\{[^{}\[\]]{0,40}"content"\s{0,8}:')
_OTHER: Final = Malformed("a chunk to be read by the long way")
_HIDDEN: Final = b"_call"  # where a chunk of text has it, a call may stand beside its choices
_MOST_TURNS: Final = 8  # from thinking to something else
_MOST_MISSES: Final = 64  # chunks in a row that are read twice in vain


class Growth:
    """Appends a chunk to what the previous one let grow. `kind` names that; "" while it is unknown."""

    __slots__ = (
        "_assembly", "_index", "_last", "_misses", "_reader", "_slots", "_thinking_misses", "kind", "thought",
    )  # fmt: skip

    def __init__(self, assembly: Assembly, slots: CallSlots, reader: BodyReader) -> None:
        self._assembly = assembly
        self._reader = reader
        self._slots = slots
        self._last = LastFrame()
        self._index = 0  # of the call that the last frame let grow
        self._misses = self._thinking_misses = 0
        self.kind: Literal["", "text", "thinking", "call"] = ""
        self.thought = 0

    def expect(self, kind: Literal["text", "call"]) -> None:
        """Record what a chunk let grow."""
        if self._misses < _MOST_MISSES:
            self.kind = kind

    def expect_thinking(self, size: int, *, is_alone: bool) -> None:
        """Record that a chunk let thinking grow by so many characters, and had nothing else if `is_alone`."""
        self.thought += size
        if is_alone and self._thinking_misses < _MOST_TURNS:
            self.kind = "thinking"

    def take_alone(self, event: bytes) -> str | None:
        """As `take` for the bytes of an event that came alone, as the one before. None if they must be fed."""
        if (text := self._last.read(event)) and (total := self._reader.total_with(event)) and self._grow(text):
            self._reader.total = total
            return text if self.kind == "text" else ""
        return None

    def _grow(self, text: str) -> bool:
        if self.kind == "text":
            self._assembly.text(text)
            return True
        if self.kind == "thinking":
            self._assembly.thinking(text)
            self.thought += len(text)
            return True
        return self._slots.grow(self._index, text)

    def take(self, data: bytes, choice: int | None) -> str | None:
        """Take a chunk that lets the same grow and has nothing else. Return its text, "" for a call.

        None if it may have something else.
        """
        if text := self._last.read(data):  # as the chunk before
            if self._grow(text):
                return text if self.kind == "text" else ""
        elif self.kind == "text":
            chunk = _decode_text(data) if data.find(_HIDDEN) < 0 else _OTHER
            if type(chunk) is not Malformed and (told := chunk.choices[0]).index == choice and told.delta.content:
                said: str = told.delta.content
                if data.count(b'"content"') > 1:
                    self._weigh(data, b'"content"', 1)
                self._assembly.text(said)
                self._learn(data, b'"content"')
                return said
        elif self.kind == "thinking":
            if self._think(data, choice):
                return ""
        elif data.count(b'"arguments"') == 1 and (len(self._slots.by_index) < 2 or data.count(b'"index"') < 3):
            chunk = _decode_call(data) if data.count(_HIDDEN) < 2 or not hides_call(data) else _OTHER
            if type(chunk) is not Malformed and (told := chunk.choices[0]).index == choice:
                call = told.delta.tool_calls[0]
                if call.function.arguments and self._slots.grow(call.index, call.function.arguments):
                    self._index = call.index
                    self._learn(data, b'"arguments"')
                    return ""
        self._misses += self.kind != "thinking"
        self.kind = ""
        self._last.forget()
        return None

    def _think(self, data: bytes, choice: int | None) -> bool:
        """Take a chunk that lets thinking grow, otherwise than the last one; False when it may say something else."""
        for decode, key in _THINKING if data.find(_HIDDEN) < 0 else ():
            chunk = decode(data)
            if type(chunk) is Malformed or (told := chunk.choices[0]).index != choice:
                continue
            if text := told.delta.reasoning_content or told.delta.reasoning:
                if data.count(key) > 1:
                    self._weigh(data, key, 1)
                self._assembly.thinking(text)
                self.thought += len(text)
                self._learn(data, key)
                return True
        self._thinking_misses += 1
        return False

    def weigh(self, chunk: Chunk, data: bytes) -> Chunk:
        """See whether a chunk tells a text twice, of which one is lost. Gives the chunk."""
        choices = chunk.choices or []
        said = choices[0].delta if len(choices) == 1 else None
        if said is None and choices and (len(choices) > 1 or choices[0].message is not None):
            return chunk
        if said is not None and said.tool_calls:
            return chunk
        if b'content"' in data or b'"reasoning' in data:
            texts = (said.content, said.reasoning_content, said.reasoning) if said is not None else ("", "", "")
            for key, text in zip(_TEXTS, texts, strict=True):
                self._weigh(data, key, bool(text))
        return chunk

    def _weigh(self, data: bytes, key: bytes, told: int) -> None:
        """See whether a chunk tells a text under a key twice. Token odds stand under the key of a text."""
        if data.count(key) > told and tells_more(data, key, told + (key == _TEXTS[0] and bool(_ODDS.search(data)))):
            self._assembly.deviate("repeated-key", "content" if key == _TEXTS[0] else "reasoning")

    def _learn(self, data: bytes, key: bytes) -> None:
        self._misses = 0
        self._last.learn(data, key, self._reader.head)


def read_texts(lines: list[bytes], choice: int | None) -> tuple[list[str], Raw] | None:
    """Return the non-empty texts of chunks with text alone, and the content filter's result that all have.

    None if any has something else.

    Args:
        choice: the index of the choice that is read.
    """
    alike = read_alike(lines, b'"content"')
    chunks = _decode_first(lines[:1]) if alike else _decode_texts(lines)
    if chunks is None:
        return None
    choices = [chunk.choices[0] for chunk in chunks]
    texts = [each.delta.content for each in choices if each.index == choice and each.delta.content]
    told = lines[0] if alike else b"\n".join(lines)
    if len(texts) < len(chunks) or told.find(_HIDDEN) >= 0:
        return None
    if not alike and told.count(b'"content"') > len(lines):
        return None  # one of them may tell it twice
    return alike or texts, choices[0].content_filter_results or NOTHING


def read_arguments(lines: list[bytes], choice: int | None) -> tuple[int, list[str]] | None:
    """Return the index of a call and the non-empty pieces of chunks that let its arguments grow.

    None if any has something else.
    """
    alike = read_alike(lines, b'"arguments"')
    told = lines[:1] if alike else lines
    chunks = _decode_arguments(told)
    if chunks is None:
        return None
    if max(map(bytes.count, told, repeat(b'"arguments"'))) > 1 or max(map(bytes.count, told, repeat(b'"index"'))) > 2:
        return None  # one of them may say something twice; what is around the arguments holds them each time
    if max(map(bytes.count, told, repeat(_HIDDEN))) > 1 and any(map(hides_call, told)):
        return None
    calls = [each.choices[0].delta.tool_calls[0] for each in chunks if each.choices[0].index == choice]
    index = calls[0].index if calls else 0
    texts = [call.function.arguments for call in calls if call.index == index and call.function.arguments]
    return (index, alike or texts) if len(texts) == len(chunks) else None


def read_bare_usage(chunk: bytes) -> tuple[Usage, Cost | None, dict[str, Json]] | None:
    """Return the usage of a chunk that has nothing else, with its unmodelled fields, or None."""
    read = _decode_usage(chunk)
    if isinstance(read, _json.Malformed) or b"rror" in chunk:
        return None
    return read_usage(read.usage, read.service_tier), read_cost(read.usage), rest_of_usage(read.usage)
