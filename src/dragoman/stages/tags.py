"""Text → thinking and text: reads the tags that models put around their thinking.

Tags count at the start of the message or after other thinking; elsewhere they are text. White space right inside and
behind them is markup. A closing tag without an opening one, outside code and quotation marks, shows that the text so
far was thinking.

Sources (read 2026-11): the chat templates of DeepSeek-R1 and Qwen3 (`<think>`), Seed-OSS (`<seed:think>`), Magistral
(`[THINK]`) and Command A (`<|START_THINKING|>`); OpenAI's harmony format (channels).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, Literal, TypeAlias, final

import msgspec

from dragoman.stages.rescue.code import Code

#: "end": the thinking is whole; "was": the text so far was thinking.
Found: TypeAlias = tuple[Literal["text", "thinking", "end", "was"], str]

#: Characters of text in which a lone closing tag is looked for.
WATCHED: Final = 400_000

_QUOTED: Final = re.compile(r"(?:^|[\s(\[{:=,])([\"'“‘«„])$")
_QUOTE_ENDS: Final = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "„": "“"}


@final
class Pair(msgspec.Struct, frozen=True):
    """Tags around thinking. `stops` end it too, and are read again as what follows it."""

    openers: tuple[str, ...]
    closers: tuple[str, ...]
    stops: tuple[str, ...] = ()


HARMONY: Final = Pair(
    ("<|channel|>analysis<|message|>", "<|start|>assistant<|channel|>analysis<|message|>"),
    ("<|end|>", "<|return|>"),
    ("<|start|>assistant", "<|channel|>"),
)
PAIRS: Final = (
    Pair(("<think>",), ("</think>",)),
    Pair(("<thinking>",), ("</thinking>",)),
    Pair(("<seed:think>",), ("</seed:think>",)),
    Pair(("[THINK]",), ("[/THINK]",)),
    Pair(("<|START_THINKING|>",), ("<|END_THINKING|>",)),
)
#: What opens harmony's text for the user, and what ends it.
_HARMONY_TEXT: Final = tuple(
    start + channel
    for start in ("", "<|start|>assistant")
    for channel in (
        "<|channel|>final<|message|>",
        "<|channel|>final <|constrain|>json<|message|>",
        "<|channel|>commentary<|message|>",
    )
)


class _Marks:
    """Some literals, looked for in text that comes in pieces."""

    __slots__ = ("_longest", "_partial", "first", "search")

    def __init__(self, literals: Iterable[str]) -> None:
        ordered = sorted(literals, key=len, reverse=True)
        self.search = re.compile("|".join(map(re.escape, ordered))).search
        marks = "".join(re.escape(mark) for mark in {literal[0] for literal in ordered})
        self.first = re.compile(f"[{marks}]").search
        self._longest = len(ordered[0])
        self._partial = frozenset(literal[:size] for literal in ordered for size in range(1, len(literal)))

    def half(self, text: str) -> int:
        """Characters at the end of the text with which one may have begun."""
        if self.first(text, max(0, len(text) - self._longest)) is None:
            return 0
        for size in range(min(self._longest - 1, len(text)), 0, -1):
            if text[-size:] in self._partial:
                return size
        return 0


class _Tags:
    """What is looked for, made of the pairs."""

    __slots__ = ("closers", "known", "pairs", "start")

    def __init__(self, pairs: tuple[Pair, ...]) -> None:
        self.pairs = pairs
        self.known = {opener: pair for pair in (*reversed(pairs), HARMONY) for opener in pair.openers}
        closers = [closer for pair in pairs for closer in pair.closers]
        self.closers = _Marks(closers)
        self.start = _Marks([*self.known, *closers, *_HARMONY_TEXT])


_KNOWN: Final = _Tags(PAIRS)


class _Watch:
    """Knows of the text so far whether a closing tag in it stands alone.

    Attributes:
        pieces: text that passed and was not looked at yet.
        size: characters that passed.
    """

    __slots__ = ("_code", "_last", "_unclosed", "pieces", "size")

    def __init__(self) -> None:
        self._code = Code()
        self.pieces: list[str] = []
        self.size = 0
        self._last = ""  # the characters before
        self._unclosed: set[Pair] = set()  # their opening tag stands in the text

    def is_alone(self, closer: str, following: str, pairs: Sequence[Pair]) -> bool | None:
        """Whether this closing tag, which comes next, closes nothing and stands in no code or quotation marks; None
        until a character is known to follow."""
        before = _QUOTED.search((self._last + "".join(self.pieces[-2:]))[-2:])
        if before is not None and not following:
            return None
        if before is not None and following[0] == _QUOTE_ENDS[before[1]]:
            return False
        text = "".join(self.pieces)
        self.pieces.clear()
        if not self._last and text.lstrip()[:1] == "{":
            self._unclosed.update(pairs)  # a JSON answer
        self._code.feed(text)
        self._last = (self._last + text)[-2:]
        pair = next(pair for pair in pairs if closer in pair.closers)
        if any(opener in text for opener in pair.openers):
            self._unclosed.add(pair)
        return pair not in self._unclosed and not self._code.is_inside()


class TagReader:
    """Reads the text of one part.

    Attributes:
        mode: "start": tags count here; "thinking": inside tags; "text": only a lone closing tag counts, or nothing.
        has_markup: a tag was read.
    """

    __slots__ = ("_closers", "_hold", "_inside", "_is_final", "_is_fresh", "_is_plain", "_known", "_pairs", "_space",
                 "_start", "_watch", "has_markup", "mode")  # fmt: skip

    def __init__(self, named: tuple[str, str] | None, *, opened: bool, watches: bool) -> None:
        """`named`: a pair beside the known ones. `opened`: the text begins inside tags. `watches`: a lone closing tag
        counts."""
        tags = _KNOWN if named is None else _Tags((Pair((named[0],), (named[1],)), *PAIRS))
        self._pairs, self._known, self._closers, self._start = tags.pairs, tags.known, tags.closers, tags.start
        self._inside = self._closers
        self._is_final = False  # in harmony's text
        self._is_plain = False  # nothing needs to be read but lone closing tags
        self._is_fresh = False  # white space that comes next is markup
        self._watch = _Watch() if watches and not opened else None
        self._hold = ""  # what may become a tag
        self._space: list[str] = []  # white space that may be markup
        self.has_markup = False
        self.mode: Literal["start", "thinking", "text"] = "thinking" if opened else "start"
        self._is_fresh = opened

    @property
    def is_done(self) -> bool:
        """Nothing can be found any more."""
        return self._is_plain and self._watch is None

    def passes(self, text: str) -> bool:
        """Whether the next text is text, and nothing needs to be read in it; then it is taken."""
        if not self._is_plain:
            return False
        watch = self._watch
        if watch is not None:
            if self._closers.first(text) is not None:
                return False
            watch.pieces.append(text)
            watch.size += len(text)
            if watch.size > WATCHED:
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
            else:
                text = self._read_text(text, out)
        self._is_plain = self.mode == "text" and not self._hold and not self._is_final
        return out

    def end(self) -> list[Found]:
        """The text ended."""
        out: list[Found] = []
        rest, self._hold = self._hold, ""
        space = "".join(self._space) if not self._is_fresh else ""
        self._space.clear()
        kind: Literal["text", "thinking"] = "thinking" if self.mode == "thinking" else "text"
        if space or rest:
            out.append((kind, space + rest))
        return out

    # ------------------------------------------------------------ where tags count

    def _read_start(self, text: str, out: list[Found]) -> str:
        bare = text.lstrip()
        if len(bare) < len(text):
            self._space.append(text[: len(text) - len(bare)])
        if not bare:
            return ""
        found = self._start.search(bare)
        if found is None or found.start():
            if self._start.half(bare) == len(bare):
                self._hold = bare
                return ""
            space = "" if self._is_fresh else "".join(self._space)
            self._space.clear()
            self.mode = "text"
            return space + bare
        self._space.clear()
        self.has_markup = self._is_fresh = True
        mark = found.group()
        if mark in _HARMONY_TEXT:
            self.mode, self._is_final, self._watch = "text", True, None
            self._inside = _Marks(HARMONY.closers)
        elif mark in self._known:
            self._enter(self._known[mark])
        else:
            self._watch = None  # a closing tag with no text before: the thinking was empty
        return bare[found.end() :]

    def _enter(self, pair: Pair) -> None:
        self.mode, self._watch, self._is_final = "thinking", None, False
        self._inside = _Marks(pair.closers + pair.stops)

    # ------------------------------------------------------------ inside

    def _read_thinking(self, text: str, out: list[Found]) -> str:
        if self._is_fresh:
            text = text.lstrip()
            opener = next((opener for opener in self._known if text.startswith(opener)), None)
            if opener is not None:  # quirk: the template has opened the tag, and the model opens it again
                self.has_markup = True
                self._enter(self._known[opener])
                return text[len(opener) :]
            if not text or any(opener.startswith(text) for opener in self._known):
                self._hold = text
                return ""
        found = self._inside.search(text)
        if found is not None:
            self._think(text[: found.start()].rstrip(), out)
            out.append(("end", ""))
            self._space.clear()
            self.mode, self.has_markup, self._is_fresh = "start", True, True
            return text[found.start() if found.group() in HARMONY.stops else found.end() :]
        size = len(text) - self._inside.half(text)
        self._hold = text[size:]
        sure = text[:size].rstrip()
        self._think(sure, out)
        if size > len(sure):
            self._space.append(text[len(sure) : size])
        return ""

    def _think(self, text: str, out: list[Found]) -> None:
        if text:
            out.append(("thinking", "".join(self._space) + text))
            self._space.clear()
            self._is_fresh = False

    # ------------------------------------------------------------ text

    def _read_text(self, text: str, out: list[Found]) -> str:
        if self._is_fresh:
            text = text.lstrip()
            self._is_fresh = not text
        if self._is_final:
            return self._read_final(text, out)
        while True:
            watch = self._watch
            found = self._closers.search(text) if watch is not None else None
            if watch is None or found is None:
                size = len(text) - self._closers.half(text) if watch is not None else len(text)
                self._hold = text[size:]
                self._pass(text[:size], out)
                return ""
            self._pass(text[: found.start()], out)
            closer, text = found.group(), text[found.start() :]
            alone = watch.is_alone(closer, text[len(closer) :], self._pairs)
            if alone is None:
                self._hold = text
                return ""
            if alone:
                out.append(("was", ""))
                self.mode, self.has_markup, self._is_fresh, self._watch = "start", True, True, None
                return text[len(closer) :]
            self._pass(closer, out)
            text = text[len(closer) :]

    def _read_final(self, text: str, out: list[Found]) -> str:
        found = self._inside.search(text)
        if found is not None:
            self._pass(text[: found.start()], out)
            self.mode, self._is_final = "start", False
            self._is_fresh = True
            return text[found.end() :]
        size = len(text) - self._inside.half(text)
        self._hold = text[size:]
        self._pass(text[:size], out)
        return ""

    def _pass(self, text: str, out: list[Found]) -> None:
        if text:
            out.append(("text", text))
            if self._watch is not None:
                self._watch.pieces.append(text)
                self._watch.size += len(text)
                if self._watch.size > WATCHED:
                    self._watch = None
