"""`search`: lines of files that a regular expression matches, with ripgrep where it is installed."""

from __future__ import annotations

import asyncio
import contextlib
import fnmatch
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Final

from dragoman.agent.confinement import Folder
from dragoman.agent.plain import counted
from dragoman.agent.plan import Outcome, Plan, ToolFailed, identity_of
from dragoman.agent.tools.read import SECRET_NAMES, holds_secrets
from dragoman.agent.tools.toolbox import Planner, planner_of

_MATCHES: Final = 200
_LINE_LIMIT: Final = 400
_SECONDS: Final = 20.0
_FILE_LIMIT: Final = 1024 * 1024
#: Folders that hold what others made.
_SKIPPED: Final = frozenset(
    {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".ruff_cache"}
)


def search_tool(folder: Folder, *, ripgrep: str | None) -> Planner:
    """The tool for that folder. `ripgrep`: its path, or None to search without it."""

    def search(pattern: str, path: str = ".", files: str = "*") -> Plan:
        """Search the files of a folder for a regular expression, line by line.

        Args:
            pattern: regular expression
            path: folder to search in
            files: only files whose name is like this, e.g. *.py
        """
        parts = folder.parts(path)
        if "\0" in pattern or "\0" in files or "\n" in pattern:
            raise ToolFailed("expected a pattern of one line")

        async def do() -> Outcome:
            look = _with_ripgrep if ripgrep is not None else _without_ripgrep
            found = await asyncio.to_thread(look, folder, parts, pattern, files, ripgrep or "")
            text = "\n".join(found[:_MATCHES])
            if len(found) > _MATCHES:
                text += f"\n(only the first {_MATCHES} lines)"
            return Outcome(text or "(no match)", shown=counted(min(len(found), _MATCHES), "line"))

        return Plan(
            tool="search",
            kind="read",
            subject=parts,
            shown=f"search {pattern} in {'/'.join(parts) or '.'}",
            identity=identity_of("search", {"path": parts, "pattern": pattern, "files": files}),
            do=do,
            asks="never",
            is_idempotent=True,
        )

    return planner_of(search)


def find_ripgrep() -> str | None:
    """Where ripgrep is; it is asked to work in a folder's handle, which only Linux can say as a path."""
    return shutil.which("rg", path="/usr/local/bin:/usr/bin:/bin") if sys.platform == "linux" else None


def _with_ripgrep(folder: Folder, parts: tuple[str, ...], pattern: str, files: str, ripgrep: str) -> list[str]:
    """Ripgrep started in the folder's own handle, so that no link can lead it elsewhere; it follows none itself."""
    command = [
        ripgrep, "--no-config", "--no-follow", "--no-messages", "--no-heading", "--line-number", "--color=never",
        "--hidden", "--glob=!.git", "--sort=path", "--max-columns", str(_LINE_LIMIT), "--max-columns-preview",
        "--max-count", str(_MATCHES), "--max-filesize", str(_FILE_LIMIT), "--glob", files, "--regexp", pattern, "--",
        ".",
    ]  # fmt: skip
    # The last glob that fits decides, and ripgrep puts these behind --glob: files of keys are left out, always.
    command[1:1] = [f"--iglob=!{name}" for name in SECRET_NAMES]
    with folder.opened(parts) as handle:
        try:
            done = subprocess.run(
                command,
                cwd=f"/proc/{os.getpid()}/fd/{handle}",
                capture_output=True,
                timeout=_SECONDS,
                check=False,
                env={"PATH": "/usr/bin:/bin"},
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise ToolFailed(f"the search did not end: {type(problem).__name__}") from None
    if done.returncode > 1 and not done.stdout:
        raise ToolFailed(f"the search failed: {done.stderr.decode('utf-8', 'replace')[:300].strip()}")
    base = "/".join(parts)
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    return [f"{base}/{line[2:]}" if base else line[2:] for line in lines[: _MATCHES + 1]]


def _without_ripgrep(folder: Folder, parts: tuple[str, ...], pattern: str, files: str, ripgrep: str) -> list[str]:
    try:
        wanted = re.compile(pattern)
    except re.error as problem:
        raise ToolFailed(f"expected a regular expression, got {pattern[:200]!r}: {problem}") from None
    deadline = time.monotonic() + _SECONDS
    found: list[str] = []
    for place in _files(folder, parts):
        if time.monotonic() > deadline:
            raise ToolFailed("the search did not end in time; search a smaller folder")
        if fnmatch.fnmatchcase(place[-1], files) and not holds_secrets(place):
            with contextlib.suppress(ToolFailed, UnicodeDecodeError):
                found += _matching(folder.read(place).decode("utf-8"), wanted, "/".join(place))
        if len(found) > _MATCHES:
            break
    return found


def _files(folder: Folder, parts: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for entry in folder.entries(parts):
        if entry.kind == "file":
            yield (*parts, entry.name)
        elif entry.kind == "folder" and entry.name not in _SKIPPED:
            with contextlib.suppress(ToolFailed):
                yield from _files(folder, (*parts, entry.name))


def _matching(text: str, wanted: re.Pattern[str], name: str) -> list[str]:
    lines = enumerate(text.splitlines(), 1)
    return [f"{name}:{number}:{line[:_LINE_LIMIT]}" for number, line in lines if wanted.search(line)]
