"""Track where code begins and ends in running text, and what is quoted or shown, so that examples of calls stay text.

CommonMark 0.31: fences, indented blocks, inline code. `contexts.py` names all other places that show text.
"""

from __future__ import annotations

import re
from typing import Final

from dragoman.codec.patterns import rare_pattern
from dragoman.stages.rescue import contexts
from dragoman.stages.rescue.quoted import QUOTE_ENDS, closes_single, opens

#: What stands for a call in its line.
_CALL: Final = "\ufffc"
#: A sentence, as far as it has come: no marks of a call, nor what is left of them.
_WORDS: Final = rare_pattern(r"[^<>{}\[\]|｜=&/_\ufffc]*+")
_FENCE: Final = re.compile(r" {0,3}(`{3,}+|~{3,}+)([^\n]*+)$")
#: A run of backticks that may close inline code, and the end of its paragraph.
_INLINE_END: Final = rare_pattern(r"`+|\n[ \t\r]*\n")
#: Characters behind a marker in which such a run is looked for.
_INLINE_LIMIT: Final = 4096
#: What may follow a fence that stands behind words: its language.
_LANGUAGE: Final = rare_pattern(r"[\w+#.-]*+\s*+$")
#: What stands between those words and the fence, white space beside.
_WORDS_END: Final = tuple(".:!?。：！？")
_LIST_ITEM: Final = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])(?: {1,4}|\t)(?=\S)")
#: The same, up to where its text begins, tags around that passed over.
_ITEM_BEGUN: Final = rare_pattern(r"\s*(?:[-*+•]|\d{1,9}[.)])[ \t]{1,4}(?:<[^<>]{1,80}>[ \t]{0,4}){0,3}$")
_TAGS_ONLY: Final = rare_pattern(r"\s*(?:<[^<>]*>\s*)*$")
#: A quotation mark that opens, right before what comes next.
_QUOTED: Final = rare_pattern(r"(?:^|[\s(\[{:=,\u2e80-\uffef])(?:[fFrRbBuU]{1,2}(?=[\"']))?([\"'“‘«„‹])$|([「『《])$")
#: What shows the rest of its line as it is, or the marker behind it: LaTeX, and Markdown's backslash.
_LITERAL: Final = rare_pattern(r"\\(?:verb\*?[^\w\s]|(?:texttt|lstinline|detokenize)[{|!+])?$")
#: Characters of a line in which both are looked for.
_LAST: Final = 12
#: What closes a quotation that lasts to the end of its line.
_NOTHING: Final = "none"
_MOST_WAITING: Final = 32
#: Characters of a text that is read at once: so many long ones would keep the whole answer in memory.
_LONG: Final = 128
#: Characters of a line that are kept: what follows tells nothing of a fence.
_KEPT: Final = 1024
_INDENTED: Final = 4
_FENCE_RUN: Final = 3


