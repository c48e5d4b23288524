"""`edit` and `write`: replace a text that stands in a file exactly once, and write a whole file."""

from __future__ import annotations

import difflib

from dragoman.agent.safe_text import revealed_text
from dragoman.agent.sandbox.standing_files import is_live
from dragoman.agent.tool_plan import Change, Outcome, Plan, ToolFailed, identity_of
from dragoman.agent.tools.read import text_of
from dragoman.agent.tools.toolbox import Planner, planner_of
from dragoman.agent.work_folder import FILE_LIMIT, WorkFolder, digest


def edit_tool(folder: WorkFolder) -> Planner:
    """Return the tool `edit` for that folder."""

    def edit(path: str, old: str, new: str) -> Plan:
        """Replace a piece of a file. The old text must stand in the file exactly once; give enough lines around it.

        Args:
            path: path in the work folder
            old: the exact text to replace
            new: the text in its place
        """
        parts = folder.parts(path)
        before = folder.read(parts)
        text, name = text_of(before, "/".join(parts)), "/".join(parts)
        if not old:
            raise ToolFailed("expected the text to replace, got nothing; write makes a new file")
        if old not in text and "\r\n" in text:
            old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
        count = text.count(old)
        if count != 1:
            seen = "nowhere" if count == 0 else f"{count} times"
            raise ToolFailed(f"expected the old text once in {name}, found it {seen}; read the file again")
        return _plan(folder, "edit", parts, before, text.replace(old, new))

    return planner_of(edit)


def write_tool(folder: WorkFolder) -> Planner:
    """Return the tool `write` for that folder."""

    def write(path: str, content: str) -> Plan:
        """Write a whole file, new or over an old one. Use edit for a change of a file.

        Args:
            path: path in the work folder
            content: all of its text
        """
        parts = folder.parts(path)
        return _plan(folder, "write", parts, folder.read_if_there(parts), content)

    return planner_of(write)


def _plan(folder: WorkFolder, tool: str, parts: tuple[str, ...], before: bytes | None, text: str) -> Plan:
    name, after = "/".join(parts), text.encode("utf-8", "replace")
    if len(after) > FILE_LIMIT:
        raise ToolFailed(f"expected at most {FILE_LIMIT:,} bytes, got {len(after):,}")
    if after == before:
        raise ToolFailed(f"{name} has that content already")
    diff = revealed_text(_diff(before, text, name))

    async def do() -> Outcome:
        folder.write(parts, after, over=before)
        added, removed = _counts(diff)
        words = f"{'changed' if before is not None else 'made'} {name} (+{added} -{removed} lines)"
        return Outcome(words, shown=words, change=Change(parts, before, after))

    return Plan(
        tool=tool,
        kind="write",
        subject=parts,
        shown=f"{tool} {name}\n{diff}",
        identity=identity_of(tool, {"path": parts, "before": digest(before), "after": digest(after)}),
        do=do,
        asks="always" if is_live(parts) else "unless-ruled",  # some program obeys that file later
        diff=diff,
    )


def _diff(before: bytes | None, after: str, name: str) -> str:
    old = [] if before is None else before.decode("utf-8", "replace").splitlines(keepends=True)
    new = after.splitlines(keepends=True)
    lines = difflib.unified_diff(old, new, name if before is not None else "/dev/null", name)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ no line end\n" for line in lines)


def _counts(diff: str) -> tuple[int, int]:
    lines = diff.splitlines()[2:]
    return sum(line[:1] == "+" for line in lines), sum(line[:1] == "-" for line in lines)
