"""Runs a program where only loopback is reachable, with an empty environment, and ends all that it started."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import signal
import socket
import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_SIOCSIFFLAGS, _IFF_UP_RUNNING = 0x8914, 0x41

#: What keeps clients from reporting, updating and colouring, and other people's settings out.
QUIET = {
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "CI": "1",
    "DO_NOT_TRACK": "1",
    "NO_UPDATE_NOTIFIER": "1",
    "OTEL_SDK_DISABLED": "true",
    "PYTHONUTF8": "1",
}


class Outcome(NamedTuple):
    """How a program ended. `status`: None when it was stopped at its time limit."""

    status: int | None
    output: str
    errors: str


def leave_network() -> str:
    """Put this process and all that it starts where no other machine is reachable; gives why not, or ""."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) != 0 and libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        return os.strerror(ctypes.get_errno())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        fcntl.ioctl(found, _SIOCSIFFLAGS, struct.pack("16sH14s", b"lo", _IFF_UP_RUNNING, b""))
    return ""


def run(
    command: Sequence[str], *, environ: Mapping[str, str], folder: Path, seconds: float, words: str = ""
) -> Outcome:
    """Run to its end, or to the limit; `words` is its standard input."""
    program = subprocess.Popen(
        command, cwd=folder, env={**QUIET, **environ}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, encoding="utf-8", errors="replace", start_new_session=True,
    )  # fmt: skip
    try:
        output, errors = program.communicate(words, timeout=seconds)
        status: int | None = program.returncode
    except subprocess.TimeoutExpired:
        _end(program)
        output, errors = program.communicate()
        status = None
    finally:
        _end(program)
    return Outcome(status, output, errors)


def _end(program: subprocess.Popen[str]) -> None:
    """Ask the program's whole group to end, by force: some ignore the polite signal."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(program.pid, signal.SIGKILL)
