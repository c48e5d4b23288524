"""The protocol as a record of its files' functions."""

from __future__ import annotations

from typing import Final

from dragoman.codec.cross_protocol_request import crossing
from dragoman.codec.errors.error_body import parse_error
from dragoman.protocol import Protocol
from dragoman.protocol.hosted_path import HostedPath
from dragoman.protocol.model_pages import ModelPage
from dragoman.protocols.openai_responses.passthrough import check_whole, peek
from dragoman.protocols.openai_responses.request.expectation import expect
from dragoman.protocols.openai_responses.request.foreign_tools import FORMS
from dragoman.protocols.openai_responses.request.parse_and_render import parse_request, render_request
from dragoman.protocols.openai_responses.response.decode import Decoder
from dragoman.protocols.openai_responses.response.encode import Encoder, render_response
from dragoman.protocols.openai_responses.response.errors import render_error
from dragoman.protocols.openai_responses.response.plain_answer import read_plain_answer
from dragoman.protocols.openai_responses.wire import NAME


def _model_pages() -> tuple[ModelPage, ...]:
    from dragoman.protocols.openai_responses.model_pages import MODEL_PAGES

    return MODEL_PAGES


PROTOCOL: Final = Protocol(
    name=NAME,
    routes=(("POST", "/v1/responses"),),
    models_path="/models",
    model_pages=_model_pages,
    address_variable="OPENAI_BASE_URL",
    address_path="/v1",
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
    tools=FORMS,
    expect=expect,
    tells_failed_calls=True,
    end_marks=(b'"response.completed"', b'"response.incomplete"', b'"response.failed"'),
    hosted_paths=(  # Azure
        HostedPath("/openai/responses", "/v1/responses"),
        HostedPath("/openai/v1/responses", "/v1/responses"),
    ),
    output_limits=(("max_output_tokens",),),
    seals_thinking=True,
)
