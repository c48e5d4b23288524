"""The protocol as a record of its files' functions."""

from __future__ import annotations

import re
from typing import Final

from dragoman.codec.cross_protocol_request import crossing
from dragoman.codec.errors.error_body import parse_error
from dragoman.protocol import Protocol, Sibling, TurnRules
from dragoman.protocol.hosted_path import HostedPath
from dragoman.protocol.model_pages import ModelPage
from dragoman.protocols.openai_chat.passthrough import check_whole, peek, without_usage
from dragoman.protocols.openai_chat.request.expectation import expect
from dragoman.protocols.openai_chat.request.foreign_tools import FORMS
from dragoman.protocols.openai_chat.request.parse import parse_request
from dragoman.protocols.openai_chat.request.render import render_request
from dragoman.protocols.openai_chat.response.decode import Decoder
from dragoman.protocols.openai_chat.response.encode import Encoder, render_error, render_response
from dragoman.protocols.openai_chat.response.plain_answer import read_plain_answer
from dragoman.protocols.openai_chat.wire import NAME


def _model_pages() -> tuple[ModelPage, ...]:
    from dragoman.protocols.openai_chat.model_pages import MODEL_PAGES

    return MODEL_PAGES


PROTOCOL: Final = Protocol(
    name=NAME,
    routes=(("POST", "/v1/chat/completions"),),
    models_path="/models",
    model_pages=_model_pages,
    address_variable="OPENAI_BASE_URL",
    address_path="/v1",
    stream_type="text/event-stream",
    parse_request=parse_request,
    render_request=crossing(NAME, render_request),
    decoder=Decoder,
    read_whole=read_plain_answer,
    parse_error=parse_error,
    encoder=Encoder,
    render_response=render_response,
    render_error=render_error,
    peek=peek,
    check_whole=check_whole,
    turns=TurnRules(no_media=("assistant", "system")),
    without_usage=without_usage,
    takes_result_media=False,
    tools=FORMS,
    expect=expect,
    sibling=Sibling("openai-responses", has="input", lacks="messages"),  # Cursor
    end_marks=(b"[DONE]",),
    stop_mark=re.compile(rb'finish_reason"\s*:\s*"[^"]'),
    hosted_paths=(  # Azure
        HostedPath("/openai/deployments/{model}/chat/completions", "/v1/chat/completions"),
        HostedPath("/openai/deployments/{model}/embeddings", "/v1/embeddings"),
        HostedPath("/openai/v1/chat/completions", "/v1/chat/completions"),
        HostedPath("/openai/v1/embeddings", "/v1/embeddings"),
    ),
    output_limits=(("max_tokens",), ("max_completion_tokens",)),
)
