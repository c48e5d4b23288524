"""The protocol as a record of its files' functions."""

from __future__ import annotations

from dragoman.codec.cross_protocol_request import crossing
from dragoman.codec.errors.error_body import parse_error
from dragoman.protocol import Protocol, TurnRules
from dragoman.protocol.hosted_path import HostedPath
from dragoman.protocol.model_pages import ModelPage
from dragoman.protocols.gemini.passthrough import check_whole, peek
from dragoman.protocols.gemini.request.expectation import expect
from dragoman.protocols.gemini.request.foreign_tools import FORMS
from dragoman.protocols.gemini.request.parse import parse_request
from dragoman.protocols.gemini.request.render import render_request
from dragoman.protocols.gemini.response.decode import Decoder
from dragoman.protocols.gemini.response.encode import Encoder, render_error, render_response
from dragoman.protocols.gemini.response.plain_answer import read_plain_answer
from dragoman.protocols.gemini.wire import NAME


def _model_pages() -> tuple[ModelPage, ...]:
    from dragoman.protocols.gemini.model_pages import MODEL_PAGES

    return MODEL_PAGES


PROTOCOL = Protocol(
    name=NAME,
    routes=tuple(
        ("POST", f"/{version}/{kind}/{{model}}:{verb}")
        for version in ("v1beta", "v1")
        for kind in ("models", "tunedModels")
        for verb in ("generateContent", "streamGenerateContent")
    ),
    models_path="/models",
    model_pages=_model_pages,
    address_variable="GOOGLE_GEMINI_BASE_URL",
    stream_type="text/event-stream",
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
    expect=expect,
    tools=FORMS,
    turns=TurnRules(user=True, seals_calls=True, no_media=("system",)),
    tells_failed_calls=True,
    hosted_paths=tuple(  # Vertex
        HostedPath(
            f"/{version}/projects/{{project}}/locations/{{location}}/publishers/google/models/{{model}}:{verb}",
            f"/v1beta/models/{{model}}:{verb}",
        )
        for version in ("v1", "v1beta1")
        for verb in ("generateContent", "streamGenerateContent", "countTokens")
    ),
    output_limits=(("generationConfig", "maxOutputTokens"), ("generation_config", "max_output_tokens")),
)
