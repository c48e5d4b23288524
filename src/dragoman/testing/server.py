"""A fake model on a port of this machine, for programs that speak one of the five protocols without dragoman."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Final

from dragoman import _json
from dragoman.errors import UsageError, WireError
from dragoman.events import Failure
from dragoman.protocols import EMBEDDING, NAMES, PROTOCOLS, embedder
from dragoman.recording.local_server import LARGEST, Asked, Served, read_body, refuse
from dragoman.testing.wire import Played
from dragoman.types import ProtocolName

#: What answers a request: its protocol, path and body.
Answering = Callable[[ProtocolName, str, bytes], Played]
_JSON: Final = {"content-type": "application/json"}
#: The one model that a list has, which every list's reader finds: the server takes every other name too.
_NAME: Final = "fake-model"
_LIST: Final = {
    "object": "list",
    "data": [{"id": _NAME, "object": "model", "type": "model", "display_name": _NAME, "created": 0, "owned_by": _NAME}],
    "has_more": False,
    "models": [{"name": _NAME, "model": _NAME}],
}


def serve(answering: Answering, port: int = 0) -> Served:
    """Start a server that answers all five protocols. It lists one model, `fake-model`, and answers to every name.

    Raises:
        UsageError: the port is taken.
    """
    return Served(lambda asked: _respond(asked, answering), port)


def _protocol_of(path: str) -> ProtocolName | None:
    plain = path.partition("?")[0]
    for name in NAMES:
        routes = [route for _, route in PROTOCOLS[name].routes]
        if name in EMBEDDING:
            routes += embedder(name).routes
        for route in routes:
            if re.fullmatch(re.escape(route).replace(re.escape("{model}"), ".+"), plain):
                return name
    return None


def _respond(asked: Asked, answering: Answering) -> None:
    if asked.command not in ("GET", "POST"):
        return refuse(asked, 501, "the fake model answers GET and POST")
    body = read_body({name.lower(): value for name, value in asked.headers.items()}, asked.rfile)
    if body is None:
        return refuse(asked, 413, f"the request is larger than {LARGEST} bytes, or its length is not told")
    name = _protocol_of(asked.path)
    plain = asked.path.partition("?")[0]
    if asked.command == "GET" and any(plain.endswith(protocol.models_path) for protocol in PROTOCOLS.values()):
        return _send(asked, Played(200, _JSON, _json.encode(_LIST)))
    if asked.command == "GET" or name is None:
        return _send(asked, Played(404, {"content-type": "text/plain"}, b"the fake model has no such path"))
    try:
        played = answering(name, asked.path, body)
    except WireError as problem:
        played = _refusal(name, Failure("bad_request", str(problem), status=400))
    except UsageError as problem:  # no turn is left
        played = _refusal(name, Failure("internal", str(problem), status=500))
    time.sleep(played.delay)
    _send(asked, played)


def _send(asked: Asked, played: Played) -> None:
    asked.send_response(played.status)
    for header, value in played.headers.items():
        asked.send_header(header, value)
    missing = 1 if played.is_cut else 0
    asked.send_header("content-length", str(len(played.body) + missing))
    asked.end_headers()
    asked.wfile.write(played.body)
    asked.close_connection = played.is_cut


def _refusal(name: ProtocolName, failure: Failure) -> Played:
    status, body = PROTOCOLS[name].render_error(failure)
    return Played(status, _JSON, body)
