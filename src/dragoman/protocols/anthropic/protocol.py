"""The protocol as a record of its files' functions."""

from __future__ import annotations

import re
from typing import Final

from dragoman.codec.cross_protocol_request import crossing
from dragoman.codec.errors.error_body import parse_error
from dragoman.protocol import Protocol, TurnRules
from dragoman.protocol.hosted_path import HostedPath
from dragoman.protocol.model_pages import ModelPage
from dragoman.protocols.anthropic.passthrough import check_whole, goes_as_came, peek
from dragoman.protocols.anthropic.request.foreign_tools import FORMS
from dragoman.protocols.anthropic.request.parse import parse_request
from dragoman.protocols.anthropic.request.render import render_request
from dragoman.protocols.anthropic.response.decode import Decoder
from dragoman.protocols.anthropic.response.encode import Encoder, render_error, render_response
from dragoman.protocols.anthropic.response.plain_answer import read_plain_answer
from dragoman.protocols.anthropic.wire import NAME

#: Fields of a body that clouds have in place of headers.
_OF_CLOUDS: Final = ("anthropic_version",)
_HEADS: Final = {"anthropic_beta": "anthropic-beta"}


def _model_pages() -> tuple[ModelPage, ...]:
    from dragoman.protocols.anthropic.model_pages import MODEL_PAGES

    return MODEL_PAGES


PROTOCOL: Final = Protocol(
    name=NAME,
    routes=(("POST", "/v1/messages"),),
    models_path="/v1/models",
    model_pages=_model_pages,
    address_variable="ANTHROPIC_BASE_URL",
    stream_type="text/event-stream; charset=utf-8",
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
    tools=FORMS,
    turns=TurnRules(later_system=False, user=True, no_media=("assistant", "system")),
    goes_as_came=goes_as_came,
    id_header="request-id",
    end_marks=(b'"message_stop"',),
    stop_mark=re.compile(rb'stop_reason"\s*:\s*"[^"]'),
    hosted_paths=(
        *(
            HostedPath(f"{base}/models/{{model}}:{verb}", "/v1/messages", adds, _OF_CLOUDS, _HEADS)
            for base in ("/v1/projects/{project}/locations/{location}/publishers/anthropic",)  # Vertex
            for verb, adds in (("rawPredict", {}), ("streamRawPredict", {"stream": True}))
        ),
        HostedPath("/model/{model}/invoke", "/v1/messages", {}, _OF_CLOUDS, _HEADS),  # Bedrock
    ),
    output_limits=(("max_tokens",),),
    marks_cache=True,
    seals_thinking=True,
)