class Code:
    """Follows text as it passes."""

    __slots__ = (
        "_announced", "_carry", "_closed", "_closing", "_depth", "_fence", "_has_call", "_inline", "_is_asked",
        "_is_attribute", "_is_behind", "_is_blank", "_is_block", "_is_listing", "_is_paragraph", "_is_quoted",
        "_is_within", "_kind", "_last", "_line", "_list", "_quote", "_run", "_shown", "_shown_at", "_waiting",
    )  # fmt: skip

    def __init__(self) -> None:
        self._fence = ""  # the run that opened a fence
        self._is_behind = False  # it stood behind words
        self._closing = ""  # what closes the block that is open, as `contexts.block_end` tells it
        self._announced = -1  # how far in the line stands that says that those further in are text
        self._is_listing = False  # the line before says that a listing follows
        self._inline = 0  # backticks that opened inline code
        self._run = 0  # backticks at the very end, which may go on
        self._shown = ""  # the context that is open: an element's name, a comment, a turn, what closes a result
        self._shown_at = 0  # characters of the line up to where it opened
        self._depth = 0  # elements of its name in it
        self._is_block = False  # no blank line ends it
        self._is_quoted = False  # it opened in a quotation of its line, and may be no more than named
        self._is_within = False  # the line began in a context
        self._is_asked = False  # a line that began with who asks came before
        self._kind = ""  # what the lines before are: rows of a table, a diff
        self._quote = ""  # what closes the quotation that is open on this line
        self._has_call = False  # which holds a call, so that it goes on in the next line
        self._is_attribute = False  # it is typographic, and began behind an equals sign
        self._line = ""  # how the line begins
        self._closed = [0, 0]  # where the last text in quotation marks ends in it, and where to look for the next one
        self._last = ""  # and its last characters
        self._carry = ""  # the beginning of a tag, perhaps
        self._is_blank = True  # only white space on the line so far
        self._is_paragraph = False  # the line before may go on in this one
        self._list = 0  # where the text of the list item begins that this line may belong to
        self._waiting: list[str] = []  # passed and not read: nobody asked since

    def feed(self, text: str) -> None:
        """Take text that passes."""
        self._waiting.append(text)
        if len(self._waiting) >= _MOST_WAITING or len(text) > _LONG:
            self._read()

    def skip_call(self) -> None:
        """Record that a call stood here, whose text is not fed: what follows it begins no line."""
        self._read()
        self._is_blank = False
        if self._line[-1:] != _CALL:  # it is told once for each piece of it
            self._line = (self._line + _CALL)[:_KEPT]

    def end_call(self, marker: str) -> None:
        """End the call with the last marker of what belongs to it, which may begin another speaker's turn."""
        if (turn := contexts.opened_by(marker)) in contexts.TURNS:
            self._show(turn, is_block=True)

    def set_quote(self, closing: str) -> None:
        """Record that a call was fed which stood in quotation marks: this one closes them, on a later line perhaps."""
        self._read()
        self._quote, self._has_call = closing, closing != _NOTHING

    def end_of_inline(self, text: str, *, is_ended: bool) -> int | None:
        """Return where in the text that follows the inline code around it ends; 0 if there is none, None while that is
        unknown.
        """
        size = self.inline()
        if not size:
            return 0
        for found in _INLINE_END.finditer(text):
            is_run = found.group()[0] == "`"
            if is_run and found.end() == len(text) and not is_ended:
                return None  # it may go on
            if is_run and found.end() - found.start() == size:
                return int(found.end())
            if not is_run:
                break
        else:
            # What ended may have been cut: the other run would have come.
            return None if len(text) < _INLINE_LIMIT and not is_ended else len(text)
        self.drop_inline()
        return 0

    def drop_inline(self) -> None:
        """Treat the open backticks as text: they close nothing."""
        self._read()
        self._inline = self._run = 0

    def is_inside(self) -> bool:
        """Return whether what comes next stands in code, or behind backticks that may begin some."""
        return self.is_block() or self.inline() > 0

    def is_block(self) -> bool:
        """Return whether what comes next stands in a fence, an indented block, or in a context that shows text."""
        self._read()
        return bool(
            (not self._is_behind_fence() if self._fence else self._fence_begun())
            or self._closing
            or self._shown
            or self._is_indented()
            or contexts.is_shown_line(self._line, self._kind)
            or (self._carry and contexts.opened_by(self._carry) in contexts.TURNS)
            or contexts.turn_of(self._line, is_asked=self._is_asked)
        )

    def inline(self) -> int:
        """Return how many backticks opened the inline code around what comes next, if as many close it; else 0."""
        self._read()
        return self._inline_now()

    def quote(self) -> str:
        """Return what closes the quotation that is open on this line, or right before what comes next; else "".

        Nothing that is written closes what a log tells.
        """
        self._read()
        behind = _QUOTED.search(self._last)
        quote = self._open_quote() or (QUOTE_ENDS[behind[1] or behind[2]] if behind is not None else "")
        if not quote and "'" in self._line:
            mark, *self._closed = contexts.open_text(self._line, *self._closed)
            if mark == "'":
                return mark
        is_literal = _LITERAL.search(self._last) is not None or contexts.is_logged(self._line)
        return quote or (_NOTHING if is_literal else "")

    def _open_quote(self) -> str:
        """Return what closes the quotation that is open; a single mark at the end of what came has."""
        return "" if closes_single(f"{self._last[-1:]} ", self._quote) else self._quote

    def is_attribute(self) -> bool:
        """Return whether the open quotation is a typographic value of an attribute, as in `<a name=“b“>`."""
        return self._quote != "" and self._is_attribute

    def is_line_start(self) -> bool:
        """Return whether only white space stands before, on this line."""
        self._read()
        return self._is_blank

    def is_within(self) -> bool:
        """Return whether something else stands before, on this line, or a quotation is open."""
        self._read()
        return not self._is_blank or self._quote != ""

    def last_word(self) -> str:
        """Return the end of what stands before, on this line, without white space; calls are none of it."""
        self._read()
        return self._last.strip()

    def is_behind_space(self) -> bool:
        """Return whether white space of its line, and words before that, stand right before what comes next."""
        return not self.is_line_start() and self._last[-1:] in (" ", "\t")

    def is_in_words(self) -> bool:
        """Return whether words alone stand before what comes next, on its line, and white space right before it."""
        return self.is_behind_space() and len(self._line) < _KEPT and _WORDS.fullmatch(self._line) is not None

    def is_item_start(self) -> bool:
        """Return whether what comes next begins an item of a list."""
        self._read()
        return not self._is_blank and _ITEM_BEGUN.match(self._line) is not None

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
        """Take more of the line."""
        if not text:
            return
        if len(self._line) < _KEPT:
            self._line += text[: _KEPT - len(self._line)]
        self._is_blank = self._is_blank and text.isspace()
        text, before, self._carry = self._carry + text, self._last, ""
        self._last = (before + text[-_LAST:])[-_LAST:]
        if self._quote and closes_single(before[-1:] + text, self._quote):
            self._quote = ""
        if self._fence or self._closing:
            return
        if self._shown == contexts.SECTION_END and contexts.SECTION_END in before[-2:] + text[:2]:
            self._hide()
        position = 0
        self._carry = contexts.begun(text)
        end = len(text) - len(self._carry)
        while (mark := contexts.MARK.search(text, position, end)) is not None:
            if mark.start() > position or mark.lastgroup != "ticks":
                self._end_run()
            # attributes of a tag that shows nothing may come later than its name
            position = mark.end("name") if mark["name"] and not contexts.shown_by(mark["name"]) else mark.end()
            self._mark(mark, (before[-4:] + text[max(mark.start() - 4, 0) : mark.start()])[-4:])
        if position < len(text):
            self._end_run()

    def _mark(self, mark: re.Match[str], before: str) -> None:
        kind, written = mark.lastgroup, mark.group()
        if kind == "ticks":
            if not self._shown or (len(written) < _FENCE_RUN and contexts.nests(self._shown)):
                self._run += len(written)
        elif kind == "quote":
            self._quotation_mark(written, before)
        elif not self._inline or (kind == "end" and not self._line[: self._line.rfind(written)].strip()):
            self._context(mark, kind or "")

    def _quotation_mark(self, mark: str, before: str) -> None:
        if self._quote:
            if mark == self._quote or (self._quote == "“" and mark == "”"):
                self._quote = ""
                if self._is_quoted:
                    self._hide()  # a tag in quotation marks is a name
        elif opens(before, mark):
            self._has_call = False
            self._quote, self._is_attribute = QUOTE_ENDS[mark], before[-1:] == "=" and mark != '"'

    # ------------------------------------------------------------ contexts

    def _context(self, mark: re.Match[str], kind: str) -> None:
        """Take a mark of a context: it opens one, or ends the open one."""
        written = mark.group()
        if kind == "begin":
            name = contexts.shown_by(mark["name"])
            if not name or written.endswith("/>"):
                return
            if self._shown == name and contexts.nests(name):
                self._depth += 1
            elif not self._shown or (name == "pre" and self._shown == "code"):
                at = self._line.rfind(written) if len(self._line) < _KEPT else -1
                is_block = at >= 0 and _TAGS_ONLY.match(self._line[:at]) is not None
                if contexts.shows_on_a_line(name) and not is_block:
                    return
                self._show(name, is_block=is_block)
                self._shown_at = at + len(written)
        elif kind == "end":
            if self._shown == mark["end_name"].lower():
                self._depth -= 1
                if self._depth < 0:
                    self._hide()
        elif kind == "comment":
            if not self._shown:
                self._show(contexts.COMMENT if written == "<!--" else contexts.SECTION_END, is_block=True)
        elif kind == "comment_end":
            if self._shown == (contexts.COMMENT if written[0] == "-" else contexts.SECTION_END):
                self._hide()
        elif opened := contexts.opened_by(written):
            if not self._shown:
                before = self._line[: max(self._line.rfind(written), 0)]
                self._show(opened, is_block=not (before.strip() and contexts.is_named_too(written)))
        elif self._shown == (contexts.TURN if contexts.ends_turn(written) else written):
            self._hide()

    def _show(self, name: str, *, is_block: bool) -> None:
        self._shown, self._is_block, self._depth, self._shown_at = name, is_block, 0, -1
        self._is_quoted = bool(self._quote)

    def _hide(self) -> None:
        self._shown, self._is_quoted = "", False

    def _end_run(self) -> None:
        self._inline, self._run = self._inline_now(), 0

    def _inline_now(self) -> int:
        """Return the backticks of the open inline code, those at the end included."""
        if not self._run:
            return self._inline
        return self._run if not self._inline else 0 if self._run == self._inline else self._inline

    def _is_indented(self) -> bool:
        """Return whether the line, as far as it has come, stands in an indented block, or in an announced one."""
        if self._is_announced():
            return True
        if self._is_paragraph or not self._line[:1].isspace():
            return False
        line = self._line.expandtabs(_INDENTED)
        return len(line) - len(line.lstrip()) >= _INDENTED + self._list

    def _is_announced(self) -> bool:
        """Return whether the line is indented deeper than one that announces such lines as text."""
        return 0 <= self._announced < len(self._line) - len(self._line.lstrip())

    def _fence_begun(self) -> re.Match[str] | None:
        """Return the line as the opening of a fence, if it is one so far."""
        line = self._line
        if self._is_within or self._is_announced() or (self._kind and contexts.is_shown_line(line, self._kind)):
            return None
        if self._list and line[: self._list].isspace():
            line = line[self._list :]
        found = _FENCE.match(line)
        return found if found is not None and not (found[1][0] == "`" and "`" in found[2]) else None

    def _fence_behind(self) -> str:
        """Return the backticks that open a fence behind words at the line's end, closing nothing and followed by a
        language, or "".
        """
        if self._inline < _FENCE_RUN or self._is_within or len(self._line) == _KEPT:
            return ""
        if contexts.is_shown_line(self._line, self._kind):
            return ""
        end = self._line.rfind("`") + 1
        words = self._line[:end].rstrip("`")
        is_fence = end - len(words) == self._inline and _LANGUAGE.match(self._line, end) is not None
        return "`" * self._inline if is_fence and (words[-1:].isspace() or words.endswith(_WORDS_END)) else ""

    def _is_behind_fence(self) -> bool:
        """Return whether the fence ended on this line, as inline code does: it stood behind words, and no quotation
        mark stands before the backticks.
        """
        before, run, _ = self._line.partition(self._fence)
        return self._is_behind and run != "" and '"' not in before and "'" not in before

    def _is_fence_end(self, begun: re.Match[str] | None) -> bool:
        """Return whether the line ends the fence. `begun`: the line as an opening of one.

        Backticks anywhere end a fence that stood behind words, as they end inline code.
        """
        if self._is_behind and self._fence in self._line:
            return True
        run = begun[1] if begun is not None and not begun[2].strip() else ""
        return run[:1] == self._fence[0] and len(run) >= len(self._fence)

    def _end_block_line(self) -> bool:
        """Take a line of a block that another line closes, or one that opens such a block."""
        if self._closing:
            is_end = self._closing[1:] in self._line if self._closing[0] == " " else self._line.strip() == self._closing
            is_end = is_end or (self._is_blank and self._closing in (" '", ' "'))  # a quotation ends with its paragraph
            self._closing = "" if is_end else self._closing
            return True
        if self._fence or self._shown or self._inline or self._is_indented():
            return False
        self._closing = contexts.block_end(self._line, is_listing=self._is_listing, is_paragraph=self._is_paragraph)
        self._is_listing = contexts.has_attributes(self._line)
        if not self._is_blank:
            self._announced = len(self._line) - len(self._line.lstrip()) if contexts.announces(self._line) else -1
        return bool(self._closing)

    def _end_line(self) -> None:
        self._end_run()
        self._end_context_line()
        found = self._fence_begun()
        if self._end_block_line():
            self._inline, self._is_paragraph = 0, False
        elif self._fence:
            self._inline = 0
            if self._is_fence_end(found):
                self._fence = ""
            self._is_paragraph = False
        elif opened := found[1] if found is not None else self._fence_behind():
            self._fence, self._inline, self._is_paragraph = opened, 0, False
            self._is_behind = found is None
        elif self._is_blank:
            self._inline = 0  # inline code ends with its paragraph
            self._is_paragraph = False
            if not self._is_block:
                self._hide()
        else:
            self._end_prose_line()
        self._quote = self._open_quote() if self._has_call and not self._is_blank else ""
        self._line, self._closed, self._last, self._carry, self._is_blank = "", [0, 0], "", "", True
        self._is_within = bool(self._shown)

    def _end_context_line(self) -> None:
        """End the line: a context may open there, or stay open.

        Examples are a tag that goes on in the next line, one at its line's end, one in unclosed quotation marks.
        """
        if self._fence:
            return
        if self._carry and not self._shown and (name := contexts.opened_by(self._carry)):
            self._show(name, is_block=True)
        if self._shown and not self._is_block and self._shown_at >= 0:
            self._is_block = not self._line[self._shown_at :].strip()
        if not self._shown and contexts.begins_comment(self._line):
            self._show(contexts.COMMENT_END, is_block=True)
        if self._shown == contexts.COMMENT_END and contexts.COMMENT_END in self._line:
            self._hide()
        is_said = self._shown in ("", contexts.TURN) and not self._closing
        if is_said and (turn := contexts.turn_of(self._line, is_asked=self._is_asked)):
            self._is_asked = True
            self._show(turn, is_block=turn == contexts.ASKED or self._is_block)
        if self._shown:
            self._inline = 0
        self._is_quoted, self._shown_at = False, -1
        self._kind = contexts.kind_behind(self._line, self._kind)

    def _end_prose_line(self) -> None:
        item = _LIST_ITEM.match(self._line)
        if item is not None and (self._list or not self._is_indented()):
            self._list = len(item.group().expandtabs(_INDENTED))
        elif not self._is_paragraph and not self._line[:1].isspace():
            self._list = 0  # text at the margin, behind a blank line
        self._is_paragraph = self._is_paragraph or not self._is_indented()
