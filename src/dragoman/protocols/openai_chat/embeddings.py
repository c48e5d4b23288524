"""`/v1/embeddings`: https://platform.openai.com/docs/api-reference/embeddings (read 2026-11-22)."""

from __future__ import annotations

import base64
import struct
from typing import Any, Final

import msgspec

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.codec.embeddings import Embedded, Embedder, EmbedRequest, embedded, packed
from dragoman.codec.json_fields import make_native, native_fields, read, read_body, read_count, read_text
from dragoman.errors import WireError
from dragoman.protocol import HttpRequest
from dragoman.protocols.openai_chat.wire import NAME

_MODELLED: Final = ("model", "input", "dimensions", "encoding_format")


class _Row(msgspec.Struct):
    """A vector. `index` is its place, if it is a whole number."""

    embedding: Raw
    index: Any = None


class _Answer(msgspec.Struct):
    """An answer. Its vectors stay text: as numbers they take twice its size, and hold the interpreter for long."""

    data: list[_Row]
    usage: Any = None


_decode_answer = _json.typed_decoder(_Answer)
_QUOTE: Final = ord('"')


def parse_request(body: bytes, *, path: str = "") -> EmbedRequest:
    """Parse a client's request."""
    fields = read_body(body)
    model = read_text(fields.get("model"))
    if not model:
        raise WireError("expected the name of a model", path="model")
    return EmbedRequest(
        model,
        _parse_inputs(read(fields.get("input"))),
        read_count(fields.get("dimensions")),
        is_packed=read_text(fields.get("encoding_format")) == "base64",
        native=make_native(NAME, fields, *_MODELLED),
    )


def _parse_inputs(value: Json) -> tuple[str | tuple[int, ...], ...]:
    if isinstance(value, str):
        return (value,)
    if _is_tokens(value):
        return (tuple(value),)
    if isinstance(value, list) and value and all(isinstance(item, str) or _is_tokens(item) for item in value):
        return tuple(item if isinstance(item, str) else tuple(item) for item in value)
    raise WireError("expected a text, a list of texts or tokens", path="input")


def _is_tokens(value: Json) -> bool:
    return isinstance(value, list) and bool(value) and all(type(item) is int for item in value)


def render_request(request: EmbedRequest) -> HttpRequest:
    """Render a request for a provider. Vectors are requested as numbers."""
    inputs: list[Json] = [list(item) if isinstance(item, tuple) else item for item in request.inputs]
    body: dict[str, Json] = {"model": request.model, "input": inputs[0] if len(inputs) == 1 else inputs}
    if request.dimensions is not None:
        body["dimensions"] = request.dimensions
    body |= {"encoding_format": "float", **native_fields(request.native, NAME)}
    return HttpRequest("/embeddings", _json.encode(body), {"content-type": "application/json"})


def parse_response(body: bytes) -> Embedded:
    """Parse a provider's answer; its vectors may come in any order and packed all the same."""
    answer = _decode_answer(body)
    if isinstance(answer, Malformed):
        raise WireError("expected a list of embeddings", status=502)
    rows = sorted(enumerate(answer.data), key=lambda row: row[1].index if type(row[1].index) is int else row[0])
    tokens = answer.usage.get("prompt_tokens") if isinstance(answer.usage, dict) else None
    vectors = tuple(_unpacked(row.embedding) for _, row in rows)
    return embedded(vectors, tokens if type(tokens) is int else None)


def _unpacked(told: Raw) -> Raw:
    vector = read(told) if memoryview(told)[0] == _QUOTE else None
    if not isinstance(vector, str):
        return told
    try:
        data = base64.b64decode(vector, validate=True)
        return _json.raw(list(struct.unpack(f"<{len(data) // 4}f", data)))
    except (ValueError, struct.error):
        raise WireError("expected an embedding in base64", status=502) from None


def render_response(request: EmbedRequest, embedded: Embedded, estimate: int) -> bytes:
    """Render an answer."""
    data = [
        {"object": "embedding", "index": index, "embedding": packed(vector) if request.is_packed else vector}
        for index, vector in enumerate(embedded.vectors)
    ]
    tokens = embedded.tokens if embedded.tokens is not None else estimate
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return _json.encode({"object": "list", "data": data, "model": request.model, "usage": usage})


EMBEDDER: Final = Embedder(("/v1/embeddings",), parse_request, render_request, parse_response, render_response)
