"""`embedContent` and `batchEmbedContents`: https://ai.google.dev/api/embeddings (read 2026-11-22)."""

from __future__ import annotations

from typing import Final

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.codec.embeddings import Embedded, Embedder, EmbedRequest, embedded
from dragoman.codec.json_fields import (
    Fields,
    make_native,
    native_fields,
    read,
    read_body,
    read_count,
    read_fields,
    read_items,
)
from dragoman.errors import WireError
from dragoman.protocol import HttpRequest
from dragoman.protocols.gemini.request.parse import read_model
from dragoman.protocols.gemini.wire import NAME, camel_fields, model_path

_ONE: Final = "embedContent"
_BATCH: Final = "batchEmbedContents"
_MODELLED: Final = ("model", "content", "outputDimensionality")
_decode_answer = _json.typed_decoder(dict[str, Raw])
_decode_rows = _json.typed_decoder(tuple[dict[str, Raw], ...])


def parse_request(body: bytes, *, path: str = "") -> EmbedRequest:
    """Parse a client's request; the model and the verb stand in the path."""
    fields = camel_fields(read_body(body))
    model, verb = read_model(path)
    rows = [fields]
    if verb == _BATCH:
        items = read_items(fields.get("requests"))
        if not items:
            raise WireError("expected a list of requests", path="requests")
        rows = [camel_fields(read_fields(item) or {}) for item in items]
    first = rows[0]
    return EmbedRequest(
        model,
        tuple(_parse_text(row) for row in rows),
        read_count(first.get("outputDimensionality")),
        is_single=verb == _ONE,
        native=make_native(NAME, first, *_MODELLED),
    )


def _parse_text(row: Fields) -> str:
    content: Json = read(row.get("content"))
    parts = content.get("parts") if isinstance(content, dict) else content
    parts = parts if isinstance(parts, list) else [parts]
    said = [part.get("text") if isinstance(part, dict) else part for part in parts]
    texts = [text for text in said if isinstance(text, str)]
    if not texts or len(texts) < len(said):
        raise WireError("expected a content of text parts", path="content")
    return "".join(texts)


def render_request(request: EmbedRequest) -> HttpRequest:
    """Render a request for a provider: always a batch."""
    own: dict[str, Json] = {"model": f"models/{request.model}", **native_fields(request.native, NAME)}
    if request.dimensions is not None:
        own["outputDimensionality"] = request.dimensions
    rows: list[Json] = []
    for item in request.inputs:
        if not isinstance(item, str):
            raise WireError("expected text: this model's server takes no tokens", path="input")
        rows.append({**own, "content": {"parts": [{"text": item}]}})
    body = _json.encode({"requests": rows})
    return HttpRequest(f"{model_path(request.model)}:{_BATCH}", body, {"content-type": "application/json"})


def parse_response(body: bytes) -> Embedded:
    """Parse a provider's answer."""
    fields = _decode_answer(body)
    rows = _decode_rows(bytes(fields["embeddings"])) if isinstance(fields, dict) and "embeddings" in fields else None
    if rows is None or isinstance(rows, Malformed) or not all("values" in row for row in rows):
        raise WireError("expected a list of embeddings", status=502)
    return embedded(tuple(row["values"] for row in rows))


def render_response(request: EmbedRequest, embedded: Embedded, estimate: int) -> bytes:
    """Render an answer. The protocol reports no tokens here."""
    rows = [{"values": vector} for vector in embedded.vectors]
    if request.is_single:
        return _json.encode({"embedding": rows[0] if rows else {"values": []}})
    return _json.encode({"embeddings": rows})


EMBEDDER: Final = Embedder(
    tuple(
        f"/{version}/{kind}/{{model}}:{verb}"
        for version in ("v1beta", "v1")
        for kind in ("models", "tunedModels")
        for verb in (_ONE, _BATCH)
    ),
    parse_request,
    render_request,
    parse_response,
    render_response,
)
