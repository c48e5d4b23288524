"""The listening sockets of a gateway, also beside a gateway that ends."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable
from typing import Final

from dragoman.gateway.server.connection import Connection

#: Connections that may wait to be accepted.
BACKLOG: Final = 4096
#: How long a gateway on our port is asked whether it ends.
_ASKING_SECONDS: Final = 1.0


async def open_listener(
    connection: Callable[[], Connection], host: str, port: int, *, shares: bool = False
) -> asyncio.Server:
    """Listen, also beside a draining gateway: that one gets no new connection, and none is refused meanwhile.

    Raises:
        OSError: the port is taken, or the address is not this machine's.
    """
    loop = asyncio.get_running_loop()
    try:
        return await loop.create_server(connection, host, port, backlog=BACKLOG, reuse_port=shares or None)
    except OSError as problem:
        if problem.errno != errno.EADDRINUSE or not hasattr(socket, "SO_REUSEPORT") or not await drains(host, port):
            raise
    server = await loop.create_server(connection, host, port, backlog=BACKLOG, reuse_port=True)
    share_port(server, False)  # from here on all new connections come to the newest
    return server


def share_port(server: asyncio.Server, allowed: bool) -> None:
    """Set whether others may listen at the same address."""
    for plain in server.sockets:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, int(allowed))


async def drains(host: str, port: int) -> bool:
    """Return whether a gateway listens there that is about to end."""
    try:
        async with asyncio.timeout(_ASKING_SECONDS):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
                line = await reader.readline()
            finally:
                writer.close()
                writer.transport.abort()  # nothing of it is waited for
    except (OSError, TimeoutError):
        return False
    return line.startswith(b"HTTP/1.1 503 ")
