"""OpenAI Responses: https://platform.openai.com/docs/api-reference/responses (read 2026-11-21)."""

from __future__ import annotations

from typing import Final

from dragoman.contract import Protocol
from dragoman.protocols.openai_responses.decode import Decoder, parse_error
from dragoman.protocols.openai_responses.encode import Encoder, render_error, render_response
from dragoman.protocols.openai_responses.expectation import expect
from dragoman.protocols.openai_responses.foreign import FORMS
from dragoman.protocols.openai_responses.glance import conclude, glance
from dragoman.protocols.openai_responses.request import parse_request, render_request
from dragoman.protocols.openai_responses.wire import NAME
from dragoman.request_crossing import crossing

PROTOCOL: Final = Protocol(
    name=NAME,
    routes=(("POST", "/v1/responses"),),
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
    tells_failed_calls=True,
)
