"""Terminal output: colours where they are wanted, text that cannot steer the terminal, tables."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import IO, Final, Literal, TypeAlias, final

from dragoman.agent.safe_text import SHOWN, shown

Colour: TypeAlias = Literal["bold", "dim", "red", "green", "yellow", "blue", "cyan"]
_CODES: Final[dict[Colour, str]] = {
    "bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36",
}  # fmt: skip
#: A cell of a table is one line.
_CELL: Final = {0x09: " ", 0x0A: " ", 0x2028: " ", 0x2029: " "}
#: The same characters as JSON writes them, those of ASCII excepted: JSON has none of them, and our colours are some.
_AS_JSON: Final = {
    code: "".join(f"\\u{unit:04x}" for unit in memoryview(chr(code).encode("utf-16-le")).cast("H"))
    for code in SHOWN
    if code >= 0x7F
}


@final
class Paint:
    """Colours text, or leaves it as it is."""

    __slots__ = ("colourful",)

    def __init__(self, *, colourful: bool) -> None:
        self.colourful = colourful

    def __call__(self, colour: Colour, text: str) -> str:
        """Return the text in that colour."""
        return f"\033[{_CODES[colour]}m{text}\033[0m" if self.colourful and text else text


def is_colourful(stream: IO[str], environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether to colour output: `NO_COLOR` says no, `FORCE_COLOR` yes, else terminals are coloured."""
    if environ.get("NO_COLOR") or environ.get("TERM") == "dumb":
        return False
    return bool(environ.get("FORCE_COLOR")) or stream.isatty()


def paint_for(stream: IO[str]) -> Paint:
    """Return the colours for a stream."""
    return Paint(colourful=is_colourful(stream))


def columns_of(stream: IO[str], *, most: int = 120) -> int:
    """Return the width of lines: the terminal's columns, at most `most`; `most` for what is no terminal."""
    try:
        return min(os.get_terminal_size(stream.fileno()).columns or most, most)
    except (OSError, ValueError):
        return most


def harmless(text: str) -> str:
    """Return text that moves no cursor, sets no title, and hides or turns nothing; line feed and tab stay.

    Each character is judged by itself, so a text may be shown in pieces.
    """
    return text if text.isascii() and text.isprintable() else shown(text)


def harmless_json(data: bytes) -> bytes:
    """Return JSON with the same values, in which no character can steer a terminal or turn its text."""
    if data.isascii() and b"\x7f" not in data:
        return data
    return data.decode("utf-8", "surrogateescape").translate(_AS_JSON).encode("utf-8", "surrogateescape")


def clip(text: str, width: int) -> str:
    """Return the text on one line of at most `width` characters."""
    text = " ".join(harmless(text).split())
    return text if len(text) <= width else text[: width - 1] + "…"


def first_of(names: Sequence[str], most: int) -> tuple[str, str]:
    """Return the first names as a text, and how many more there are in words, or ""."""
    return ", ".join(names[:most]), f" and {len(names) - most} more" if len(names) > most else ""


def render_table(rows: Sequence[Sequence[str]]) -> str:
    """Render rows of equal length as aligned columns; "" at the end of a row takes no space."""
    rows = [[shown(cell).translate(_CELL) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "".join(f"{line}\n" for line in lines)


def say(text: str) -> None:
    """Print to standard output at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def hint(text: str) -> None:
    """Print to standard error at once: for what is not data. A full disk keeps it back, and does not end the work."""
    sys.stdout.flush()
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except BrokenPipeError:  # its reader has left
        raise
    except OSError:
        pass
