"""Where Markdown code begins and ends in running text (CommonMark 0.31: fences, inline code), so that examples of
calls stay text."""

from __future__ import annotations

import re
from typing import Final

_MARKS: Final = re.compile(r"[`~\n]")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})([^`\n]*)$")


class Code:
    """Follows text as it passes."""

    __slots__ = ("_fence", "_inline", "_line")

    def __init__(self) -> None:
        self._fence = ""  # the run that opened a fence
        self._inline = 0  # backticks that opened inline code
        self._line = ""  # the line so far

    def feed(self, text: str) -> None:
        """Text that passes."""
        if _MARKS.search(text) is None:
            self._line += text if len(self._line) < 4096 else ""
            return
        *lines, rest = text.split("\n")
        for line in lines:
            self._end_line(self._line + line)
            self._line = ""
        self._line += rest

    def is_inside(self) -> bool:
        """Whether what comes next stands in code."""
        if self._fence:
            return True
        opened = _FENCE.match(self._line)
        return opened is not None or self._inline_after(self._line) > 0

    def is_line_start(self) -> bool:
        """Whether only white space stands before, on this line."""
        return not self._line.strip()

    def _end_line(self, line: str) -> None:
        found = _FENCE.match(line)
        if self._fence:
            run = found[1] if found is not None and not found[2].strip() else ""
            if run[:1] == self._fence[0] and len(run) >= len(self._fence):
                self._fence = ""
            return
        if found is not None and not (found[1][0] == "`" and "`" in found[2]):
            self._fence, self._inline = found[1], 0
            return
        self._inline = self._inline_after(line) if line.strip() else 0  # inline code ends with its paragraph

    def _inline_after(self, line: str) -> int:
        """Backticks of the inline code that is open at the end of a line."""
        inline = self._inline
        for run in re.findall(r"`+", line):
            if not inline:
                inline = len(run)
            elif len(run) == inline:
                inline = 0
        return inline
