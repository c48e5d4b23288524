"""Run a command: clean environment, own process group, limits, and a sandbox if bubblewrap is installed.

The sandbox consists of `fence` (mounts), `guarding` (the read-only parts of the work folder) and `syscalls` (what the
kernel refuses). It has no network unless that was asked for and approved.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, final

import msgspec

from dragoman import _json
from dragoman.agent.sandbox.bubblewrap import PATH, check_work_folder, probe_fence, wrap
from dragoman.agent.sandbox.guarded_paths import protect
from dragoman.agent.sandbox.standing_files import TooMuch

Ending: TypeAlias = Literal["timeout", "processes", "memory", "disk", "stopped", "not-started", "lost"]

#: Most bytes of a command's output that are kept: half of them from its beginning, half from its end.
OUTPUT_LIMIT: Final = 256 * 1024
_FILE_BYTES: Final = 1024**3
_DISK_BYTES: Final = 2 * 1024**3
MEMORY_BYTES: Final = 2 * 1024**3
_PROCESSES: Final = 256
_THREADS: Final = 4_096
_NEW_FILES: Final = 500_000
_OPEN_FILES: Final = 4096
_KEEPER: Final = Path(__file__).with_name("supervise_command.py")

#: Variables that a command gets; no other: keys and tokens have all kinds of names.
_PASSED: Final = ("HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")


@final
class Finished(msgspec.Struct, frozen=True):
    """The end of a command. `status` None: it did not start; `ending`: why it was ended, None if it ended by itself.

    `inert`: files that it left below the work folder for other programs to obey, and that were made inert; a path that
    begins with "!" could not be.
    """

    output: str
    status: int | None
    ending: Ending | None
    left_out: int = 0
    message: str = ""
    inert: tuple[str, ...] = ()


@final
class Sandbox:
    """Runs commands below one work folder.

    Attributes:
        bubblewrap: its path; None: commands run without it.
        fence: what a sandbox can guarantee here; None without bubblewrap.
        is_confined: this may be called a sandbox.
        is_wanted: the user has not disabled it.
        asks_each_time: no rule and no earlier yes covers a command: it is the superuser's, and nothing confines it.
        memory: the most bytes that a command and its children may use.
    """

    __slots__ = (
        "_environ",
        "_home",
        "_persons",
        "_private",
        "asks_each_time",
        "bubblewrap",
        "fence",
        "folder",
        "is_wanted",
        "memory",
    )

    def __init__(
        self,
        folder: Path,
        *,
        environ: Mapping[str, str],
        home: Path,
        bubblewrap: str | None = None,
        is_wanted: bool = False,
        private: Iterable[Path] = (),
        memory: int = MEMORY_BYTES,
    ) -> None:
        """Create it. `is_wanted`: the user has not disabled it. `private`: further files and folders to hide.

        Raises:
            UsageError: the folder is the home folder, or one that no command may have.
        """
        if bubblewrap is not None:
            check_work_folder(folder, home)
        self.folder = folder
        self.fence = probe_fence(bubblewrap) if bubblewrap is not None else None
        self.bubblewrap = bubblewrap if self.fence is not None else None
        self.is_wanted = is_wanted or bubblewrap is not None
        self.asks_each_time = self.is_wanted and os.geteuid() == 0 and not self.is_confined
        self.memory = memory
        self._home = Path(os.path.realpath(home))
        self._private = tuple(private)
        self._environ = clean_environment(environ, folder)
        self._persons = {
            name: environ[name] for name in environ if name.startswith("GIT_") or name == "XDG_CONFIG_HOME"
        }
        if self.bubblewrap is not None:
            self._environ |= {"TMPDIR": "/tmp", "XDG_CACHE_HOME": "/tmp/cache"}

    @property
    def is_confined(self) -> bool:
        """Whether this may be called a sandbox."""
        return self.fence is not None and self.fence.has_user_namespace

    def found(self, program: str) -> str | None:
        """Return the path of a program as a command would find it, or None."""
        if "/" in program:
            return program
        return shutil.which(program, path=self._environ["PATH"])

    async def run(
        self, argv: Sequence[str], *, seconds: float, parts: Sequence[str] = (), network: bool = False
    ) -> Finished:
        """Run a command in the folder `parts` below the work folder. Cancelling ends it and all its children."""
        inside = self.folder.joinpath(*parts)
        order: dict[str, Any] = {
            "environ": self._environ,
            "folder": _bytes_of(str(inside)),
            "seconds": seconds,
            "processes": _PROCESSES,
            "threads": _THREADS,
            "new_files": _NEW_FILES,
            "file_bytes": _FILE_BYTES,
            "disk_bytes": _DISK_BYTES,
            "memory_bytes": self.memory,
            "files": _OPEN_FILES,
            "standing": None,
            "handles": [],
        }
        if self.fence is None:
            return await _keep({**order, "argv": list(map(_bytes_of, argv))})
        folder = os.path.realpath(self.folder)
        try:
            mounts, known = await asyncio.to_thread(protect, folder, home=str(self._home), environ=self._persons)
        except TooMuch as problem:
            return Finished("", None, "not-started", message=f"the work folder cannot be watched: {problem}")
        with _readable(self.fence.filter) as handle:
            words = wrap(self.fence, argv, folder=Path(folder), home=self._home, mounts=mounts, inside=inside,
                         network=network, filter_handle=handle, private=self._private)  # fmt: skip
            order |= {
                "argv": list(map(_bytes_of, words)),
                "handles": [] if handle is None else [handle],
                "standing": {
                    "folder": _bytes_of(folder),
                    "places": sorted(known.places),
                    "put": sorted(known.put),
                    "links": [[_bytes_of(place), _bytes_of(target)] for place, target in sorted(known.links)],
                    "named": [[_bytes_of(place), is_folder] for place, is_folder in sorted(known.named)],
                    "orders": [[_bytes_of(place), digest] for place, digest in sorted(known.orders)],
                },
            }
            return await _keep(order)


def _bytes_of(word: str) -> str:
    """Return a word or a path as Latin-1 of its bytes, because JSON can hold no other bytes than text."""
    return os.fsencode(word).decode("latin-1")


@contextlib.contextmanager
def _readable(content: bytes | None) -> Iterator[int | None]:
    """Yield a descriptor that gives the content, which fits into a pipe; None for none."""
    if content is None:
        yield None
        return
    reader, writer = os.pipe()
    try:
        os.write(writer, content)
        os.close(writer)
        yield reader
    finally:
        os.close(reader)


def clean_environment(environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return the environment of a command. Programs are never looked for in the work folder."""
    kept = {name: environ[name] for name in _PASSED if name in environ}
    places = [place for place in environ.get("PATH", PATH).split(":") if Path(place).is_absolute()]
    real = [place for place in places if not Path(os.path.realpath(place)).is_relative_to(folder)]
    kept |= {"PATH": ":".join(real) or PATH, "TERM": "dumb", "NO_COLOR": "1", "PAGER": "cat", "GIT_PAGER": "cat"}
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
        """Add data."""
        half = OUTPUT_LIMIT // 2
        taken = min(half - len(self._head), len(data))
        self._head += data[:taken]
        self._tail += data[taken:]
        if len(self._tail) > 2 * half:
            self.left_out += len(self._tail) - half
            del self._tail[:-half]

    def text(self) -> str:
        """Return what was kept, with a line in place of what was dropped."""
        half = OUTPUT_LIMIT // 2
        if len(self._tail) > half:
            self.left_out += len(self._tail) - half
            del self._tail[:-half]
        middle = f"\n[… {self.left_out:,} bytes left out …]\n" if self.left_out else ""
        return self._head.decode("utf-8", "replace") + middle + self._tail.decode("utf-8", "replace")


