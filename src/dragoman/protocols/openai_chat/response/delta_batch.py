"""Chunks that came together and let one thing grow, and the one at the end with usage: their shape, told by the JSON
reader itself.

What does not fit these Structs is read chunk by chunk (`decode.py`), which gives the same events.
"""

from __future__ import annotations

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
    """A chunk of one choice whose delta is such a one. `others`: what else its choice may hold."""
    return narrowed(Chunk, {"choices": one(narrowed(Choice, {"index": int, "delta": delta, **others}))})


class _UsageChunk(msgspec.Struct, gc=False):
    """A chunk without choices that tells usage and nothing else: the fields by which others tell of an error."""

    object: Literal["chat.completion.chunk"]
    usage: dict[str, Json]
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
_decode_texts: Final = _json.lines_decoder(_chunk(_Text))
_decode_arguments: Final = _json.lines_decoder(_chunk(_Arguments))
_decode_usage: Final = _json.typed_decoder(_UsageChunk)
_decode_text: Final = _json.typed_decoder(_chunk(_Text))
_decode_call: Final = _json.typed_decoder(_chunk(_Arguments))
_MOST_MISSES: Final = 64  # chunks in a row that are read twice in vain


class Growth:
    """Lets grow by a chunk what grew by the one before. `kind` tells what that is; "" while nothing is known."""

    __slots__ = ("_assembly", "_index", "_last", "_misses", "_reader", "_slots", "kind")

    def __init__(self, assembly: Assembly, slots: CallSlots, reader: BodyReader) -> None:
        self._assembly = assembly
        self._reader = reader
        self._slots = slots
        self._last = LastFrame()
        self._index = 0  # of the call that the last frame let grow
        self._misses = 0
        self.kind: Literal["", "text", "call"] = ""

    def expect(self, kind: Literal["text", "call"]) -> None:
        """A chunk let this grow."""
        if self._misses < _MOST_MISSES:
            self.kind = kind

    def take_alone(self, event: bytes) -> str | None:
        """The same for the bytes of an event that came alone, as the one before. None when they are to be fed."""
        if (text := self._last.read(event)) and (total := self._reader.total_with(event)) and self._grow(text):
            self._reader.total = total
            return text if self.kind == "text" else ""
        return None

    def _grow(self, text: str) -> bool:
        if self.kind == "text":
            self._assembly.text(text)
            return True
        return self._slots.grow(self._index, text)

    def take(self, data: bytes, choice: int | None) -> str | None:
        """Take a chunk that lets the same grow and says nothing else; gives its text, "" of a call. None when it may
        say something else."""
        if text := self._last.read(data):  # as the chunk before
            if self._grow(text):
                return text if self.kind == "text" else ""
        elif self.kind == "text":
            chunk = _decode_text(data)
            if type(chunk) is not Malformed and (told := chunk.choices[0]).index == choice and told.delta.content:
                said: str = told.delta.content
                self._assembly.text(said)
                self._learn(data, b'"content"')
                return said
        elif data.find(b'"name":"') >= 0:
            pass  # a call begins, most likely
        elif data.count(b'"arguments"') < 2 and (len(self._slots.by_index) < 2 or data.count(b'"index"') < 3):
            chunk = _decode_call(data)
            if type(chunk) is not Malformed and (told := chunk.choices[0]).index == choice:
                call = told.delta.tool_calls[0]
                if call.function.arguments and self._slots.grow(call.index, call.function.arguments):
                    self._index = call.index
                    self._learn(data, b'"arguments"')
                    return ""
        self.kind = ""
        self._last.forget()
        self._misses += 1
        return None

    def _learn(self, data: bytes, key: bytes) -> None:
        self._misses = 0
        self._last.learn(data, key, self._reader.head)


def read_texts(lines: list[bytes], choice: int | None) -> tuple[list[str], Raw] | None:
    """The texts of chunks that hold text alone, none of them empty, and the result of the content filter that all have;
    None when any holds something else.

    Args:
        choice: the index of the choice that is read.
    """
    alike = read_alike(lines, b'"content"')
    chunks = _decode_first(lines[:1]) if alike else _decode_texts(lines)
    if chunks is None:
        return None
    choices = [chunk.choices[0] for chunk in chunks]
    texts = [each.delta.content for each in choices if each.index == choice and each.delta.content]
    if len(texts) < len(chunks):
        return None
    return alike or texts, choices[0].content_filter_results or NOTHING


def read_arguments(lines: list[bytes], choice: int | None) -> tuple[int, list[str]] | None:
    """The index of a call and the texts of chunks that let its arguments grow, none of them empty; None when any
    holds something else."""
    alike = read_alike(lines, b'"arguments"')
    told = lines[:1] if alike else lines
    chunks = _decode_arguments(told)
    if chunks is None:
        return None
    if max(map(bytes.count, told, repeat(b'"arguments"'))) > 1 or max(map(bytes.count, told, repeat(b'"index"'))) > 2:
        return None  # one of them may say something twice; what is around the arguments holds them each time
    calls = [each.choices[0].delta.tool_calls[0] for each in chunks if each.choices[0].index == choice]
    index = calls[0].index if calls else 0
    texts = [call.function.arguments for call in calls if call.index == index and call.function.arguments]
    return (index, alike or texts) if len(texts) == len(chunks) else None


def read_bare_usage(chunk: bytes) -> tuple[Usage, Cost | None, dict[str, Json]] | None:
    """The usage of a chunk that holds nothing else, with what of it is not modelled; None when it may hold something
    else."""
    read = _decode_usage(chunk)
    if isinstance(read, _json.Malformed) or b"rror" in chunk:
        return None
    return read_usage(read.usage), read_cost(read.usage), rest_of_usage(read.usage)
