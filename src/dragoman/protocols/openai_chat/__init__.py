"""OpenAI Chat Completions (`openai-chat`): https://platform.openai.com/docs/api-reference/chat (read 2026-11-21)."""

from __future__ import annotations

from typing import Final

from dragoman.contract import Protocol
from dragoman.protocols.openai_chat.decode import Decoder, parse_error
from dragoman.protocols.openai_chat.encode import Encoder, render_error, render_response
from dragoman.protocols.openai_chat.expectation import expect
from dragoman.protocols.openai_chat.foreign import FORMS
from dragoman.protocols.openai_chat.glance import conclude, glance
from dragoman.protocols.openai_chat.render import render_request
from dragoman.protocols.openai_chat.request import parse_request
from dragoman.protocols.openai_chat.wire import NAME
from dragoman.request_crossing import crossing

PROTOCOL: Final = Protocol(
    name=NAME,
    routes=(("POST", "/v1/chat/completions"),),
    stream_type="text/event-stream",
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
    expect=expect,
)
