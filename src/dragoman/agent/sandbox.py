"""Running a command: clean environment, own process group, limits, and a sandbox where bubblewrap is installed.

In the sandbox the machine is read-only but for the work folder and an own /tmp, known places of keys are empty, and
there is no network unless it was asked for and approved.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, final

import msgspec

from dragoman import _json

Ending: TypeAlias = Literal["timeout", "processes", "disk", "stopped", "not-started", "lost"]

#: Most bytes of a command's output that are kept: half of them from its beginning, half from its end.
OUTPUT_LIMIT: Final = 256 * 1024
_FILE_BYTES: Final = 1024**3
_DISK_BYTES: Final = 2 * 1024**3
_PROCESSES: Final = 256
_OPEN_FILES: Final = 4096
_KEEPER: Final = Path(__file__).with_name("keeper.py")
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

#: Variables that a command gets; no other: keys and tokens have all kinds of names.
_PASSED: Final = ("HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
#: Below the home folder: what a sandboxed command finds empty.
_KEY_FOLDERS: Final = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".config/gh", ".config/dragoman",
    ".config/op", ".password-store", ".local/share/keyrings", ".local/state/dragoman", ".mozilla",
    ".config/google-chrome",
)  # fmt: skip
_KEY_FILES: Final = (
    ".netrc",
    ".pypirc",
    ".npmrc",
    ".git-credentials",
    ".config/git/credentials",
    ".cargo/credentials.toml",
)


@final
class Finished(msgspec.Struct, frozen=True):
    """How a command ended. `status` None: it did not start; `ending`: why it was ended, None when it ended itself."""

    output: str
    status: int | None
    ending: Ending | None
    left_out: int = 0
    message: str = ""


@final
class Sandbox:
    """How commands are run below one work folder. `bubblewrap` None: without a sandbox."""

    __slots__ = ("_environ", "_home", "bubblewrap", "folder")

    def __init__(self, folder: Path, *, environ: Mapping[str, str], home: Path, bubblewrap: str | None = None) -> None:
        self.folder = folder
        self.bubblewrap = bubblewrap
        self._home = home
        self._environ = clean_environment(environ, folder)
        if bubblewrap is not None:
            self._environ |= {"TMPDIR": "/tmp", "XDG_CACHE_HOME": "/tmp/cache"}

    def found(self, program: str) -> str | None:
        """The program's path, as a command would find it; None when there is none."""
        if "/" in program:
            return program
        return shutil.which(program, path=self._environ["PATH"])

    async def run(
        self, argv: Sequence[str], *, seconds: float, parts: Sequence[str] = (), network: bool = False
    ) -> Finished:
        """Run a command in the folder `parts` below the work folder; cancelling it ends all it has started."""
        folder = self.folder.joinpath(*parts)
        order = {
            "argv": self._wrapped(argv, folder, network=network),
            "environ": self._environ,
            "folder": str(folder),
            "seconds": seconds,
            "processes": _PROCESSES,
            "file_bytes": _FILE_BYTES,
            "disk_bytes": _DISK_BYTES,
            "files": _OPEN_FILES,
        }
        return await _keep(order)

    def _wrapped(self, argv: Sequence[str], folder: Path, *, network: bool) -> list[str]:
        if self.bubblewrap is None:
            return list(argv)
        words = [self.bubblewrap, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
        words += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--new-session"]
        for name in _KEY_FOLDERS:
            words += ["--tmpfs", str(self._home / name)] if (self._home / name).is_dir() else []
        for name in _KEY_FILES:
            words += ["--ro-bind", "/dev/null", str(self._home / name)] if (self._home / name).is_file() else []
        words += ["--bind", str(self.folder), str(self.folder)]
        # What hooks and settings name runs later, outside of the sandbox; as a mount, `.git` cannot be moved away.
        for name, way in ((".git", "--bind"), (".git/hooks", "--ro-bind"), (".git/config", "--ro-bind")):
            place = self.folder / name
            words += [way, str(place), str(place)] if place.exists() and not place.is_symlink() else []
        words += [] if network else ["--unshare-net"]
        return [*words, "--chdir", str(folder), "--", *argv]


def find_bubblewrap() -> str | None:
    """Where bubblewrap is, if it works here: some systems forbid what it needs."""
    import subprocess

    path = shutil.which("bwrap", path=_PATH)
    if path is None:
        return None
    probe = [path, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-net", "--unshare-pid", "true"]
    try:
        done = subprocess.run(probe, capture_output=True, timeout=5, check=False, env={"PATH": _PATH})
    except (OSError, subprocess.TimeoutExpired):
        return None
    return path if done.returncode == 0 else None


def clean_environment(environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    """What a command gets of the environment. Programs are never looked for in the work folder."""
    kept = {name: environ[name] for name in _PASSED if name in environ}
    places = [place for place in environ.get("PATH", _PATH).split(":") if Path(place).is_absolute()]
    real = [place for place in places if not Path(os.path.realpath(place)).is_relative_to(folder)]
    kept |= {"PATH": ":".join(real) or _PATH, "TERM": "dumb", "NO_COLOR": "1", "PAGER": "cat", "GIT_PAGER": "cat"}
    return kept | {"GIT_TERMINAL_PROMPT": "0", "CI": "1"}


# ---------------------------------------------------------------- the keeper


class _Output:
    """A command's output: its beginning and its end."""

    __slots__ = ("_head", "_tail", "left_out")

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self.left_out = 0

    def add(self, data: bytes) -> None:
        """More of it came."""
        half = OUTPUT_LIMIT // 2
        taken = min(half - len(self._head), len(data))
        self._head += data[:taken]
        self._tail += data[taken:]
        if len(self._tail) > 2 * half:
            self.left_out += len(self._tail) - half
            del self._tail[:-half]

    def text(self) -> str:
        """What was kept, with a line in place of what was not."""
        half = OUTPUT_LIMIT // 2
        if len(self._tail) > half:
            self.left_out += len(self._tail) - half
            del self._tail[:-half]
        middle = f"\n[… {self.left_out:,} bytes left out …]\n" if self.left_out else ""
        return self._head.decode("utf-8", "replace") + middle + self._tail.decode("utf-8", "replace")


class _Report(msgspec.Struct, frozen=True):
    """The keeper's last word."""

    status: int | None
    reason: Ending | None
    message: str


_parse_report: Final = _json.typed_decoder(_Report)


async def _keep(order: dict[str, Any]) -> Finished:
    """Let a keeper run the order; when we are cancelled, or die, it ends everything."""
    import subprocess

    reader, writer = os.pipe()
    output_reader, output_writer = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_KEEPER), _json.to_text({**order, "report": writer})],
            stdin=subprocess.PIPE,
            stdout=output_writer,
            stderr=output_writer,
            env={},
            cwd="/",
            pass_fds=[writer],
            start_new_session=True,
        )
    finally:
        os.close(writer)
        os.close(output_writer)
    output = _Output()
    try:
        with contextlib.closing(_Pipe(output_reader)) as outputs, contextlib.closing(_Pipe(reader)) as reports:
            report, _ = await asyncio.gather(reports.whole(), outputs.pump(output))
    finally:
        assert process.stdin is not None
        process.stdin.close()  # the keeper's sign to end, if it has not
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
    said = _parse_report(report)
    if not isinstance(said, _Report):
        return Finished(output.text(), None, "lost", output.left_out, "the process that kept the command has died")
    return Finished(output.text(), said.status, said.reason, output.left_out, said.message)


class _Pipe:
    """The reading end of a pipe, in the event loop."""

    __slots__ = ("_handle", "_loop")

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._loop = asyncio.get_running_loop()
        os.set_blocking(handle, False)

    def close(self) -> None:
        """Let go of it."""
        os.close(self._handle)

    async def whole(self) -> bytes:
        """All that comes."""
        pieces = []
        while data := await self._read():
            pieces.append(data)
        return b"".join(pieces)

    async def pump(self, output: _Output) -> None:
        """Add all that comes to the output."""
        while data := await self._read():
            output.add(data)

    async def _read(self) -> bytes:
        while True:
            try:
                return os.read(self._handle, 65536)
            except BlockingIOError:
                pass
            ready = asyncio.Event()
            self._loop.add_reader(self._handle, ready.set)
            try:
                await ready.wait()
            finally:
                self._loop.remove_reader(self._handle)
