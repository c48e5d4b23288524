"""A PostgreSQL that falls silent at any step: nothing of the connection stays, neither the socket nor a task of it."""

from __future__ import annotations

import gc
import socket
import struct
import threading
from contextlib import suppress

import pytest

from dragoman.ledger.interfaces import StoreAway
from dragoman.ledger.stores import postgresql_connection
from dragoman.ledger.stores.postgresql_connection import Connection
from dragoman.secret import Secret
from for_each import for_each


def said(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


WELCOME = (
    said(b"R", struct.pack("!i", 0))
    + said(b"S", b"server_version\x0017.1\x00")
    + said(b"K", struct.pack("!ii", 1, 2))
    + said(b"Z", b"I")
)


class SilentServer:
    """Lets everybody in, and says nothing more. `answers`: what a connection hears, one after each message."""

    def __init__(self, answers: tuple[bytes, ...]) -> None:
        self._answers = answers
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self.closed = 0  # connections, by who opened them
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                client.settimeout(5)
                self._threads.append(threading.Thread(target=self._serve, args=(client,), daemon=True))
                self._threads[-1].start()

    def _serve(self, client: socket.socket) -> None:
        left = list(self._answers)
        with client, suppress(OSError):
            while client.recv(65_536):
                if left:
                    client.sendall(left.pop(0))
            self.closed += 1

    def end(self) -> None:
        """Wait until all connections are closed by who opened them."""
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for thread in self._threads:
            thread.join(10)


@for_each("answers", [(), (b"N",), (b"N", WELCOME)], ids=["at once", "asked in", "let in"])
def test_a_silent_server_leaves_nothing_behind(
    answers: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(postgresql_connection, "CONNECT_SECONDS", 0.1)
    server = SilentServer(answers)
    connection = Connection(Secret(f"postgresql://u:p@127.0.0.1:{server.port}/d"))
    for _ in range(2):
        with pytest.raises(StoreAway, match="no answer in time"):
            connection.execute("SELECT 1")
    assert not connection.is_open
    gc.collect()
    assert [record.getMessage() for record in caplog.records] == []
    server.end()
    assert server.closed == len(server._threads) - 1 >= 2
