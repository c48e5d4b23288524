"""Which addresses a process connects to, as the kernel sees it (`strace`, from Debian)."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

_SOCKETS = r"(?:connect|sendto|sendmsg)\(.*?sin6?_port=htons\((\d+)\).*?"
_CONNECT = re.compile(_SOCKETS + r"(?:inet_addr\(\"([^\"]+)\"\)|inet_pton\(AF_INET6, \"([^\"]+)\")")


def is_possible() -> bool:
    """Whether strace is here."""
    return shutil.which("strace") is not None


class Watched:
    """Watches a running process and its children; use it with `with`."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._folder = tempfile.TemporaryDirectory(prefix="dragoman-")
        self._file = Path(self._folder.name) / "calls"

    def __enter__(self) -> Watched:
        command = ["strace", "-f", "-p", str(self._pid), "-e", "trace=connect,sendto,sendmsg", "-o", str(self._file)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        said = self._process.stderr.readline()
        if "attached" not in said:
            self._process.kill()
            raise RuntimeError(f"strace cannot watch the process: {said.strip()}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(10)
        if self._process.stderr is not None:
            self._process.stderr.close()
        self._folder.cleanup()

    def connections(self) -> set[tuple[str, int]]:
        """(address, port) of everything that was tried so far, name servers included."""
        time.sleep(0.2)
        text = self._file.read_text(encoding="utf-8", errors="replace") if self._file.exists() else ""
        return {(four or six, int(port)) for port, four, six in _CONNECT.findall(text)}
