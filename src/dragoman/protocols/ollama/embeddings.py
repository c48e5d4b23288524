"""`/api/embed`, and `/api/embeddings` before it: https://docs.ollama.com/api/embed (read 2026-11-22)."""

from __future__ import annotations

from typing import Final

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.codec.embeddings import Embedded, Embedder, EmbedRequest, embedded
from dragoman.codec.json_fields import make_native, native_fields, read, read_body, read_count, read_text
from dragoman.errors import WireError
from dragoman.protocol import HttpRequest
from dragoman.protocols.ollama.wire import NAME

#: The older path: one text in, one vector out.
_SINGLE: Final = "/api/embeddings"
_UNMEASURED: Final = 1  # nanoseconds; nothing here knows the time
_MODELLED: Final = ("model", "input", "prompt", "dimensions")
_decode_answer = _json.typed_decoder(dict[str, Raw])
_decode_vectors = _json.typed_decoder(tuple[Raw, ...])


def parse_request(body: bytes, *, path: str = "") -> EmbedRequest:
    """Parse a client's request."""
    fields = read_body(body)
    model = read_text(fields.get("model"))
    if not model:
        raise WireError("expected the name of a model", path="model")
    is_single = path.partition("?")[0] == _SINGLE
    name = "prompt" if is_single else "input"
    value: Json = read(fields.get(name))
    inputs = [value] if isinstance(value, str) else value
    if not isinstance(inputs, list) or not all(isinstance(item, str) for item in inputs):
        raise WireError("expected a text or a list of texts", path=name)
    native = make_native(NAME, fields, *_MODELLED)
    return EmbedRequest(model, tuple(inputs), read_count(fields.get("dimensions")), is_single, native=native)


def render_request(request: EmbedRequest) -> HttpRequest:
    """Render a request for a provider."""
    if not all(isinstance(item, str) for item in request.inputs):
        raise WireError("expected text: this model's server takes no tokens", path="input")
    body: dict[str, Json] = {"model": request.model, "input": list(request.inputs)}
    if request.dimensions is not None:
        body["dimensions"] = request.dimensions
    body |= native_fields(request.native, NAME)
    return HttpRequest("/api/embed", _json.encode(body), {"content-type": "application/json"})


def parse_response(body: bytes) -> Embedded:
    """Parse a provider's answer."""
    fields = _decode_answer(body)
    if isinstance(fields, Malformed) or "embeddings" not in fields:
        raise WireError("expected embeddings", status=502)
    vectors = _decode_vectors(bytes(fields["embeddings"]))
    if isinstance(vectors, Malformed):
        raise WireError("expected a list of embeddings", status=502)
    return embedded(vectors, read_count(fields.get("prompt_eval_count")))


def render_response(request: EmbedRequest, embedded: Embedded, estimate: int) -> bytes:
    """Render an answer."""
    if request.is_single:
        return _json.encode({"embedding": embedded.vectors[0] if embedded.vectors else []})
    tokens = embedded.tokens if embedded.tokens is not None else estimate
    figures = {"total_duration": _UNMEASURED, "load_duration": _UNMEASURED, "prompt_eval_count": tokens}
    return _json.encode({"model": request.model, "embeddings": embedded.vectors, **figures})


EMBEDDER: Final = Embedder(("/api/embed", _SINGLE), parse_request, render_request, parse_response, render_response)
