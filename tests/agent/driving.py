"""`dragoman chat` at a terminal, typed at and looked at as a person would: over a pseudo-terminal, or in tmux.

The pseudo-terminal needs nothing installed and gives what was written to it; tmux gives the screen as it looks.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import secrets
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from dragoman.agent.sandbox.bubblewrap import find_bubblewrap
from warm_programs import Popen

DRAGOMAN = str(Path(sys.executable).with_name("dragoman"))
#: A question of a command that no sandbox holds begins the same, and goes on in other words.
PROMPT, QUESTION = "›", "[y] "
COLUMNS, LINES = 100, 50
SECONDS = 60.0
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[=>]|\x1b\][^\x07]*\x07")


#: Without a sandbox that holds here, each command is asked about, whatever a rule allows.
IS_SANDBOXED = find_bubblewrap() is not None


class Terminal(Protocol):
    """What the tests need of a terminal."""

    pid: int

    def type(self, text: str) -> None: ...
    def text(self) -> str: ...
    def close(self) -> None: ...


def enter(terminal: Terminal, text: str) -> None:
    """Type a line and Enter."""
    terminal.type(text)
    terminal.type("\r")


def wait_for(terminal: Terminal, wanted: str, *, count: int = 1) -> str:
    """Until that text stands there so often; gives all that stands there."""
    end = time.monotonic() + SECONDS
    while (text := terminal.text()).count(wanted) < count:
        assert time.monotonic() < end, f"never saw {wanted!r} {count} times; the screen:\n{text[-4000:]}"
        time.sleep(0.05)
    return text


def at_prompt(terminal: Terminal, after: str, *, prompt: str = PROMPT) -> str:
    """Until the prompt, or a question, stands behind the last of that text: it reads what is typed then."""
    end = time.monotonic() + SECONDS
    while True:
        text = terminal.text()
        if after in text and text.rfind(prompt) > text.rfind(after):
            time.sleep(0.15)
            if terminal.text() == text:  # all of it is drawn
                return text
        assert time.monotonic() < end, f"no prompt after {after!r}; the screen:\n{text[-4000:]}"
        time.sleep(0.05)


def allow_the_command(terminal: Terminal) -> None:
    """Say yes where a rule is not enough."""
    if not IS_SANDBOXED:
        wait_for(terminal, QUESTION)
        time.sleep(0.3)
        terminal.type("y")


def surroundings(place: Path, *, config: Path, home: Path | None = None) -> dict[str, str]:
    """The environment of a person whose state and configuration are in a folder of the test."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home or Path.home()),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "COLORTERM": "",
        "XDG_STATE_HOME": str(place / "state"),
        "DRAGOMAN_CONFIG": str(config),
    }


# ---------------------------------------------------------------- a pseudo-terminal


class PseudoTerminal:
    """Bytes in, bytes out; it answers where the cursor is, as terminals do."""

    def __init__(self, command: list[str], *, folder: Path, environ: Mapping[str, str]) -> None:
        self._handle, theirs = pty.openpty()
        self._process = Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=dict(environ), start_new_session=True
        )
        os.close(theirs)
        self.pid = self._process.pid
        fcntl.ioctl(self._handle, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self.raw = b""

    def type(self, text: str) -> None:
        os.write(self._handle, text.encode())

    def text(self) -> str:
        """All that was written so far, without the escape sequences that drew it."""
        while select.select([self._handle], [], [], 0.02)[0]:
            try:
                data = os.read(self._handle, 65536)
            except OSError:
                break
            if not data:
                break
            self.raw += data
            if b"\x1b[6n" in data:
                os.write(self._handle, b"\x1b[1;1R")
        return _ESCAPES.sub("", self.raw.decode("utf-8", "replace")).replace("\r", "")

    def close(self) -> None:
        self.text()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._handle)


# ---------------------------------------------------------------- tmux


class Tmux:
    """A server of its own, so that nobody else's sessions are touched."""

    def __init__(self, command: list[str], *, folder: Path, environ: Mapping[str, str], columns: int = COLUMNS) -> None:
        program = shutil.which("tmux")
        assert program is not None, "needs tmux: apt install tmux"
        self._tmux = [program, "-L", f"dragoman-{secrets.token_hex(4)}", "-f", "/dev/null"]
        line = " ".join(["exec", "env", "-i", *(f"{key}={shlex.quote(value)}" for key, value in environ.items())])
        line += " " + shlex.join(command)
        self._run("new-session", "-d", "-s", "it", "-x", str(columns), "-y", str(LINES), "-c", str(folder), line)
        self._run("set-option", "-g", "history-limit", "5000")
        self._run("set-option", "-g", "remain-on-exit", "on")
        self.pid = int(self._run("display-message", "-p", "-t", "it", "#{pane_pid}"))

    def _run(self, *words: str) -> str:
        done = subprocess.run([*self._tmux, *words], capture_output=True, text=True, check=True)
        return done.stdout

    def type(self, text: str) -> None:
        keys = {"\r": "Enter", "\x03": "C-c", "\x04": "C-d", "\t": "Tab"}
        if text in keys:
            self._run("send-keys", "-t", "it", keys[text])
        else:
            self._run("send-keys", "-t", "it", "-l", text)

    def text(self) -> str:
        """The screen and what has scrolled off it."""
        return self._run("capture-pane", "-p", "-t", "it", "-S", "-5000")

    def has_ended(self) -> bool:
        """Whether the command has."""
        return self._run("display-message", "-p", "-t", "it", "#{pane_dead}").strip() == "1"

    def ended(self) -> str:
        """The screen, when the command has ended."""
        end = time.monotonic() + SECONDS
        while not self.has_ended():
            assert time.monotonic() < end, f"it did not end; the screen:\n{self.text()[-4000:]}"
            time.sleep(0.05)
        return self.text()

    def close(self) -> None:
        """End the command, and what it started, whatever they make of a terminal that closes."""
        with contextlib.suppress(subprocess.CalledProcessError, ProcessLookupError):
            if not self.has_ended():
                os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.CalledProcessError):
            self._run("kill-server")


@contextlib.contextmanager
def chatting(
    kind: type[PseudoTerminal] | type[Tmux], place: Path, config: Path, *arguments: str, home: Path | None = None
) -> Iterator[Terminal]:
    """A chat in the folder `work` of a place, until the block ends."""
    work = place / "work"
    work.mkdir(exist_ok=True)
    environ = surroundings(place, config=config, home=home)
    terminal = kind([DRAGOMAN, "chat", *arguments], folder=work, environ=environ)
    try:
        yield terminal
    finally:
        terminal.close()
