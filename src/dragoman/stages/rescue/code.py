"""Where code begins and ends in running text, and what is quoted, so that examples of calls stay text.

CommonMark 0.31: fences, indented blocks, inline code; HTML: `<pre>` and `<code>`.
"""

from __future__ import annotations

import re
from typing import Final

_FENCE: Final = re.compile(r" {0,3}(`{3,}+|~{3,}+)([^\n]*+)$")
_BLOCK_QUOTE: Final = re.compile(r" {0,3}>")
_LIST_ITEM: Final = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])(?: {1,4}|\t)(?=\S)")
#: All that changes how a line goes on: runs of backticks, quotation marks, the two tags (perhaps cut).
_MARK: Final = re.compile(r"`+|[\"“”„«»]|</?(?:pre|code)(?=[\s/>])[^<>`]*>", re.IGNORECASE)
_TAG_BEGUN: Final = re.compile(r"<(?:/?(?:p(?:re?)?|c(?:o(?:de?)?)?)?|/?(?:pre|code)\s[^<>`]*)$", re.IGNORECASE)
_TAGS_ONLY: Final = re.compile(r"\s*(?:<[^<>]*>\s*)*$")
#: A quotation mark that opens, right before what comes next.
_QUOTED: Final = re.compile(r"(?:^|[\s(\[{:=,])([\"'“‘«„‹])$|([「『《])$")
_QUOTE_ENDS: Final = {
    '"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "»": "«", "„": "“", "‹": "›", "「": "」", "『": "』", "《": "》",
}  # fmt: skip
_MOST_WAITING: Final = 32
#: Characters of a text that is read at once: so many long ones would keep the whole answer in memory.
_LONG: Final = 128
#: Characters of a line that are kept: what follows tells nothing of a fence.
_KEPT: Final = 1024
_INDENTED: Final = 4


