"""Read a chunk that begins calls, or ends or counts the answer, by one typed decode: it has what servers usually send,
each key once, and nothing else.

So nothing needs to be looked for in it. What does not fit these Structs is read as any chunk (`decode.py`), with the
same result.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.json_fields import Fields
from dragoman.codec.parts.assembly import Assembly
from dragoman.protocols.openai_chat.response.calls import CallReader
from dragoman.protocols.openai_chat.response.delta_batch import Growth
from dragoman.protocols.openai_chat.response.unmodelled import Kept
from dragoman.protocols.openai_chat.response.usage import read_cost, read_usage, rest_of_usage
from dragoman.protocols.openai_chat.wire import NOTHING, PlainCall


class _Delta(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    role: str | UnsetType | None = UNSET
    content: Literal[""] | UnsetType | None = UNSET
    reasoning_content: UnsetType | None = UNSET
    reasoning: UnsetType | None = UNSET
    tool_calls: list[PlainCall] | UnsetType | None = UNSET
    refusal: UnsetType | None = UNSET


class _Choice(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    index: int
    delta: _Delta
    logprobs: UnsetType | None = UNSET
    finish_reason: str | UnsetType | None = UNSET
    stop_reason: UnsetType | None = UNSET
    matched_stop: UnsetType | None = UNSET
    token_ids: UnsetType | None = UNSET


class PlainChunk(msgspec.Struct, gc=False, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Such a chunk. Fields stand in the usual order: what is written of it is then most often the frame itself."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    service_tier: Raw = NOTHING
    system_fingerprint: Raw = NOTHING
    choices: Annotated[list[_Choice], msgspec.Meta(max_length=1)]
    usage: dict[str, Json] | UnsetType | None = UNSET


_decode: Final = _json.typed_decoder(PlainChunk)


def read_plain(frame: bytes) -> PlainChunk | None:
    """Return the chunk of a frame, or None if it may have something else."""
    chunk = _decode(frame)
    if type(chunk) is not PlainChunk or not _json.holds_all(chunk, frame):
        return None
    if not are_texts(chunk.service_tier, chunk.system_fingerprint):
        return None
    return chunk if chunk.choices or (chunk.usage and b"rror" not in frame) else None


def are_texts(tier: Raw, fingerprint: Raw) -> bool:
    """Return whether each of these fields is a text, null, or absent."""
    return tier is fingerprint is NOTHING or all(bytes(raw)[:1] in (b"", b'"', b"n") for raw in (tier, fingerprint))


def kept_fields(tier: Raw, fingerprint: Raw) -> Fields:
    """Return those of these fields that are texts, as they were written: they are kept."""
    if tier is fingerprint is NOTHING:
        return {}
    told = {"service_tier": tier, "system_fingerprint": fingerprint}
    return {key: _json.compact(raw) for key, raw in told.items() if bytes(raw)[:1] == b'"'}


def tell_plain(
    chunk: PlainChunk, frame: bytes, assembly: Assembly, calls: CallReader, growth: Growth, kept: Kept
) -> None:
    """Take all of a chunk but its stop reason."""
    choice = chunk.choices[0] if chunk.choices else None
    pieces = choice.delta.tool_calls if choice is not None else None
    rest = kept_fields(chunk.service_tier, chunk.system_fingerprint)
    if not assembly.started:
        at = chunk.created if 0 < chunk.created < 1e11 else None
        assembly.start(chunk.id, chunk.model, at, native=kept.begin(rest))
    elif rest and (choice is None or choice.finish_reason):
        kept.tell_late(rest)
    if type(chunk.usage) is dict:
        assembly.usage(read_usage(chunk.usage, chunk.service_tier), read_cost(chunk.usage))
        kept.usage(rest_of_usage(chunk.usage))
    if calls.fails_by_id(
        chunk.id, frame, *((pieces[0].index, pieces[0].id, pieces[0].function.name) if pieces else ())
    ):
        return
    if pieces:
        calls.read_plain(pieces, frame)
        if len(pieces) == 1:
            growth.expect("call")
    if calls.is_watching and not (pieces and choice is not None and not choice.finish_reason):
        calls.look_around(frame)
