"""The work folder: files are opened below its handle, step by step, and no symbolic link is ever followed.

Every component is opened relative to the previous handle with O_NOFOLLOW. So nothing can be swapped between a check and
its use: there is no check. Writing goes to a new file beside the old one, which then takes its name. A hard link to the
old file elsewhere keeps its content.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import heapq
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, final

import msgspec

from dragoman.agent.safe_text import hidden_character
from dragoman.agent.tool_plan import ToolFailed
from dragoman.errors import UsageError

_DIRECTORY: Final = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_FILE: Final = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
#: Most bytes of a file that a tool reads or writes.
FILE_LIMIT: Final = 1024 * 1024
_PATH_LIMIT: Final = 4096
_DEPTH_LIMIT: Final = 64


@final
class Entry(msgspec.Struct, frozen=True):
    """An entry of a folder. `size` is in bytes."""

    name: str
    kind: str  # "file", "folder", "link" or "other"
    size: int


@final
class WorkFolder:
    """A work folder, held open by its handle. `path` is where it was when it was opened."""

    __slots__ = ("_root", "path")

    def __init__(self, path: Path) -> None:
        if os.open not in os.supports_dir_fd or not hasattr(os, "O_NOFOLLOW"):  # pragma: no cover - Windows
            raise UsageError("the agent's file tools need a system that opens files below a folder's handle (not here)")
        self.path = Path(os.path.realpath(path))
        try:
            self._root = os.open(self.path, _DIRECTORY)
        except OSError as problem:
            raise UsageError(f"expected a work folder at {path}: {problem.strerror}") from None

    def close(self) -> None:
        """Close its handle."""
        os.close(self._root)

    # ------------------------------------------------------------ names

    def parts(self, path: str) -> tuple[str, ...]:
        """Return a path's components below the folder; () is the folder itself.

        Raises:
            ToolFailed: it leads out of the folder, or is no valid path.
        """
        hidden = hidden_character(path)
        if hidden is not None or "\n" in path or "\t" in path:
            raise ToolFailed(f"expected a path of visible characters, got one with {hidden or 'a line end or tab'}")
        if len(os.fsencode(path)) > _PATH_LIMIT:
            raise ToolFailed("expected a shorter path")
        if path.startswith("~"):
            raise ToolFailed("expected a path in the work folder, got one in a home folder")
        if path.startswith("/"):
            root = f"{self.path}".rstrip("/")
            if path != root and not path.startswith(root + "/"):
                raise ToolFailed(f"expected a path in the work folder {root}, got one outside of it")
            path = path[len(root) :]
        found: list[str] = []
        for part in path.split("/"):
            if part == "..":
                if not found:
                    raise ToolFailed("expected a path in the work folder, got one that leaves it with ..")
                found.pop()
            elif part not in ("", "."):
                found.append(part)
        if len(found) > _DEPTH_LIMIT:
            raise ToolFailed(f"expected at most {_DEPTH_LIMIT} folders deep")
        return tuple(found)

    @contextlib.contextmanager
    def opened(self, parts: tuple[str, ...], *, make: bool = False) -> Iterator[int]:
        """Yield the handle of a folder below. `make` creates missing folders.

        Raises:
            ToolFailed: there is none, or a link is in the way.
        """
        handle = os.dup(self._root)
        try:
            for depth, part in enumerate(parts):
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, 0o777, dir_fd=handle)
                try:
                    deeper = os.open(part, _DIRECTORY, dir_fd=handle)
                except OSError as problem:
                    raise ToolFailed(_said(problem, "/".join(parts[: depth + 1]))) from None
                os.close(handle)
                handle = deeper
            yield handle
        finally:
            os.close(handle)

    # ------------------------------------------------------------ reading

    def read(self, parts: tuple[str, ...], *, limit: int = FILE_LIMIT) -> bytes:
        """Return a file's content.

        Raises:
            ToolFailed: no such file, a link, no regular file, or larger than `limit` bytes.
        """
        if not parts:
            raise ToolFailed("expected a file, got the work folder")
        name = "/".join(parts)
        with self.opened(parts[:-1]) as folder:
            try:
                handle = os.open(parts[-1], _FILE, dir_fd=folder)
            except OSError as problem:
                raise ToolFailed(_said(problem, name)) from None
        try:
            state = os.fstat(handle)
            if not stat.S_ISREG(state.st_mode):
                raise ToolFailed(f"{name} is no regular file")
            if state.st_size > limit:
                raise ToolFailed(f"{name} has {state.st_size:,} bytes; at most {limit:,} are read")
            with os.fdopen(os.dup(handle), "rb") as file:
                content = file.read(limit + 1)
        finally:
            os.close(handle)
        if len(content) > limit:
            raise ToolFailed(f"{name} has more than {limit:,} bytes")
        return content

    def read_if_there(self, parts: tuple[str, ...], *, limit: int = FILE_LIMIT) -> bytes | None:
        """Return a file's content, or None if nothing has that name. Raises as `read` for anything else."""
        with self._parent_if_there(parts) as folder:
            if folder is None:
                return None
            try:
                os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                return None
            except OSError as problem:
                raise ToolFailed(_said(problem, "/".join(parts))) from None
        return self.read(parts, limit=limit)

    def entries(self, parts: tuple[str, ...], most: int, *, beginning: str = "") -> tuple[list[Entry], int]:
        """List a folder by name. Of a million files only the first ones are looked at.

        Args:
            most: entries to return, the first by name.
            beginning: only those whose names begin so.

        Returns:
            The entries, and how many there are in all.

        Raises:
            ToolFailed: as `opened`.
        """
        with self.opened(parts) as folder, os.scandir(folder) as scanned:
            count = 0

            def names() -> Iterator[str]:
                nonlocal count
                for each in scanned:
                    if each.name.startswith(beginning):
                        count += 1
                        yield each.name

            first = heapq.nsmallest(most, names())
            return [_entry(name, folder) for name in first], count

    @contextlib.contextmanager
    def _parent_if_there(self, parts: tuple[str, ...]) -> Iterator[int | None]:
        if not parts:
            raise ToolFailed("expected a file, got the work folder")
        depth = len(parts) - 1
        for known in range(depth):
            with self.opened(parts[:known]) as folder:
                if not _exists(parts[known], folder):
                    yield None
                    return
        with self.opened(parts[:-1]) as folder:
            yield folder

    # ------------------------------------------------------------ writing

    def write(self, parts: tuple[str, ...], content: bytes, *, over: bytes | None) -> None:
        """Write a file atomically.

        Args:
            over: the content that is replaced, as it was when the writing was approved; None: there must be no file.

        Raises:
            ToolFailed: the file has changed, or cannot be written.
        """
        name = "/".join(parts)
        if self.read_if_there(parts, limit=64 * FILE_LIMIT) != over:
            raise ToolFailed(f"{name} has changed since this was approved; read it again")
        with self.opened(parts[:-1], make=True) as folder:
            mode = 0o666
            temporary = f".{parts[-1][:100]}.{secrets.token_hex(6)}"
            try:
                if over is not None:
                    mode = stat.S_IMODE(os.stat(parts[-1], dir_fd=folder, follow_symlinks=False).st_mode)
                _write_new(temporary, content, folder, mode=mode, exact=over is not None)
                os.rename(temporary, parts[-1], src_dir_fd=folder, dst_dir_fd=folder)
            except OSError as problem:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=folder)
                raise ToolFailed(_said(problem, name)) from None

    def remove(self, parts: tuple[str, ...], *, over: bytes) -> None:
        """Remove a file that still has the content `over`. Raises ToolFailed as `write`."""
        name = "/".join(parts)
        if self.read_if_there(parts, limit=64 * FILE_LIMIT) != over:
            raise ToolFailed(f"{name} has changed since")
        with self.opened(parts[:-1]) as folder:
            try:
                os.unlink(parts[-1], dir_fd=folder)
            except OSError as problem:
                raise ToolFailed(_said(problem, name)) from None


def digest(content: bytes | None) -> str:
    """Return a value that differs for different contents; "" for no file."""
    return "" if content is None else hashlib.sha256(content).hexdigest()


def _write_new(name: str, content: bytes, folder: int, *, mode: int, exact: bool) -> None:
    handle = os.open(name, _NEW, mode, dir_fd=folder)
    with os.fdopen(handle, "wb") as file:
        if exact:
            os.fchmod(handle, mode)  # the user's umask has made it what it is; it is not asked twice
        file.write(content)
        file.flush()
        os.fsync(handle)


def _entry(name: str, folder: int) -> Entry:
    try:
        state = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return Entry(name, "other", 0)
    kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}
    return Entry(name, kinds.get(stat.S_IFMT(state.st_mode), "other"), state.st_size)


def _exists(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # opening it says why not
    return True


def _said(problem: OSError, name: str) -> str:
    if problem.errno in (errno.ELOOP, errno.EMLINK):
        return f"{name} is a symbolic link; links are not followed"
    if problem.errno == errno.ENOTDIR:
        return f"{name} is no folder, or a symbolic link; links are not followed"
    return f"{name}: {(problem.strerror or type(problem).__name__).lower()}"
