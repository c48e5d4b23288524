"""Gemini's generateContent (`gemini-generate`): chunks of parts as events or as an array, whole calls, signatures."""

from __future__ import annotations

from dragoman.contract import Protocol
from dragoman.protocols.gemini.decode import Decoder, parse_error
from dragoman.protocols.gemini.encode import Encoder, render_error, render_response
from dragoman.protocols.gemini.foreign import FORMS
from dragoman.protocols.gemini.glance import conclude, glance
from dragoman.protocols.gemini.render import render_request
from dragoman.protocols.gemini.request import parse_request
from dragoman.protocols.gemini.wire import NAME
from dragoman.request_crossing import crossing

PROTOCOL = Protocol(
    name=NAME,
    routes=tuple(
        ("POST", f"/{version}/{kind}/{{model}}:{verb}")
        for version in ("v1beta", "v1")
        for kind in ("models", "tunedModels")
        for verb in ("generateContent", "streamGenerateContent")
    ),
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
    tells_failed_calls=True,
)
