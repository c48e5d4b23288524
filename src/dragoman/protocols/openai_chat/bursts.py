"""Chunks that came together and let one thing grow, and the one at the end with usage: their shape, told by the JSON
reader itself.

What does not fit these Structs is read chunk by chunk (`decode.py`), which gives the same events.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

from dragoman import _json
from dragoman.alike import read_alike
from dragoman.protocols.openai_chat.usage import read_cost, read_usage
from dragoman.types import Cost, Usage

#: Nothing, in the words of those that send every field.
_Empty: TypeAlias = Literal[""] | None


class _Text(msgspec.Struct, gc=False):
    content: str
    tool_calls: None = None
    reasoning_content: _Empty = None
    reasoning: _Empty = None
    reasoning_details: None = None
    refusal: None = None
    annotations: None = None
    extra_content: None = None
    function_call: None = None
    thinking: None = None
    reasoning_text: _Empty = None
    reasoning_opaque: _Empty = None
    audio: None = None
    images: None = None


class _Function(msgspec.Struct, gc=False):
    arguments: str
    name: None = None


class _Call(msgspec.Struct, gc=False):
    index: int
    function: _Function
    id: _Empty = None
    extra_content: None = None


class _Arguments(msgspec.Struct, gc=False):
    tool_calls: tuple[_Call]
    content: _Empty = None
    reasoning_content: _Empty = None
    reasoning: _Empty = None
    reasoning_details: None = None
    refusal: None = None
    annotations: None = None
    extra_content: None = None
    function_call: None = None
    thinking: None = None
    reasoning_text: _Empty = None
    reasoning_opaque: _Empty = None
    audio: None = None
    images: None = None


class _TextChoice(msgspec.Struct, gc=False):
    index: int
    delta: _Text
    finish_reason: _Empty = None
    message: None = None
    error: None = None
    usage: None = None


class _ArgumentsChoice(msgspec.Struct, gc=False):
    index: int
    delta: _Arguments
    finish_reason: _Empty = None
    message: None = None
    error: None = None
    usage: None = None


class _TextChunk(msgspec.Struct, gc=False):
    choices: tuple[_TextChoice]
    usage: None = None
    error: None = None
    x_groq: None = None


class _ArgumentsChunk(msgspec.Struct, gc=False):
    choices: tuple[_ArgumentsChoice]
    usage: None = None
    error: None = None
    x_groq: None = None


class _UsageChunk(msgspec.Struct, gc=False):
    """A chunk without choices that tells usage and nothing else: the fields by which others tell of an error."""

    object: Literal["chat.completion.chunk"]
    usage: dict[str, _json.Json]
    x_groq: None = None
    message: None = None
    msg: None = None
    detail: None = None
    type: None = None
    status: None = None
    success: None = None
    base_resp: None = None


_decode_texts: Final = _json.lines_decoder(_TextChunk)
_decode_arguments: Final = _json.lines_decoder(_ArgumentsChunk)
_decode_usage: Final = _json.typed_decoder(_UsageChunk)


def read_texts(lines: list[bytes], choice: int | None) -> list[str] | None:
    """The texts of chunks that hold text alone, none of them empty; None when any holds something else.

    Args:
        choice: the index of the choice that is read.
    """
    alike = read_alike(lines, b'"content"')
    chunks = _decode_texts(lines[:1] if alike else lines)
    if chunks is None:
        return None
    choices = [chunk.choices[0] for chunk in chunks]
    texts = [each.delta.content for each in choices if each.index == choice and each.delta.content]
    return (alike or texts) if len(texts) == len(chunks) else None


def read_arguments(lines: list[bytes], choice: int | None) -> tuple[int, list[str]] | None:
    """The index of a call and the texts of chunks that let its arguments grow, none of them empty; None when any
    holds something else."""
    alike = read_alike(lines, b'"arguments"')
    chunks = _decode_arguments(lines[:1] if alike else lines)
    if chunks is None:
        return None
    calls = [each.choices[0].delta.tool_calls[0] for each in chunks if each.choices[0].index == choice]
    index = calls[0].index if calls else 0
    texts = [call.function.arguments for call in calls if call.index == index and call.function.arguments]
    return (index, alike or texts) if len(texts) == len(chunks) else None


def read_bare_usage(chunk: bytes) -> tuple[Usage, Cost | None] | None:
    """The usage of a chunk that holds nothing else; None when it may hold something else."""
    read = _decode_usage(chunk)
    if isinstance(read, _json.Malformed) or b"rror" in chunk:
        return None
    return read_usage(read.usage), read_cost(read.usage)