class Code:
    """Follows text as it passes."""

    __slots__ = (
        "_carry", "_fence", "_html", "_inline", "_is_blank", "_is_paragraph", "_last", "_line", "_list", "_quote",
        "_run", "_waiting",
    )  # fmt: skip

    def __init__(self) -> None:
        self._fence = ""  # the run that opened a fence
        self._inline = 0  # backticks that opened inline code
        self._run = 0  # backticks at the very end, which may go on
        self._html = ""  # "pre", "code"; "block" for a `<pre>` that begins its line: no blank line ends it
        self._quote = ""  # what closes the quotation that is open on this line
        self._line = ""  # how the line begins
        self._last = ""  # and its last two characters
        self._carry = ""  # the beginning of a tag, perhaps
        self._is_blank = True  # only white space on the line so far
        self._is_paragraph = False  # the line before may go on in this one
        self._list = 0  # where the text of the list item begins that this line may belong to
        self._waiting: list[str] = []  # passed and not read: nobody asked since

    def feed(self, text: str) -> None:
        """Text that passes."""
        self._waiting.append(text)
        if len(self._waiting) >= _MOST_WAITING or len(text) > _LONG:
            self._read()

    def skip_call(self) -> None:
        """A call stood here, whose text nobody feeds."""
        self._read()
        self._is_blank = False

    def set_quote(self, closing: str) -> None:
        """What was fed stood in quotation marks, which this one closes."""
        self._read()
        self._quote = closing

    def drop_inline(self) -> None:
        """The backticks that are open close nothing: they are text."""
        self._read()
        self._inline = self._run = 0

    def is_inside(self) -> bool:
        """Whether what comes next stands in code, or behind backticks that may begin some."""
        return self.is_block() or self.inline() > 0

    def is_block(self) -> bool:
        """Whether what comes next stands in a fence, an indented block, HTML's code or a quoted line."""
        self._read()
        return bool(
            self._fence
            or self._html
            or self._fence_begun()
            or self._is_indented()
            or _BLOCK_QUOTE.match(self._line) is not None
        )

    def inline(self) -> int:
        """How many backticks opened the inline code that what comes next stands in, if as many close it; else 0."""
        self._read()
        return self._inline_now()

    def quote(self) -> str:
        """What closes the quotation that is open on this line, or right before what comes next; else ""."""
        self._read()
        behind = _QUOTED.search(self._last)
        return self._quote or (_QUOTE_ENDS[behind[1] or behind[2]] if behind is not None else "")

    def is_line_start(self) -> bool:
        """Whether only white space stands before, on this line."""
        self._read()
        return self._is_blank

    # ------------------------------------------------------------ lines

    def _read(self) -> None:
        if not self._waiting:
            return
        text = "".join(self._waiting)
        self._waiting.clear()
        *lines, rest = text.split("\n")
        for line in lines:
            self._go_on(line)
            self._end_line()
        self._go_on(rest)

    def _go_on(self, text: str) -> None:
        """More of the line."""
        if not text:
            return
        if len(self._line) < _KEPT:
            self._line += text[: _KEPT - len(self._line)]
        self._is_blank = self._is_blank and text.isspace()
        text, before, self._carry = self._carry + text, self._last, ""
        self._last = (before + text[-2:])[-2:]
        if self._fence:
            return
        position = 0
        for mark in _MARK.finditer(text):
            if mark.start() > position or not mark.group().startswith("`"):
                self._end_run()
            position = mark.end()
            self._mark(
                mark.group(), (before + text[: mark.start()])[-1:] if mark.start() < 2 else text[mark.start() - 1]
            )
        if position < len(text):
            self._end_run()
            begun = _TAG_BEGUN.search(text, max(position, len(text) - _KEPT))
            self._carry = begun.group() if begun is not None else ""

    def _mark(self, mark: str, before: str) -> None:
        if mark[0] == "`":
            self._run += len(mark)
        elif mark[0] == "<":
            if not self._inline:
                self._tag(mark)
        elif self._quote:
            if mark == self._quote or (self._quote == "“" and mark == "”"):
                self._quote = ""
        elif mark in '"“„«»' and not before.isalnum():
            self._quote = _QUOTE_ENDS[mark]

    def _tag(self, tag: str) -> None:
        name = "pre" if "pre" in tag[:5].lower() else "code"
        if tag[1] == "/":
            if self._html == name or (self._html == "block" and name == "pre"):
                self._html = ""
        elif not self._html or name == "pre":
            starts = len(self._line) < _KEPT and _TAGS_ONLY.match(self._line[: self._line.rfind(tag)]) is not None
            self._html = "block" if name == "pre" and starts else name

    def _end_run(self) -> None:
        self._inline, self._run = self._inline_now(), 0

    def _inline_now(self) -> int:
        """Backticks of the inline code that is open, those at the end counted."""
        if not self._run:
            return self._inline
        return self._run if not self._inline else 0 if self._run == self._inline else self._inline

    def _is_indented(self) -> bool:
        """Whether the line stands in an indented block, as far as it has come."""
        if self._is_paragraph or not self._line[:1].isspace():
            return False
        line = self._line.expandtabs(_INDENTED)
        return len(line) - len(line.lstrip()) >= _INDENTED + self._list

    def _fence_begun(self) -> re.Match[str] | None:
        """The line as the opening of a fence, if it is one so far."""
        line = self._line
        if self._list and line[: self._list].isspace():
            line = line[self._list :]
        found = _FENCE.match(line)
        return found if found is not None and not (found[1][0] == "`" and "`" in found[2]) else None

    def _end_line(self) -> None:
        self._end_run()
        found = self._fence_begun()
        if self._fence:
            self._inline = 0
            run = found[1] if found is not None and not found[2].strip() else ""
            if run[:1] == self._fence[0] and len(run) >= len(self._fence):
                self._fence = ""
            self._is_paragraph = False
        elif found is not None and not self._html:
            self._fence, self._inline, self._is_paragraph = found[1], 0, False
        elif self._is_blank:
            self._inline = 0  # inline code ends with its paragraph
            self._is_paragraph = False
            self._html = self._html if self._html == "block" else ""
        else:
            self._end_prose_line()
        self._line, self._last, self._carry, self._quote, self._is_blank = "", "", "", "", True

    def _end_prose_line(self) -> None:
        item = _LIST_ITEM.match(self._line)
        if item is not None and (self._list or not self._is_indented()):
            self._list = len(item.group().expandtabs(_INDENTED))
        elif not self._is_paragraph and not self._line[:1].isspace():
            self._list = 0  # text at the margin, behind a blank line
        self._is_paragraph = self._is_paragraph or not self._is_indented()
