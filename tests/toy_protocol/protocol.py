"""The protocol as a record."""

from __future__ import annotations

from typing import Final

from dragoman.protocols.toy.request import parse_request, peek, render_request
from dragoman.protocols.toy.response import Decoder, Encoder, check_whole, parse_error, render_error, render_response
from dragoman.protocols.toy.wire import NAME

from dragoman.protocol import Protocol

PROTOCOL: Final = Protocol(
    name=NAME,
    routes=(("POST", "/toy/talk"),),
    models_path="/toy/models",
    model_pages=tuple,
    address_variable="TOY_HOST",
    stream_type="application/x-ndjson",
    parse_request=parse_request,
    render_request=render_request,
    decoder=Decoder,
    parse_error=parse_error,
    encoder=Encoder,
    render_response=render_response,
    render_error=render_error,
    peek=peek,
    check_whole=check_whole,
)
