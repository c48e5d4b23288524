"""`search`: find lines that match a regular expression, with ripgrep if it is installed."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sys
from pathlib import Path
from typing import Final

from dragoman import _json
from dragoman.agent.safe_text import counted
from dragoman.agent.tool_plan import Outcome, Plan, ToolFailed, identity_of
from dragoman.agent.tools.read import SECRET_FOLDERS, SECRET_NAMES, holds_secrets
from dragoman.agent.tools.toolbox import Planner, planner_of
from dragoman.agent.work_folder import WorkFolder

_MATCHES: Final = 200
_LINE_LIMIT: Final = 400
_SECONDS: Final = 20.0
_FILE_LIMIT: Final = 1024 * 1024
_OUTPUT_LIMIT: Final = 1024 * 1024
_MATCHER: Final = Path(__file__).with_name("matcher.py")
#: Folders that hold what others made.
_SKIPPED: Final = frozenset(
    {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".ruff_cache"}
)


def search_tool(folder: WorkFolder, *, ripgrep: str | None) -> Planner:
    """Return the tool for that folder. `ripgrep`: its path, or None to search without it."""

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
            found = await _found(folder, parts, pattern, files, ripgrep)
            text = "\n".join(found[:_MATCHES])
            if len(found) > _MATCHES:
                text += f"\n(only the first {_MATCHES} lines)"
            return Outcome(text or "(no match)", shown=counted(min(len(found), _MATCHES), "line"), is_foreign=True)

        return Plan(
            tool="search",
            kind="read",
            subject=parts,
            shown=f"search {pattern} in {'/'.join(parts) or '.'}",
            identity=identity_of("search", {"path": parts, "pattern": pattern, "files": files}),
            do=do,
            asks="unless-ruled" if holds_secrets((*parts, "")) else "never",
            is_idempotent=True,
        )

    return planner_of(search)


def find_ripgrep() -> str | None:
    """Return the path of ripgrep. It works in a folder's handle, which only Linux can express as a path."""
    return shutil.which("rg", path="/usr/local/bin:/usr/bin:/bin") if sys.platform == "linux" else None


def _ripgrep_words(ripgrep: str, pattern: str, files: str) -> list[str]:
    """Return ripgrep's command. It follows no link. The last glob that matches decides: files of keys are left out."""
    secrets = [*(f"--iglob=!{name}" for name in SECRET_NAMES), *(f"--iglob=!**/{name}/**" for name in SECRET_FOLDERS)]
    return [
        ripgrep, "--no-config", "--no-follow", "--no-messages", "--no-heading", "--line-number", "--color=never",
        "--hidden", "--sort=path", "--max-columns", str(_LINE_LIMIT), "--max-columns-preview",
        "--max-count", str(_MATCHES), "--max-filesize", str(_FILE_LIMIT), "--glob", files, "--glob=!.git", *secrets,
        "--regexp", pattern, "--", ".",
    ]  # fmt: skip


def _matcher_words(handle: int, pattern: str, files: str) -> list[str]:
    order = {
        "folder": handle, "pattern": pattern, "files": files, "matches": _MATCHES,
        "line_limit": _LINE_LIMIT, "file_limit": _FILE_LIMIT, "skipped": sorted(_SKIPPED),
        "secret_names": SECRET_NAMES, "secret_folders": sorted(SECRET_FOLDERS),
    }  # fmt: skip
    return [sys.executable, "-I", "-S", str(_MATCHER), _json.to_text(order)]


async def _found(
    folder: WorkFolder, parts: tuple[str, ...], pattern: str, files: str, ripgrep: str | None
) -> list[str]:
    """Return the lines, at most one more than is shown.

    The search is a process in the folder's own handle: no link can lead it elsewhere, and it is killed at its time
    limit or when we are cancelled.
    """
    base = "".join(f"{part}/" for part in parts)
    with folder.opened(parts) as handle:
        if ripgrep is not None:
            words, place = _ripgrep_words(ripgrep, pattern, files), f"/proc/self/fd/{handle}"
        else:
            words, place = _matcher_words(handle, pattern, files), "/"
        output, problem = await _run_killable(words, place, handle)
    if problem and not output:
        raise ToolFailed(f"expected a regular expression, got {pattern[:200]!r}: {problem}")
    lines = output.decode("utf-8", "replace").split("\n")[: _MATCHES + 1]
    return [f"{base}{line.removeprefix('./')}" for line in lines if line]


async def _run_killable(words: list[str], place: str, handle: int) -> tuple[bytes, str]:
    """Return a command's output, up to a limit, and its error message if it failed."""
    process = await asyncio.create_subprocess_exec(
        *words,
        cwd=place,
        env={"PATH": "/usr/bin:/bin"},
        pass_fds=[handle],
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None and process.stderr is not None
    output = bytearray()
    try:
        async with asyncio.timeout(_SECONDS):
            while len(output) < _OUTPUT_LIMIT and (piece := await process.stdout.read(65536)):
                output += piece
            if len(output) >= _OUTPUT_LIMIT:
                return bytes(output), ""
            complaint = await process.stderr.read(2_000)
            status = await process.wait()
    except TimeoutError:
        raise ToolFailed(f"the search did not end in {_SECONDS:g} s; search a smaller folder, or more simply") from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    return bytes(output), complaint.decode("utf-8", "replace").strip()[:300] if status > 1 else ""
