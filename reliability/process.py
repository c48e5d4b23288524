"""A real `dragoman serve` process: its configuration, its memory, its log."""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import ClassVar

#: The provider's base URL in each protocol, after its address.
BASE = {
    "ollama-chat": "",
    "openai-chat": "/v1",
    "openai-responses": "/v1",
    "anthropic-messages": "",
    "gemini-generate": "/v1beta",
}
_READY_SECONDS = 120


def providers(url: str, more: str = "", *, suffix: str = "", lines: str = "") -> str:
    """Configuration: a provider for each protocol, named after it (and `suffix`), all at one address.

    `lines` stand in each provider's table, `more` before the tables.
    """
    tables = [
        f'[providers."{name}{suffix}"]\nprotocol = "{name}"\nbase_url = "{url}{base}"\n{lines}'
        for name, base in BASE.items()
    ]
    return "\n".join([more, *tables, ""])


class Gateway:
    """The process, with a home folder of its own; use it with `with`. Tests may begin it otherwise."""

    begin: ClassVar[type[subprocess.Popen[str]]] = subprocess.Popen

    def __init__(
        self,
        config: str,
        *options: str,
        environ: dict[str, str] | None = None,
        command: tuple[str, ...] = (sys.executable, "-m", "dragoman"),
        prefix: tuple[str, ...] = (),
    ) -> None:
        """`options` and `environ` are the process's own; `prefix` stands before the command."""
        self._folder = tempfile.TemporaryDirectory(prefix="dragoman-")
        self.home = Path(self._folder.name)
        self.file = self.home / "dragoman.toml"
        self.file.write_text(config, encoding="utf-8")
        self.log = self.home / "log"
        self._command = [*prefix, *command, "serve", "--config", str(self.file), *options]
        if "--port" not in options:
            self._command += ["--port", "0"]
        kept = ("PATH", "PYTHONPATH", "LANG", "SYSTEMROOT", "TMPDIR")
        self._environ = {name: os.environ[name] for name in kept if name in os.environ}
        self._environ |= {"HOME": str(self.home), "XDG_STATE_HOME": str(self.home / "state")} | (environ or {})
        self._process: subprocess.Popen[str] | None = None
        self.said: list[str] = []
        self.port = 0

    def __enter__(self) -> Gateway:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._folder.cleanup()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def process(self) -> subprocess.Popen[str]:
        assert self._process is not None, "the gateway was not started"
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    def start(self) -> None:
        """Start it and wait until it listens.

        Raises:
            RuntimeError: it ended, or said nothing for two minutes.
        """
        with self.log.open("ab") as log:
            self._process = self.begin(
                self._command, stdout=subprocess.PIPE, stderr=log, text=True, env=self._environ, cwd=self.home
            )
        ready: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, args=(ready,), daemon=True).start()
        try:
            address = ready.get(timeout=_READY_SECONDS)
        except queue.Empty:
            address = ""
        if not address:
            self.stop()
            raise RuntimeError(f"dragoman serve did not begin to listen: {self.log_text()[-2000:]}")
        self.port = int(address.rpartition(":")[2])

    def _listen(self, ready: queue.Queue[str]) -> None:
        stdout = self.process.stdout
        assert stdout is not None
        for line in stdout:
            self.said.append(line)
            found = re.search(r"listening on (http://\S+:\d+)", line)
            if found is not None:
                ready.put(found[1])
        ready.put("")

    def log_text(self) -> str:
        """What it wrote to stderr and stdout so far."""
        return self.log.read_text(encoding="utf-8", errors="replace") + "".join(self.said)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def stop(self, seconds: float = 10.0) -> int | None:
        """End it: first asked, then made to. Gives the exit status."""
        process = self._process
        if process is None:
            return None
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if process.stdout is not None and not process.stdout.closed:
            process.stdout.close()
        return process.returncode

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    # ------------------------------------------------------------ looking inside

    def memory(self, field: str = "Pss") -> int:
        """Bytes of memory that are the process tree's own share (PSS; of `Pss_Anon` no file's)."""
        found = 0
        for pid in self.family():
            try:
                text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
            except OSError:
                continue
            found += int(re.search(rf"^{field}: +(\d+) kB", text, re.MULTILINE)[1]) * 1024  # type: ignore[index]
        return found

    def files(self) -> int:
        """Open file descriptors of the process tree."""
        return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in self.family())

    def family(self) -> list[int]:
        """The process and its children."""
        found = [self.pid]
        for pid in found:
            try:
                children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
            except OSError:
                continue
            found += [int(child) for child in children]
        return found
