"""Split text into thinking and text.

Tags count at the start of the message or after other thinking; elsewhere they are text. White space right inside and
behind them is markup. A closing tag without an opening one, outside code and quotation marks, shows that the text so
far was thinking.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from dragoman.gathered import GatheredText
from dragoman.stages.thinking.pairs import EMPTY, PAIRS, TO_USER, Pair
from dragoman.stages.thinking.tags import (
    KNOWN,
    SHOWN_ENDS,
    STOPS,
    TEXTS,
    TURN_ENDS,
    UNMARKED,
    UNMARKED_END,
    UNMARKED_HELD,
    UNMARKED_NAME,
    Marks,
    Tags,
    Watch,
    may_be_unmarked,
)

#: Pieces of a held message in which its first word is looked at.
_FIRST_PIECES: Final = 50
#: Characters of closing tags that are held until it is known whether they end the message.
_RESIDUE: Final = 200
#: "end": the thinking is whole; "was": the text so far was thinking; "behind": what stood between it and the next text.
Found: TypeAlias = tuple[Literal["text", "thinking", "end", "was", "behind"], str]


class ThinkingScanner:
    """Reads the text of one part.

    Attributes:
        mode: "start": tags count here; "thinking": inside tags; "text": only a lone closing tag counts, or nothing;
            "unmarked": it may be harmony without its tokens, and is held until that is known.
        has_markup: a tag was read.
    """

    __slots__ = ("_closers", "_has_thought", "_hold", "_inside", "_is_final", "_is_fresh", "_is_plain", "_known",
                 "_lone", "_looks", "_pairs", "_space", "_start", "_watch", "has_markup", "mode")  # fmt: skip

    def __init__(self, named: tuple[str, str] | None, *, opened: bool, has_thought: bool = False) -> None:
        """Create it.

        Args:
            named: a pair beside the known ones.
            opened: the text begins inside tags.
            has_thought: thinking was told before it.
        """
        tags = KNOWN if named is None else Tags((Pair((named[0],), (named[1],)), *PAIRS))
        self._pairs, self._known, self._closers, self._start = tags.pairs, tags.known, tags.closers, tags.start
        self._inside = self._closers
        self._is_final = False  # in a text that a header opened
        self._is_plain = False  # nothing needs to be read but lone closing tags
        self._is_fresh = opened  # white space that comes next is markup
        self._watch: Watch | None = None if opened else Watch()
        self._has_thought = has_thought
        self._hold = ""  # what may become a tag
        self._space = GatheredText()  # white space that may be markup
        self._looks = 0  # pieces of a held message that were looked at
        self.has_markup = False
        self._lone = ""  # a lone closing tag, and what followed it that is no text
        self.mode: Literal["start", "thinking", "text", "unmarked"] = "thinking" if opened else "start"

    @property
    def is_done(self) -> bool:
        """Whether nothing can be found any more."""
        return self._is_plain and self._watch is None

    def passes(self, text: str) -> bool:
        """Return whether the next text is plain text; then take it."""
        if not self._is_plain:
            return False
        watch = self._watch
        if watch is not None:
            if self._closers.first(text) is not None:
                return False
            if not watch.add(text):
                self._watch = None
        return True

    def feed(self, text: str) -> list[Found]:
        """Take the next text."""
        out: list[Found] = []
        text, self._hold = self._hold + text, ""
        while text:
            if self.mode == "start":
                text = self._read_start(text, out)
            elif self.mode == "thinking":
                text = self._read_thinking(text, out)
            elif self.mode == "unmarked":
                text = self._read_unmarked(text, out)
            else:
                text = self._read_text(text, out)
        self._is_plain = self.mode == "text" and not (self._hold or self._is_final or self._is_fresh)
        return out

    def may_go_on(self) -> bool:
        """Return whether closing tags of thinking end the text: if more follows, it was thinking."""
        found = self._closers.pattern.search(self._hold) if self.mode == "text" and self._watch is not None else None
        return found is not None and found.group() not in EMPTY and self._is_residue(self._hold, found.group())

    def end(self, *, is_last: bool = True) -> list[Found]:
        """End the text. `is_last`: the message ends with it."""
        out: list[Found] = []
        if self.mode == "unmarked":  # it was text
            self._hold, self.mode = self._space.text() + self._hold, "text"
            self._space.clear()
            out += self.feed("")
        rest, self._hold = self._hold, ""
        if self.mode == "text" and self._watch is not None and rest and not self._watch.is_quoted():
            closed = self._closers.pattern.search(rest)
            closer = "" if closed is None else closed.group()
            if closer and self._watch.is_alone(EMPTY.get(closer, closer), "\n", self._pairs):  # its line ends with it
                if (is_last or closer in EMPTY) and self._is_residue(rest, closer):
                    rest = ""
                elif closer not in EMPTY:
                    out.append(("was", ""))
                    self._start_again()
                    return [*out, *self.feed(rest[len(closer) :]), *self.end()]
        space = self._space.text() if not self._is_fresh else ""
        self._space.clear()
        kind: Literal["text", "thinking"] = "thinking" if self.mode == "thinking" else "text"
        if space or rest:
            out.append((kind, space + rest))
        return out

    def _is_residue(self, text: str, closer: str) -> bool:
        """Return whether closing tags alone may end a message that has told its thinking: they show nothing."""
        while (found := self._closers.pattern.search(text)) and not text[: found.start()].strip():
            text = text[found.end() :]
        return (self.has_markup or self._has_thought or closer in EMPTY) and not text.strip()

    # ------------------------------------------------------------ where tags count

    def _read_start(self, text: str, out: list[Found]) -> str:
        bare = text.lstrip()
        if len(bare) < len(text):
            self._space.add(text[: len(text) - len(bare)])
        if not bare:
            return ""
        found = self._start.pattern.search(bare)
        if self._start.half(bare) == len(bare):
            self._hold = bare
            return ""
        if found is None or found.start() or (found.group() in TURN_ENDS and not self.has_markup):
            if not self.has_markup and may_be_unmarked(bare):
                self._hold = bare
                return ""
            if not self.has_markup and UNMARKED.match(bare):
                self.mode = "unmarked"
                return bare
            space = self._space.take()
            self.mode = "text"
            if self._is_fresh:
                if self._lone:
                    out.append(("behind", self._lone + space))
                self._lone = space = ""
            return space + bare
        space = self._space.take()
        self.has_markup = self._is_fresh = True
        mark = found.group()
        self._lone = f"{self._lone}{space}{mark}" if self._lone and mark not in self._known else ""
        if mark in TEXTS:
            self.mode, self._is_final, self._watch = "text", True, None
            self._inside = Marks(TEXTS[mark])
            if mark in TO_USER:
                out.append(("behind", mark))
        elif mark in self._known:
            self._enter(self._known[mark])
        # else a closing tag with no text before it: the thinking was empty
        return bare[found.end() :]

    def _start_again(self) -> None:
        """Begin again behind a closing tag."""
        self.mode, self.has_markup, self._is_fresh, self._is_final, self._watch = "start", True, True, False, Watch()

    def _enter(self, pair: Pair) -> None:
        self.mode, self._watch, self._is_final = "thinking", None, False
        self._inside = Marks(pair.closers + pair.stops)

    # ------------------------------------------------------------ inside

    def _read_thinking(self, text: str, out: list[Found]) -> str:
        if self._is_fresh:
            text = text.lstrip()
            if not text or any(opener.startswith(text) and opener != text for opener in self._known):
                self._hold = text
                return ""
            opener = next((opener for opener in self._known if text.startswith(opener)), None)
            if opener is not None:  # quirk: the template has opened the tag, and the model opens it again
                self.has_markup = True
                self._enter(self._known[opener])
                return text[len(opener) :]
        found = self._inside.pattern.search(text)
        if found is not None:
            self._think(text[: found.start()].rstrip(), out)
            out.append(("end", ""))
            self._space.clear()
            self._start_again()
            return text[found.start() if found.group() in STOPS else found.end() :]
        size = len(text) - self._inside.half(text)
        self._hold = text[size:]
        sure = text[:size].rstrip()
        self._think(sure, out)
        if size > len(sure):
            self._space.add(text[len(sure) : size])
        return ""

    def _think(self, text: str, out: list[Found]) -> None:
        if text:
            out.append(("thinking", self._space.text() + text))
            self._space.clear()
            self._is_fresh = False

    def _read_unmarked(self, text: str, out: list[Found]) -> str:
        """Read harmony's analysis without its tokens: hold it until its end comes, or its first word is one of code."""
        if self._looks < _FIRST_PIECES and UNMARKED_NAME.match((self._space.text() + text).lstrip()):
            self.mode = "text"
            text = self._space.text() + text
            self._space.clear()
            return text
        found = UNMARKED_END.search(text)
        if found is None:
            size = max(0, len(text) - UNMARKED_HELD)
            self._space.add(text[:size])
            self._looks += 1
            self._hold = text[size:]
            return ""
        self._looks = 0
        said = self._space.text() + text[: found.start()]
        self._space.clear()
        bare = said.lstrip()
        begun = UNMARKED.match(bare)
        assert begun is not None
        out += [("thinking", bare[begun.end() :].strip()), ("end", "")]
        self._start_again()
        self.mode, self._watch = "text", None
        is_final = found.group() == "assistantfinal"
        return text[found.end() if is_final else found.start() :]

    # ------------------------------------------------------------ text

    def _read_text(self, text: str, out: list[Found]) -> str:
        if self._is_fresh:
            text = text.lstrip()
            self._is_fresh = not text
        if self._is_final:
            return self._read_final(text, out)
        while True:
            watch = self._watch
            found = self._closers.pattern.search(text) if watch is not None else None
            if watch is None or found is None:
                size = len(text) - self._closers.half(text) if watch is not None else len(text)
                self._hold = text[size:]
                self._pass(text[:size], out)
                return ""
            self._pass(text[: found.start()], out)
            closer, text = found.group(), text[found.start() :]
            is_residue = len(text) < _RESIDUE and self._is_residue(text[: len(text) - self._closers.half(text)], closer)
            alone = (
                None if is_residue else closer not in EMPTY and watch.is_alone(closer, text[len(closer) :], self._pairs)
            )
            if alone is None:
                self._hold = text
                return ""
            if alone:
                out.append(("was", ""))
                self._start_again()
                self._lone = closer
                return text[len(closer) :]
            self._pass(closer, out)
            text = text[len(closer) :]

    def _read_final(self, text: str, out: list[Found]) -> str:
        found = self._inside.pattern.search(text)
        if found is not None:
            self._pass(text[: found.start()], out)
            if found.group() in SHOWN_ENDS:
                out.append(("end", ""))
            self._start_again()
            return text[found.start() if found.group() in STOPS else found.end() :]
        size = len(text) - self._inside.half(text)
        self._hold = text[size:]
        self._pass(text[:size], out)
        return ""

    def _pass(self, text: str, out: list[Found]) -> None:
        if text:
            out.append(("text", text))
            if self._watch is not None and not self._watch.add(text):
                self._watch = None