class _Report(msgspec.Struct, frozen=True):
    """The supervisor's final report."""

    status: int | None
    reason: Ending | None
    message: str
    inert: tuple[str, ...] = ()


_parse_report: Final = _json.typed_decoder(_Report)


async def _keep(order: dict[str, Any]) -> Finished:
    """Run an order under a supervisor. If we are cancelled or die, it ends everything."""
    import subprocess

    reader, writer = os.pipe()
    output_reader, output_writer = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_KEEPER)],
            stdin=subprocess.PIPE,
            stdout=output_writer,
            stderr=output_writer,
            env={},
            cwd="/",
            pass_fds=[writer, *order["handles"]],
            start_new_session=True,
        )
    finally:
        os.close(writer)
        os.close(output_writer)
    output = _Output()
    assert process.stdin is not None
    try:
        with contextlib.suppress(BrokenPipeError):  # it has died: its report says so, by being none
            process.stdin.write(_json.encode({**order, "report": writer}) + b"\n")
            process.stdin.flush()
        with contextlib.closing(_Pipe(output_reader)) as outputs, contextlib.closing(_Pipe(reader)) as reports:
            report, _ = await asyncio.gather(reports.whole(), outputs.pump(output))
    finally:
        process.stdin.close()  # the keeper's sign to end, if it has not
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
    said = _parse_report(report)
    if not isinstance(said, _Report):
        return Finished(output.text(), None, "lost", output.left_out, "the process that kept the command has died")
    return Finished(output.text(), said.status, said.reason, output.left_out, said.message, said.inert)


class _Pipe:
    """The reading end of a pipe, in the event loop."""

    __slots__ = ("_handle", "_loop")

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._loop = asyncio.get_running_loop()
        os.set_blocking(handle, False)

    def close(self) -> None:
        """Close it."""
        os.close(self._handle)

    async def whole(self) -> bytes:
        """Read to the end."""
        pieces = []
        while data := await self._read():
            pieces.append(data)
        return b"".join(pieces)

    async def pump(self, output: _Output) -> None:
        """Add everything that comes to the output."""
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
