"""Ollama's native protocol (`ollama-chat`): lines of JSON, whole calls with object arguments."""

from __future__ import annotations

from dragoman.contract import Protocol
from dragoman.protocols.ollama.decode import Decoder, parse_error
from dragoman.protocols.ollama.encode import Encoder, render_error, render_response
from dragoman.protocols.ollama.glance import conclude, glance
from dragoman.protocols.ollama.render import render_request
from dragoman.protocols.ollama.request import parse_request
from dragoman.protocols.ollama.wire import NAME
from dragoman.request_crossing import crossing

PROTOCOL = Protocol(
    name=NAME,
    routes=(("POST", "/api/chat"),),
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
    glance=glance,
    conclude=conclude,
)
