"""Undo the file changes of a run. Changes by commands are unknown and stay."""

from __future__ import annotations

from dragoman.agent.session.session_file import Session
from dragoman.agent.tool_plan import Change, ToolFailed
from dragoman.agent.work_folder import WorkFolder


def undo_run(session: Session, folder: WorkFolder) -> list[str]:
    """Restore the files that the newest changing run wrote. Return a line for each.

    A file that was changed since by something else is left alone, and a line says so.
    """
    if not session.changes:
        return []
    run = session.changes[-1][0]
    lines = [_undone(change, folder) for number, change in reversed(session.changes) if number == run]
    session.undone(run)
    return lines


def _undone(change: Change, folder: WorkFolder) -> str:
    name = "/".join(change.path)
    try:
        if change.before is not None:
            folder.write(change.path, change.before, over=change.after)
            return f"{name}: as it was"
        if change.after is not None:
            folder.remove(change.path, over=change.after)
        return f"{name}: removed"
    except ToolFailed:
        return f"{name}: left alone, it was changed since"
