"""A model server on loopback that answers each path with what it is told to, for the commands that ask around."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any


@contextmanager
def answering(answers: Mapping[str, Any], *, key: str = "") -> Iterator[str]:
    """Serve until the block ends; gives the URL.

    Args:
        answers: path → JSON value; a tuple is (status, value), a callable gets the request's JSON. Others get 404.
        key: when set, requests without it as a bearer token get 401.
    """

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer(None)

        def do_POST(self) -> None:
            self.answer(json.loads(self.rfile.read(int(self.headers["content-length"]))))

        def answer(self, body: Any) -> None:
            status, value = 200, answers.get(self.path, (404, {"error": {"message": "no such path"}}))
            if key and self.headers["authorization"] != f"Bearer {key}":
                value = (401, {"error": {"message": "invalid key", "type": "authentication_error"}})
            if callable(value):
                value = value(body)
            if isinstance(value, tuple):
                status, value = value
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            with contextlib.suppress(OSError):  # the client has gone
                self.wfile.write(data)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
