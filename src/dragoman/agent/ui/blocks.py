"""Cut a growing answer into blocks: complete ones are printed for good, the rest is redrawn with each piece."""

from __future__ import annotations

from typing import Final, final

#: Characters of a block that is drawn as Markdown, and kept; a longer one goes out in pieces. What a reader of Markdown
#: takes for a hostile text grows faster than the text.
BLOCK_LIMIT: Final = 8 * 1024


@final
class Blocks:
    """Takes pieces of any size, in linear time and bounded space. A fenced block is one block."""

    __slots__ = ("_end", "_fence", "_lines", "_open", "_size")

    def __init__(self) -> None:
        self._lines: list[str] = []  # whole lines that are not settled
        self._open = ""  # the line that has not ended
        self._size = 0  # characters of both
        self._end = 0  # how many of the lines are whole blocks
        self._fence = ""

    @property
    def rest(self) -> str:
        """The incomplete rest."""
        return "".join(self._lines) + self._open

    def add(self, text: str) -> list[str]:
        """Add text. Return the blocks that are complete now, at most `BLOCK_LIMIT` characters each."""
        found: list[str] = []
        for start in range(0, len(text), BLOCK_LIMIT):
            self._take(text[start : start + BLOCK_LIMIT])
            if self._size > BLOCK_LIMIT:
                self._end = len(self._lines)
                found += [self._settled()] if self._end else []
                if len(self._open) > BLOCK_LIMIT // 2:
                    found.append(self._open)
                    self._size -= len(self._open)
                    self._open = ""
            elif self._end:
                found.append(self._settled())
        return found

    def _take(self, text: str) -> None:
        self._size += len(text)
        *whole, self._open = (self._open + text).split("\n")
        for line in whole:
            self._lines.append(f"{line}\n")
            bare = line.strip()
            if self._fence:
                if bare.startswith(self._fence) and not bare.strip(self._fence[0]):
                    self._fence = ""
                    self._end = len(self._lines)
            elif bare.startswith(("```", "~~~")):
                self._fence = bare[: len(bare) - len(bare.lstrip(bare[0]))]
            elif not bare and len(self._lines) > 1:
                self._end = len(self._lines)

    def _settled(self) -> str:
        text = "".join(self._lines[: self._end])
        del self._lines[: self._end]
        self._size -= len(text)
        self._end = 0
        return text
