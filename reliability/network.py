"""Machines of a drill as network namespaces (Linux, root, iproute2), and links between them and an engine on which
packets vanish: nobody is told, no connection is reset, nothing is refused.

Each link is a pair of Ethernet devices. A direction is cut by a wrong hardware address of whoever is at its other end:
the frames leave and nobody takes them, as with a switch that forwards no more. Where there are no namespaces,
`MISSING` says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import itertools
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

_CLONE_NEWNET: Final = 0x4000_0000
#: Nobody's, and administered by hand.
_NOWHERE: Final = "02:00:00:00:00:66"
_LIBRARY: Final = ctypes.CDLL(None, use_errno=True)
_NUMBERS: Final = itertools.count()


def _missing() -> str:
    if not Path("/proc/self/ns/net").exists() or os.geteuid() != 0 or shutil.which("ip") is None:
        return "machines with a network of their own: needs Linux, root and iproute2"
    name = f"dragoman-try-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"machines with a network of their own: {made.stderr.strip()}"
    _run("ip", "netns", "del", name)
    return ""


class Here:
    """This machine itself, in the place of one with a network of its own."""

    #: What stands before a command that runs there.
    prefix: tuple[str, ...] = ()

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Sockets that this thread makes meanwhile are of that machine."""
        yield


class Machine(Here):
    """A network of its own, with a loopback of its own; use it with `with`."""

    def __init__(self) -> None:
        self.name = f"dragoman-{os.getpid()}-{next(_NUMBERS)}"
        self.prefix = ("ip", "netns", "exec", self.name)
        self._files: list[int] = []

    def __enter__(self) -> Self:
        _run("ip", "netns", "add", self.name)
        _run("ip", "-n", self.name, "link", "set", "lo", "up")
        self._files = [os.open(path, os.O_RDONLY) for path in ("/proc/thread-self/ns/net", f"/run/netns/{self.name}")]
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            os.close(file)
        with contextlib.suppress(subprocess.CalledProcessError):
            _run("ip", "netns", "del", self.name)  # its links go with it

    @contextmanager
    def inside(self) -> Iterator[None]:
        home, there = self._files
        _enter(there)
        try:
            yield
        finally:
            _enter(home)


class Link:
    """Between a machine and this one, where an engine listens at `host`.

    Attributes:
        host: the address of this end.
        other: that of the machine.
    """

    def __init__(self, machine: Machine) -> None:
        number = next(_NUMBERS)
        block = (os.getpid() * 64 + number) % 16_384 * 4
        self.host, self.other = (f"10.213.{block >> 8}.{(block & 255) + place}" for place in (1, 2))
        self._near, self._far = (f"dg{os.getpid()}-{number}{end}" for end in "ab")
        self._machine = machine.name
        _run("ip", "link", "add", self._near, "type", "veth", "peer", "name", self._far, "netns", machine.name)
        _run("ip", "address", "add", f"{self.host}/30", "dev", self._near)
        _run("ip", "link", "set", self._near, "up")
        _run("ip", "-n", machine.name, "address", "add", f"{self.other}/30", "dev", self._far)
        _run("ip", "-n", machine.name, "link", "set", self._far, "up")

    def cut(self, *, queries: bool = True, answers: bool = True) -> None:
        """What the machine sends vanishes, or what it is sent, or both."""
        if queries:
            _run("ip", "-n", self._machine, "neighbour", "replace", self.host, "lladdr", _NOWHERE, "dev", self._far,
                 "nud", "permanent")  # fmt: skip
        if answers:
            _run("ip", "neighbour", "replace", self.other, "lladdr", _NOWHERE, "dev", self._near, "nud", "permanent")

    def heal(self) -> None:
        """All of it arrives again."""
        for words in (
            ("ip", "-n", self._machine, "neighbour", "del", self.host, "dev", self._far),
            ("ip", "neighbour", "del", self.other, "dev", self._near),
        ):
            subprocess.run(words, capture_output=True, check=False)  # one that was not cut has none


class Swallowing:
    """A relay to a port of this machine. While it is cut, it takes connections and bytes, and passes none of those on
    that are cut; a connection that has lost some is closed once it is whole again, for TCP lets no gap through."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._is_cut = {"queries": False, "answers": False}
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._opened: list[socket.socket] = []
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._listener, *self._opened):
            _end(each)
            each.close()

    def cut(self, *, queries: bool = True, answers: bool = True) -> None:
        """What is asked is taken and vanishes, or what is answered, or both."""
        self._is_cut = {"queries": queries, "answers": answers}

    def heal(self) -> None:
        """New connections work."""
        self._is_cut = {"queries": False, "answers": False}

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                try:
                    far = socket.create_connection(("127.0.0.1", self._to))
                except OSError:
                    near.close()
                    continue
                self._opened += (near, far)
                for source, target, way in ((near, far, "queries"), (far, near, "answers")):
                    source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    threading.Thread(target=self._pass, args=(source, target, way), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, way: str) -> None:
        has_lost = False
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                has_lost = has_lost or self._is_cut[way]
                if not has_lost:
                    target.sendall(data)
                elif not self._is_cut[way]:
                    break
            while self._is_cut[way]:  # the end of a connection vanishes too
                time.sleep(0.1)
        _end(source)
        _end(target)


def listen(machine: Here, port: int) -> socket.socket:
    """A socket that listens on the machine's loopback; 0 takes a free port."""
    with machine.inside():
        return socket.create_server(("127.0.0.1", port))


async def serve(machines: Sequence[Here], protocol: type[asyncio.Protocol]) -> tuple[int, list[asyncio.Server]]:
    """A server on the loopback of this machine and of each of these, at one port, which is given too."""
    first = listen(Here(), 0)
    port = first.getsockname()[1]
    own = [listen(machine, port) for machine in machines if machine.prefix]
    loop = asyncio.get_running_loop()
    return port, [await loop.create_server(protocol, sock=each) for each in (first, *own)]


def dial(machine: Here) -> socket.socket:
    """A socket of that machine that does not block, to be connected."""
    with machine.inside():
        made = socket.socket()
    made.setblocking(False)
    return made


def _end(line: socket.socket) -> None:
    with contextlib.suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)


def _enter(namespace: int) -> None:
    if _LIBRARY.setns(namespace, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


def _run(*words: str) -> None:
    subprocess.run(words, capture_output=True, text=True, check=True)


#: Why there are no machines with a network of their own; "" where there are.
MISSING: Final = _missing()
