"""The protocol as a record of its files' functions."""

from __future__ import annotations

from dragoman.codec.cross_protocol_request import crossing
from dragoman.codec.errors.error_body import parse_error
from dragoman.protocol import Protocol
from dragoman.protocol.model_pages import ModelPage
from dragoman.protocols.ollama.client_styles import style_for
from dragoman.protocols.ollama.passthrough import check_whole, peek
from dragoman.protocols.ollama.request.parse import parse_request
from dragoman.protocols.ollama.request.render import render_request
from dragoman.protocols.ollama.response.decode import Decoder
from dragoman.protocols.ollama.response.encode import Encoder, render_error, render_response
from dragoman.protocols.ollama.response.plain_answer import read_plain_answer
from dragoman.protocols.ollama.wire import FORMS, NAME


def _model_pages() -> tuple[ModelPage, ...]:
    from dragoman.protocols.ollama.model_pages import MODEL_PAGES

    return MODEL_PAGES


PROTOCOL = Protocol(
    name=NAME,
    routes=(("POST", "/api/chat"),),
    models_path="/api/tags",
    model_pages=_model_pages,
    address_variable="OLLAMA_HOST",
    stream_type="application/x-ndjson",
    truncates_silently=True,
    takes_image_urls=False,
    parse_request=parse_request,
    render_request=crossing(NAME, render_request),
    decoder=Decoder,
    parse_error=parse_error,
    encoder=Encoder,
    render_response=render_response,
    render_error=render_error,
    peek=peek,
    check_whole=check_whole,
    read_whole=read_plain_answer,
    style_for=style_for,
    takes_result_media=False,
    tools=FORMS,
    end_marks=(b'"done":true', b'"done": true'),
    output_limits=(("options", "num_predict"),),
)
