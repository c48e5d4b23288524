"""What a terminal is shown: colours where they are wanted, text that cannot steer it, tables."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import IO, Final, Literal, TypeAlias, final

Colour: TypeAlias = Literal["bold", "dim", "red", "green", "yellow", "blue", "cyan"]
_CODES: Final[dict[Colour, str]] = {
    "bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36",
}  # fmt: skip
#: Control characters, but for line feed and tab: a model's words must not move the cursor or set a title.
_CONTROLS: Final = {code: "�" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}


@final
class Paint:
    """Colours text, or leaves it as it is."""

    __slots__ = ("colourful",)

    def __init__(self, *, colourful: bool) -> None:
        self.colourful = colourful

    def __call__(self, colour: Colour, text: str) -> str:
        """The text in that colour."""
        return f"\033[{_CODES[colour]}m{text}\033[0m" if self.colourful and text else text


def is_colourful(stream: IO[str], environ: Mapping[str, str] = os.environ) -> bool:
    """Whether to colour what goes there: `NO_COLOR` says no, `FORCE_COLOR` yes, else terminals are."""
    if environ.get("NO_COLOR") or environ.get("TERM") == "dumb":
        return False
    return bool(environ.get("FORCE_COLOR")) or stream.isatty()


def paint_for(stream: IO[str]) -> Paint:
    """The colours for a stream."""
    return Paint(colourful=is_colourful(stream))


def columns_of(stream: IO[str], *, most: int = 120) -> int:
    """How wide a line there may be: the terminal's columns; `most` at most, and where it is no terminal."""
    try:
        return min(os.get_terminal_size(stream.fileno()).columns or most, most)
    except (OSError, ValueError):
        return most


def harmless(text: str) -> str:
    """Text without control characters, line feed and tab excepted."""
    return text.translate(_CONTROLS)


def clip(text: str, width: int) -> str:
    """The text on one line of at most `width` characters."""
    text = " ".join(harmless(text).split())
    return text if len(text) <= width else text[: width - 1] + "…"


def render_table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of equal length as aligned columns; "" at the end of a row costs nothing."""
    rows = [[harmless(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "".join(f"{line}\n" for line in lines)


def say(text: str) -> None:
    """Write to standard output at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def hint(text: str) -> None:
    """Write to standard error at once: what is no data."""
    sys.stdout.flush()
    sys.stderr.write(text)
    sys.stderr.flush()
