"""The process that searches files: a slow pattern of the model blocks only it, and it can be killed.

    python -I -S matcher.py '{"folder": 3, "pattern": "a+", "files": "*", …}'

Nothing of dragoman is imported: this file runs alone. `folder` is the handle of the folder that is searched; files are
opened below it, step by step, and no symbolic link is followed. It writes a line for each line found, `NAME:LINE:TEXT`.
Exit status 2 with a line on standard error: the pattern is not valid.
"""

from __future__ import annotations

import contextlib
import fnmatch
import json  # noqa: TID251
import os
import re
import resource
import stat
import sys
from collections.abc import Iterator
from typing import Any

_DIRECTORY = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW
_FILE = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_DEPTH = 64
_MEMORY = 1024**3  # bytes: what a pattern may take is bounded too


def main() -> int:
    """Search, and print what was found."""
    order = json.loads(sys.argv[1])
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    try:
        wanted = re.compile(order["pattern"])
    except (re.error, OverflowError, RecursionError) as problem:
        sys.stderr.write(f"{problem}\n")
        return 2
    left = order["matches"] + 1
    for name, content in _files(order["folder"], "", order, _DEPTH):
        for number, line in enumerate(content.splitlines(), 1):
            if wanted.search(line):
                found = f"{name}:{number}:{line[: order['line_limit']]}\n"
                sys.stdout.buffer.write(found.encode("utf-8", "replace"))
                left -= 1
                if not left:
                    return 0
        sys.stdout.flush()
    return 0


def _files(folder: int, base: str, order: dict[str, Any], depth: int) -> Iterator[tuple[str, str]]:
    """Yield the wanted text files below a folder's handle, with their names."""
    for name in sorted(os.listdir(folder)):
        path = f"{base}{name}"
        try:
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        except OSError:
            continue
        if stat.S_ISDIR(mode) and name not in order["skipped"] and depth:
            with contextlib.suppress(OSError):
                below = os.open(name, _DIRECTORY, dir_fd=folder)
                try:
                    yield from _files(below, f"{path}/", order, depth - 1)
                finally:
                    os.close(below)
        elif stat.S_ISREG(mode) and fnmatch.fnmatchcase(name, order["files"]) and not _is_secret(path, order):
            with contextlib.suppress(OSError, UnicodeDecodeError):
                yield path, _content(name, folder, order["file_limit"])


def _is_secret(path: str, order: dict[str, Any]) -> bool:
    """Return whether the names of a file and its folders suggest that it contains keys."""
    *folders, name = path.lower().split("/")
    is_named = any(fnmatch.fnmatchcase(name, like) for like in order["secret_names"])
    return is_named or not set(order["secret_folders"]).isdisjoint(folders)


def _content(name: str, folder: int, limit: int) -> str:
    """Return a text file's content. Raises OSError, UnicodeDecodeError for links, devices, large and other files."""
    handle = os.open(name, _FILE, dir_fd=folder)
    with os.fdopen(handle, "rb") as file:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode) or state.st_size > limit:
            raise OSError
        return file.read(limit).decode("utf-8")


if __name__ == "__main__":
    sys.exit(main())
