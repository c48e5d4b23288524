"""A line to a server of this machine on which the first answer of each connection takes its time."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress


@contextmanager
def slow_line(port: int, seconds: float) -> Iterator[int]:
    """A port of its own, behind which is the server's. `seconds`: until the first answer of a connection."""
    opened: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def begin(work: Callable[..., None], *given: object) -> None:
        threads.append(threading.Thread(target=work, args=given))
        threads[-1].start()

    def accept(server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = server.accept()
                opened.append(client)
                far = socket.create_connection(("127.0.0.1", port))
                opened.append(far)
                for source, target, pause in ((client, far, 0.0), (far, client, seconds)):
                    source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    begin(_pass_on, source, target, pause)

    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        begin(accept, server)
        try:
            yield server.getsockname()[1]
        finally:
            _end(server)
            threads[0].join()
            for each in opened:
                stack.enter_context(each)
                _end(each)
            for thread in threads[1:]:
                thread.join()


def _pass_on(source: socket.socket, target: socket.socket, pause: float) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            time.sleep(pause)
            pause = 0.0
            target.sendall(data)
    _end(source)
    _end(target)


def _end(line: socket.socket) -> None:
    with suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)
