"""A threaded server on 127.0.0.1 for programs on this machine: the recorder's and the fake model's."""

from __future__ import annotations

import contextlib
import http.server
import threading
from collections.abc import Callable, Mapping
from io import BufferedIOBase
from typing import Any, Final, Self, TypeAlias, final

from dragoman.errors import UsageError
from dragoman.inputs.keywords import seen

#: Bytes of a request.
LARGEST: Final = 64 * 1024 * 1024
_CHUNK_LINE: Final = 1_024
_DIGITS: Final = 12  # of a length

#: One request, and where its answer is written.
Asked: TypeAlias = http.server.BaseHTTPRequestHandler


@final
class Served:
    """A server that passes every request to `respond`. It runs until `close`, or until its `with` block ends.

    Attributes:
        port: where it listens.
        url: its address, as `http://127.0.0.1:PORT`; clients of OpenAI's protocols want `/v1` behind it.
    """

    def __init__(self, respond: Callable[[Asked], None], port: int = 0) -> None:
        """Start it. Raises UsageError if the port is taken."""
        try:
            self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), _handler(respond))
        except (OSError, OverflowError, TypeError) as problem:
            why = str(problem)[:80]
            raise UsageError(f"port: expected one that is free, from 0 to 65535, got {seen(port)}: {why}") from None
        self._server.daemon_threads = True
        self.port: int = self._server.server_port
        self.url: str = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"Served({self.url})"

    def __enter__(self) -> Self:
        """Return the server itself."""
        return self

    def __exit__(self, *problem: object) -> None:
        """Stop it."""
        self.close()

    def close(self) -> None:
        """Stop it. A second call does nothing."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


def _handler(respond: Callable[[Asked], None]) -> type[Asked]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            respond(self)

        def handle(self) -> None:
            with contextlib.suppress(OSError):  # a client that breaks off is no fault of ours
                super().handle()

        do_GET = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_OPTIONS = do_POST

        def log_message(self, format: str, *arguments: Any) -> None:
            """Log nothing."""

    return Handler


def read_body(headers: Mapping[str, str], source: BufferedIOBase) -> bytes | None:
    """Return a request's body, or None if it is too large or its length is no number. `headers` have names in lower
    case.

    Raises:
        ConnectionError: the client closed the connection.
    """
    if "chunked" in (headers.get("transfer-encoding") or "").lower():
        return _read_chunks(source)
    length = headers.get("content-length") or "0"
    if not length.isascii() or not length.isdigit() or len(length) > _DIGITS or int(length) > LARGEST:
        return None
    body = source.read(int(length))
    if len(body) < int(length):
        raise ConnectionError("the client broke off")
    return body


def _read_chunks(source: BufferedIOBase) -> bytes | None:
    body = bytearray()
    while True:
        try:
            size = int(source.readline(_CHUNK_LINE).partition(b";")[0], 16)
        except ValueError:
            return None
        if size < 0 or len(body) + size > LARGEST:
            return None
        if size == 0:
            while source.readline(_CHUNK_LINE).strip():
                pass
            return bytes(body)
        body += source.read(size)
        source.readline(_CHUNK_LINE)


def refuse(asked: Asked, status: int, message: str) -> None:
    """Answer with one line of text, and close the connection: the rest of the request was not read."""
    data = f"{message}\n".encode("utf-8", "replace")
    asked.close_connection = True
    asked.send_response(status)
    asked.send_header("content-type", "text/plain; charset=utf-8")
    asked.send_header("content-length", str(len(data)))
    asked.send_header("connection", "close")
    with contextlib.suppress(OSError):
        asked.end_headers()
        if asked.command != "HEAD":
            asked.wfile.write(data)
