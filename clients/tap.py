"""Between a client and the gateway: what the client really sent, to be compared with what the provider got."""

from __future__ import annotations

import http.client
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

#: What belongs to a connection, and what the gateway answers for itself: keys, the host, how bodies are packed.
OWN = frozenset({
    "host", "connection", "keep-alive", "transfer-encoding", "content-length", "accept-encoding", "authorization",
    "x-api-key", "te", "trailer", "upgrade",
})  # fmt: skip
_SECONDS = 120


@dataclass
class Sent:
    """The requests of a client. `url`: where it is to send them."""

    url: str = ""
    heads: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    def differences(self, heads: list[dict[str, str]], bodies: list[bytes]) -> list[str]:
        """What came otherwise at the provider, one line each."""
        if self.bodies != bodies:
            equal = sum(one == other for one, other in zip(self.bodies, bodies, strict=False))
            return [f"{equal} of {len(self.bodies)} bodies came byte for byte, {len(bodies)} came"]
        found = []
        for number, (sent, got) in enumerate(zip(self.heads, heads, strict=True), 1):
            names = sorted((sent.keys() | got.keys()) - OWN)
            differing = [name for name in names if sent.get(name) != got.get(name)]
            found += [f"request {number}: the header {name} differs" for name in differing]
        return found


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        self._forward()

    def do_HEAD(self) -> None:
        self._forward()

    def do_POST(self) -> None:
        self._forward()

    def _forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        heads = {name.lower(): value for name, value in self.headers.items()}
        if self.server.path in self.path and "count_tokens" not in self.path:
            self.server.sent.heads.append(heads)
            self.server.sent.bodies.append(body)
        gateway = http.client.HTTPConnection(self.server.host, self.server.port, timeout=_SECONDS)
        try:
            gateway.request(self.command, self.path, body, dict(self.headers.items()))
            answer = gateway.getresponse()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                    self.send_header(name, value)
            self.send_header("connection", "close")
            self.end_headers()
            while piece := answer.read1(65536):
                self.wfile.write(piece)
                self.wfile.flush()
        finally:
            gateway.close()
        self.close_connection = True

    def log_message(self, format: str, *arguments: object) -> None:
        pass


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, url: str, path: str, sent: Sent) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        parts = urlsplit(url)
        self.host, self.port = parts.hostname or "", parts.port or 0
        self.path = path
        self.sent = sent


@contextmanager
def tapped(url: str, path: str) -> Iterator[Sent]:
    """Take requests for a gateway, and remember those to `path`, until the block ends."""
    sent = Sent()
    server = _Server(url, path, sent)
    sent.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield sent
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
