"""A real HAProxy (Debian's package `haproxy`) with the configuration of the documents, in front of gateways here."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from reliability.engines import ends_with_parent
from reliability.ports import free_port

EXAMPLE = Path(__file__).resolve().parent.parent / "docs" / "examples" / "haproxy.cfg"
_PROGRAM = shutil.which("haproxy") or next((path for path in ("/usr/sbin/haproxy",) if Path(path).exists()), None)
#: Why there is none; "" where there is one.
MISSING = "" if _PROGRAM else "HAProxy: it is not installed (the package haproxy)"
_READY_SECONDS = 30.0


def adapted(text: str, port: int, servers: Sequence[int], *, balance: str = "") -> str:
    """The configuration of the documents on this machine: without TLS and log, with these ports. `balance`: another
    way than the documents' to pick a gateway."""
    text = re.sub(r"bind \S+ ssl .*", f"bind 127.0.0.1:{port}", text)
    text = (
        text.replace("maxconn 20000", "maxconn 1000")
        .replace("    log global\n", "")
        .replace("llm.example.org", "127.0.0.1")
    )
    addresses = iter(servers)
    text = re.sub(r"(server gateway-\d) \S+", lambda found: f"{found[1]} 127.0.0.1:{next(addresses)}", text)
    if balance:
        text = re.sub(r"balance .*", balance, text)
        text = re.sub(r" *hash-.*\n", "", text)
    via = "    http-response set-header x-via %s\n"
    return text.replace("default_backend gateways\n", f"default_backend gateways\n{via}")


def complaints(text: str) -> str:
    """What `haproxy -c` says of a configuration; "" where it takes it."""
    assert _PROGRAM is not None
    with tempfile.NamedTemporaryFile("w", suffix=".cfg") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([_PROGRAM, "-c", "-f", file.name], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


class HAProxy:
    """One process. Start it from a thread that stays."""

    def __init__(self, servers: Sequence[int], *, balance: str = "") -> None:
        self.port = free_port()
        self._folder = tempfile.TemporaryDirectory(prefix="dragoman-haproxy-")
        self._file = Path(self._folder.name) / "haproxy.cfg"
        text = adapted(EXAMPLE.read_text(encoding="utf-8"), self.port, servers, balance=balance)
        stats = Path(self._folder.name) / "stats"
        self._file.write_text(text.replace("global\n", f"global\n    stats socket {stats}\n", 1), encoding="utf-8")
        self._log = (Path(self._folder.name) / "log").open("w+b")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        """What it has said."""
        return Path(self._log.name).read_text(encoding="utf-8", errors="replace")

    def __enter__(self) -> Self:
        assert _PROGRAM is not None
        self._process = subprocess.Popen(
            [_PROGRAM, "-db", "-f", str(self._file)], stdout=subprocess.DEVNULL, stderr=self._log,
            preexec_fn=ends_with_parent,
        )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._log.close()
        self._folder.cleanup()

    def await_ready(self, count: int) -> None:
        """Until so many gateways answer."""
        until = time.monotonic() + _READY_SECONDS
        path = str(self._file.with_name("stats"))
        while time.monotonic() < until:
            if self._process is not None and self._process.poll() is not None:
                raise RuntimeError(f"HAProxy ended: {self.log}")
            try:
                with socket.socket(socket.AF_UNIX) as line:
                    line.connect(path)
                    line.sendall(b"show stat\n")
                    text = b"".join(iter(lambda: line.recv(65_536), b"")).decode()
            except OSError:
                text = ""
            up = [row for row in text.splitlines() if re.match(r"gateways,gateway-\d,", row) and ",UP," in row]
            if len(up) >= count:
                return
            time.sleep(0.05)
        raise RuntimeError("HAProxy does not reach the gateways")
