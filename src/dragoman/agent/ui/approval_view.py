"""Show an action to approve: whole, or its first and last rows; nothing in it can fake our own lines.

Every row of what will be done stands behind a bar, cut to the terminal's width by us. So no line end and no long line
in it can look like the question or like our facts.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final, TypeAlias, final

import msgspec
from rich.cells import cell_len
from rich.text import Text

from dragoman.agent.safe_text import counted, is_shell_alike, plain_line, revealed_text, told_apart
from dragoman.agent.tool_plan import Plan

#: Most rows that are shown without a second question; fewer where the terminal is lower.
LONGEST: Final = 40
_LEAST: Final = 10
_BESIDE: Final = 6  # rows of a terminal for the head, the facts and the question
_DIFF_COLOURS: Final = {"+": "green", "-": "red", "@": "cyan"}
_BAR: Final = "│ "
_ODD: Final = "reverse bold red"
#: A tab of a file. In a command it is written out.
_TAB: Final = "⇥   "
_LEAST_WIDTH: Final = 20
_INDENT: Final = "  "

#: A row: pieces of text with their styles.
_Row: TypeAlias = list[tuple[str, str]]


@final
class Showing(msgspec.Struct, frozen=True):
    """A rendered action: `text` of `lines` lines, of which `left_out` rows are missing. `is_odd`: it has marks."""

    text: Text
    lines: int
    left_out: int
    is_odd: bool


def show_action(plan: Plan, *, width: int, height: int, whole: bool = False) -> Showing:
    """Render what a plan will do for a terminal of that size."""
    action = plan.diff or plan.action
    lines = action.rstrip("\n").split("\n")
    rows: list[_Row] = []
    for line in lines:
        style = _DIFF_COLOURS.get(line[:1], "") if plan.diff else "bold"
        rows += _rows(line, max(width - len(_BAR), _LEAST_WIDTH), style, is_file=bool(plan.diff))
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
    is_odd = any(is_marked for row in rows for _, row_style in row if (is_marked := row_style == _ODD))
    return Showing(text, len(lines), left_out, is_odd)


def show_head(plan: Plan, *, width: int) -> Text:
    """Render what stands above a plan's rows: the tool, our facts, and what a change changes.

    Names in it are foreign, so its further rows begin with two spaces, unlike anything that will be done.
    """
    pieces = [(f"{plan.tool}:", "yellow"), (f" {plan.facts}" if plan.facts else "", "dim")]
    if plan.diff:
        title = revealed_text(plan.shown.partition("\n")[0])
        pieces.append((f" {plain_line(title, 160)}", "bold"))
    text = Text()
    for number, row in enumerate(_cut(pieces, max(width - len(_INDENT), _LEAST_WIDTH))):
        text.append("\n" + _INDENT if number else "")
        for piece, style in row:
            text.append(piece, style)
    return text


def _rows(line: str, width: int, style: str, *, is_file: bool) -> list[_Row]:
    """Cut a line into rows that no terminal draws wider than that many columns."""
    pieces = told_apart(line) if is_file else _in_order(told_apart(line))
    return _cut([(text.replace("\t", _TAB), _ODD if is_odd else style) for text, is_odd in pieces], width)


def _cut(pieces: list[tuple[str, str]], width: int) -> list[_Row]:
    rows: list[_Row] = [[]]
    room = width
    for piece, style in pieces:
        place = 0
        while place < len(piece):
            near = piece[place : place + max(room, 0) + 1]  # one character more than has room, if each takes a column
            taken = _fitting(near, room)
            if not taken and room == width:
                taken = near[0]
            if taken:
                rows[-1].append((taken, style))
                room -= _columns(taken)
                place += len(taken)
            if len(taken) < len(near):
                rows.append([])
                room = width
    return rows


def _in_order(pieces: list[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Return the pieces of a command with tabs, and quotation marks and dashes that a shell does not read, written out.

    If several words run from right to left, their letters too: a terminal would reorder what stands between.
    """
    found: list[tuple[str, bool]] = []
    turned = sum(
        _is_turned(before) < _is_turned(after)
        for text, _ in pieces
        for before, after in zip(f" {text}", text, strict=False)
    )
    for text, is_odd in pieces:
        begin = 0
        for place, letter in enumerate("" if is_odd or (text.isascii() and "\t" not in text) else text):
            if letter == "\t" or is_shell_alike(letter) or (turned > 1 and _is_turned(letter)):
                found += [(text[begin:place], False)] if begin < place else []
                found.append((f"<U+{ord(letter):04X}>", True))
                begin = place + 1
        found += [(text[begin:], is_odd)] if begin < len(text) else []
    return found


@lru_cache(maxsize=4_096)
def _is_turned(letter: str) -> bool:
    return unicodedata.bidirectional(letter) in ("R", "AL", "AN")


def _fitting(text: str, columns: int) -> str:
    """Return as much of the text as fits into the columns."""
    if text.isascii():
        return text[:columns]
    for place, character in enumerate(text):
        columns -= _columns_of(character)
        if columns < 0:
            return text[:place]
    return text


def _columns(text: str) -> int:
    return len(text) if text.isascii() else sum(map(_columns_of, text))


@lru_cache(maxsize=4_096)
def _columns_of(character: str) -> int:
    """Return the most columns that a terminal gives a character. Those of ambiguous width take two in some."""
    return max(cell_len(character), 2 if unicodedata.east_asian_width(character) in "WFA" else 0)


def _draw(text: Text, row: _Row) -> None:
    text.append(_BAR, "dim")
    for piece, style in row:
        text.append(piece, style)
    text.append("\n")
