"""What is shown to a person who approves: all of it or its first and last rows, and nothing in it that forges ours.

Every row of what will be done stands behind a bar, cut to the terminal's width by us, so that no line end and no long
line in it can look like the question or the facts that we put beside it.
"""

from __future__ import annotations

from typing import Final, TypeAlias, final

import msgspec
from rich.cells import cell_len, chop_cells
from rich.text import Text

from dragoman.agent.plain import counted, told_apart
from dragoman.agent.plan import Plan

#: Most rows that are shown without a second question; fewer where the terminal is lower.
LONGEST: Final = 40
_LEAST: Final = 10
_BESIDE: Final = 6  # rows of a terminal for the head, the facts and the question
_DIFF_COLOURS: Final = {"+": "green", "-": "red", "@": "cyan"}
_BAR: Final = "│ "
_ODD: Final = "reverse bold red"

#: A row: pieces of text with their styles.
_Row: TypeAlias = list[tuple[str, str]]


@final
class Showing(msgspec.Struct, frozen=True):
    """`text` is drawn. There are `lines` lines, of which `left_out` rows are not in it. `is_odd`: some characters are
    marked."""

    text: Text
    lines: int
    left_out: int
    is_odd: bool


def show_action(plan: Plan, *, width: int, height: int, whole: bool = False) -> Showing:
    """What a plan will do, for a terminal of that many columns and rows."""
    action = plan.diff or plan.action
    lines = action.rstrip("\n").split("\n")
    rows: list[_Row] = []
    for line in lines:
        rows += _rows(line, max(width - len(_BAR), 20), _DIFF_COLOURS.get(line[:1], "") if plan.diff else "bold")
    most = max(_LEAST, min(LONGEST, height - _BESIDE))
    left_out = len(rows) - most if len(rows) > most and not whole else 0
    first = len(rows) if not left_out else most // 2
    text = Text()
    for row in rows[:first]:
        _draw(text, row)
    if left_out:
        words = f"┆ {counted(left_out, 'row')} of {counted(len(lines), 'line')} are not shown here ┆"
        text.append(f"{words}\n", "reverse")
        for row in rows[first + left_out :]:
            _draw(text, row)
    text.rstrip()
    return Showing(text, len(lines), left_out, any(is_odd for _, is_odd in told_apart(action)))


def _rows(line: str, width: int, style: str) -> list[_Row]:
    """A line cut into rows of that many columns."""
    rows: list[_Row] = [[]]
    room = width
    for piece, is_odd in told_apart(line):
        rest = piece
        while rest:
            taken = rest if cell_len(rest) <= room else (chop_cells(rest[: room + 1], room)[0] if room > 1 else "")
            if not taken and room == width:
                taken = rest[0]
            if taken:
                rows[-1].append((taken, _ODD if is_odd else style))
                room -= cell_len(taken)
                rest = rest[len(taken) :]
            if rest:
                rows.append([])
                room = width
    return rows


def _draw(text: Text, row: _Row) -> None:
    text.append(_BAR, "dim")
    for piece, style in row:
        text.append(piece, style)
    text.append("\n")
