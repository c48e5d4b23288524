"""`list`: list a folder."""

from __future__ import annotations

import asyncio
from typing import Final

from dragoman.agent.safe_text import counted
from dragoman.agent.tool_plan import Outcome, Plan, identity_of
from dragoman.agent.tools.toolbox import Planner, planner_of
from dragoman.agent.work_folder import Entry, WorkFolder

_LIMIT: Final = 500


def list_tool(folder: WorkFolder) -> Planner:
    """Return the tool for that folder."""

    def list(  # noqa: A001 - the tool's name
        path: str = ".",
    ) -> Plan:
        """List a folder of the work folder: folders end with /, links are not followed.

        Args:
            path: path in the work folder
        """
        parts = folder.parts(path)

        async def do() -> Outcome:
            entries, count = await asyncio.to_thread(folder.entries, parts, _LIMIT)
            lines = [_line(entry) for entry in entries]
            if count > _LIMIT:
                lines.append(f"({count - _LIMIT:,} more)")
            shown = counted(count, "entry", "entries")
            return Outcome("\n".join(lines) or "(empty folder)", shown=shown, is_foreign=True)

        return Plan(
            tool="list",
            kind="read",
            subject=parts,
            shown=f"list {'/'.join(parts) or '.'}",
            identity=identity_of("list", {"path": parts}),
            do=do,
            asks="never",
            is_idempotent=True,
        )

    return planner_of(list)


def _line(entry: Entry) -> str:
    if entry.kind == "file":
        return f"{entry.name}  {entry.size:,} bytes"
    return f"{entry.name}/" if entry.kind == "folder" else f"{entry.name}  ({entry.kind})"
