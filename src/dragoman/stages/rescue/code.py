"""Where Markdown code begins and ends in running text (CommonMark 0.31: fences, inline code), and what is quoted, so
that examples of calls stay text."""

from __future__ import annotations

import re
from typing import Final

_TICKS: Final = re.compile(r"`+")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)$")
_BLOCK_QUOTE: Final = re.compile(r" {0,3}>")
#: A quotation mark that opens, right before what comes next.
_QUOTED: Final = re.compile(r"(?:^|[\s(\[{:=,])[\"'“‘«„‹]$|[「『《]$")
_MOST_WAITING: Final = 32
#: Characters of a text that is read at once: so many long ones would keep the whole answer in memory.
_LONG: Final = 128
#: Characters of a line that are kept: what follows tells nothing of a fence.
_KEPT: Final = 1024


class Code:
    """Follows text as it passes."""

    __slots__ = ("_fence", "_inline", "_is_blank", "_last", "_line", "_run", "_waiting")

    def __init__(self) -> None:
        self._fence = ""  # the run that opened a fence
        self._inline = 0  # backticks that opened inline code
        self._run = 0  # backticks at the very end, which may go on
        self._line = ""  # how the line begins
        self._last = ""  # and its last two characters
        self._is_blank = True  # only white space on the line so far
        self._waiting: list[str] = []  # passed and not read: nobody asked since

    def feed(self, text: str) -> None:
        """Text that passes."""
        self._waiting.append(text)
        if len(self._waiting) >= _MOST_WAITING or len(text) > _LONG:
            self._read()

    def _read(self) -> None:
        text = "".join(self._waiting)
        self._waiting.clear()
        if "`" not in text and "~" not in text and "\n" not in text:
            self._go_on(text)
            return
        *lines, rest = text.split("\n")
        for line in lines:
            self._go_on(line)
            self._end_line()
        self._go_on(rest)

    def is_inside(self) -> bool:
        """Whether what comes next stands in code."""
        self._read()
        return bool(self._fence or self._fence_begun() or self._inline_now())

    def is_example(self) -> bool:
        """Whether what comes next stands in code, right behind an opening quotation mark, or in a quoted line."""
        return self.is_inside() or _QUOTED.search(self._last) is not None or _BLOCK_QUOTE.match(self._line) is not None

    def is_line_start(self) -> bool:
        """Whether only white space stands before, on this line."""
        self._read()
        return self._is_blank

    def _go_on(self, text: str) -> None:
        """More of the line."""
        if not text:
            return
        if len(self._line) < _KEPT:
            self._line += text[: _KEPT - len(self._line)]
        self._last = (self._last + text[-2:])[-2:]
        self._is_blank = self._is_blank and text.isspace()
        position = 0
        for ticks in _TICKS.finditer(text) if "`" in text else ():
            if ticks.start() > 0:
                self._end_run()
            self._run += ticks.end() - ticks.start()
            position = ticks.end()
        if position < len(text):
            self._end_run()

    def _end_run(self) -> None:
        self._inline, self._run = self._inline_now(), 0

    def _inline_now(self) -> int:
        """Backticks of the inline code that is open, those at the end counted."""
        if not self._run:
            return self._inline
        return self._run if not self._inline else 0 if self._run == self._inline else self._inline

    def _fence_begun(self) -> re.Match[str] | None:
        """The line as the opening of a fence, if it is one so far."""
        found = _FENCE.match(self._line)
        return found if found is not None and not (found[1][0] == "`" and "`" in found[2]) else None

    def _end_line(self) -> None:
        self._end_run()
        found = self._fence_begun()
        if self._fence:
            self._inline = 0
            run = found[1] if found is not None and not found[2].strip() else ""
            if run[:1] == self._fence[0] and len(run) >= len(self._fence):
                self._fence = ""
        elif found is not None:
            self._fence, self._inline = found[1], 0
        elif self._is_blank:
            self._inline = 0  # inline code ends with its paragraph
        self._line, self._last, self._is_blank = "", "", True
