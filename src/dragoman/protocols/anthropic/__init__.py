"""Anthropic's Messages API: https://docs.anthropic.com/en/api/messages (read 2026-11-21)."""

from __future__ import annotations

from typing import Final

from dragoman.contract import Protocol
from dragoman.protocols.anthropic.decode import Decoder, parse_error
from dragoman.protocols.anthropic.encode import Encoder, render_error, render_response
from dragoman.protocols.anthropic.foreign import FORMS
from dragoman.protocols.anthropic.glance import conclude, glance
from dragoman.protocols.anthropic.render import render_request
from dragoman.protocols.anthropic.request import parse_request
from dragoman.protocols.anthropic.wire import NAME
from dragoman.request_crossing import crossing

PROTOCOL: Final = Protocol(
    name=NAME,
    routes=(("POST", "/v1/messages"),),
    stream_type="text/event-stream; charset=utf-8",
    parse_request=parse_request,
    render_request=crossing(NAME, render_request),
    decoder=Decoder,
    parse_error=parse_error,
    encoder=Encoder,
    render_response=render_response,
    render_error=render_error,
    glance=glance,
    conclude=conclude,
    tools=FORMS,
)
