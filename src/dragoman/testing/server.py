"""A fake model on a port of this machine, for programs that speak one of the five protocols without dragoman."""

from __future__ import annotations

import http.server
import re
import threading
import time
from collections.abc import Callable
from typing import Any, Final, Self, final

from dragoman import _json
from dragoman.errors import UsageError, WireError
from dragoman.events import Failure
from dragoman.inputs.keywords import seen
from dragoman.protocols import EMBEDDING, NAMES, PROTOCOLS, embedder
from dragoman.testing.wire import Played
from dragoman.types import ProtocolName

#: What answers a request: its protocol, path and body.
Answering = Callable[[ProtocolName, str, bytes], Played]
_LARGEST: Final = 64 * 1024 * 1024
_JSON: Final = {"content-type": "application/json"}
#: The one model that a list has, which every list's reader finds: the server takes every other name too.
_NAME: Final = "fake-model"
_LIST: Final = {
    "object": "list",
    "data": [{"id": _NAME, "object": "model", "type": "model", "display_name": _NAME, "created": 0, "owned_by": _NAME}],
    "has_more": False,
    "models": [{"name": _NAME, "model": _NAME}],
}


@final
class Served:
    """A server that answers all five protocols. It runs until `close`, or until its `with` block ends.

    It lists one model, `fake-model`, and answers to every name.

    Attributes:
        port: where it listens.
        url: its address, as `http://127.0.0.1:PORT`; clients of OpenAI's protocols want `/v1` behind it.
    """

    def __init__(self, answering: Answering, port: int = 0) -> None:
        try:
            self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), _handler(answering))
        except (OSError, OverflowError, TypeError) as problem:
            why = str(problem)[:80]
            raise UsageError(f"port: expected one that is free, from 0 to 65535, got {seen(port)}: {why}") from None
        self._server.daemon_threads = True
        self.port: int = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        """The server itself."""
        return self

    def __exit__(self, *problem: object) -> None:
        """End it."""
        self.close()

    def close(self) -> None:
        """End it; the second time it does nothing."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


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


def _handler(answering: Answering) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if any(path.endswith(protocol.models_path) for protocol in PROTOCOLS.values()):
                self._send(Played(200, _JSON, _json.encode(_LIST)))
            else:
                self._send(Played(404, {"content-type": "text/plain"}, b"the fake model has no such path"))

        def do_POST(self) -> None:
            size = int(self.headers.get("content-length") or 0)
            body = self.rfile.read(min(size, _LARGEST))
            name = _protocol_of(self.path)
            if name is None:
                self._send(Played(404, {"content-type": "text/plain"}, b"the fake model has no such path"))
                return
            try:
                played = answering(name, self.path, body)
            except WireError as problem:
                played = _refusal(name, Failure("bad_request", str(problem), status=400))
            except UsageError as problem:  # no turn is left
                played = _refusal(name, Failure("internal", str(problem), status=500))
            time.sleep(played.delay)
            self._send(played)

        def _send(self, played: Played) -> None:
            self.send_response(played.status)
            for header, value in played.headers.items():
                self.send_header(header, value)
            missing = 1 if played.is_cut else 0
            self.send_header("content-length", str(len(played.body) + missing))
            self.end_headers()
            self.wfile.write(played.body)
            self.close_connection = played.is_cut

        def log_message(self, format: str, *arguments: Any) -> None:
            """Nothing is said."""

    return Handler


def _refusal(name: ProtocolName, failure: Failure) -> Played:
    status, body = PROTOCOLS[name].render_error(failure)
    return Played(status, _JSON, body)
