"""The interface of a family's parser: a generator over a `Cursor` that asks for more text and reports what it found.

It yields `MORE` to get text that has not come, and actions when it knows something: `Open(name)`, `Piece(text)` of the
arguments, `Close(by)` with what closed the call. It raises `NotACall` for text that is none of its calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import Final, Literal, TypeAlias, final

import msgspec

from dragoman.gathered import GatheredText
from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.quoted import Begun, first_of, is_shown
from dragoman.stages.rescue.stop_tokens import OWN_TURNS, STOP_TOKENS


@final
class More:
    """More text is needed."""


@final
class Open(msgspec.Struct, frozen=True, gc=False):
    """A call of this tool begins. `id`: as the text has it; `in_tags`: its values stand in tags.

    Its runner sets `family` and `is_item`: it is an item of a list.
    """

    name: str
    id: str = ""
    in_tags: bool = False
    family: str = ""
    is_item: bool = False


@final
class Piece(msgspec.Struct, frozen=True, gc=False):
    """More of the open call's argument text (JSON)."""

    text: str


@final
class Close(msgspec.Struct, frozen=True, gc=False):
    """The open call ends.

    Attributes:
        by: the closing marker that was read whole, its own or its wrapper's; `BODY`: its brackets; "": nothing did.
        problem: why it cannot be read.
        is_proven: it cannot have been cut. Set by the scanner.
        passed: what was skipped with it: from a call in one of its values on, a brace too many, `WRITTEN`, `UNCLOSED`.
    """

    by: str
    problem: str = ""
    is_proven: bool = True
    passed: str = ""

    @property
    def is_cut(self) -> bool:
        """Whether its text ended before its own end."""
        return not self.by and not self.problem

    def is_whole(self) -> bool:
        """Return whether the call can be delivered as far as its family knows."""
        return bool(self.by) and not self.problem


class NotACall(Exception):
    """The text behind the marker is not a call of this family."""


MORE: Final = More()
BODY: Final = "body"  # the arguments' own brackets (JSON, Python) closed a call, its marker is still to come
Action: TypeAlias = More | Begun | Open | Piece | Close
Parser: TypeAlias = Generator[Action, None, None]

_OUTSIDE: Final = re.compile(r'["{}\[\]<]')
_INSIDE: Final = re.compile(r'["\\]')
_SPACE: Final = re.compile(r"\s*")
_NAME_LIMIT: Final = 200
_MOST_SHOWN: Final = 160  # characters of an object in which it is seen that it shows one
_MOST_LEFT: Final = 400  # characters of a call that cannot be read, before its closing marker
_SPACE_LIMIT: Final = 1000  # before a closing tag; more is none of the markup
#: What `closing` passes over that shows of no call that it was not cut: it may stand in a list that was.
_PUNCTUATION: Final = frozenset({"]", ")", "}", ",", ";", "```"})


class Cursor:
    """The text behind a marker, as far as it has come. Read text is dropped; from a mark on it is kept.

    Attributes:
        ended: no more text comes.
        marker: the last literal that was read whole.
        is_sealed: a marker closed the last call, or came behind its body, which closed itself.
        is_broken: the last call cannot be read, and its closing marker may still come.
        names_other: the last call names a tool that was not offered, so that words behind its name make it none.
        stops: markers that end a JSON value with unclosed brackets, set by families that have such.
    """

    __slots__ = (
        "_kept", "_mark", "_position", "_text", "ended", "is_broken", "is_sealed", "marker", "names_other", "stops",
    )  # fmt: skip

    def __init__(self, text: str = "") -> None:
        self._text, self._position = text, 0
        self._mark = -1  # where in the text the mark stands
        self._kept = GatheredText()  # what was read since the mark and is not in the text any more
        self.ended, self.marker = False, ""
        self.is_broken = self.is_sealed = self.names_other = False
        self.stops: tuple[str, ...] = ()

    def append(self, text: str) -> None:
        """Append text that has come."""
        start = max(self._position - 1, 0)  # of what was read, the last character stays
        if self._mark >= 0:
            self._kept.add(self._text[self._mark : self._position])
            self._mark = self._position - start
        self._text, self._position = self._text[start:] + text, self._position - start

    def mark(self) -> None:
        """Set a mark to which `rewind` returns."""
        self._kept.clear()
        self._mark = self._position

    def unmark(self) -> None:
        """Remove the mark."""
        self._kept.clear()
        self._mark = -1

    def rewind(self) -> None:
        """Return to the mark."""
        self._text, self._position = self._kept.text() + self._text[self._mark :], 0
        self.mark()
        self.is_sealed = False

    def passed(self) -> str:
        """Return what was read since the mark."""
        return self._kept.text() + self._text[max(self._mark, 0) : self._position]

    def last(self) -> str:
        """Return the last character that was read."""
        return self._text[max(self._position - 1, 0) : self._position]

    def rest(self) -> str:
        """Return what has come and was not read."""
        return self._text[self._position :]

    def finds(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Return what a pattern finds in what has come, right here. Nothing is skipped."""
        return pattern.match(self._text, self._position)

    def skip(self, count: int) -> None:
        """Skip characters that were seen in `rest`."""
        self._position += count

    # Each of these is used with `yield from`.

    def space(self) -> Generator[Action, None, str]:
        """Skip white space and return it."""
        if self._text[self._position : self._position + 1].strip():
            return ""
        seen = ""
        while True:
            found = _SPACE.match(self._text, self._position)
            assert found is not None
            seen += found.group()
            self._position = found.end()
            if self._position < len(self._text) or self.ended:
                return seen
            yield MORE

    def peek(self, count: int = 1) -> Generator[Action, None, str]:
        """Return the next characters, fewer only at the end of the text."""
        while len(self._text) - self._position < count and not self.ended:
            yield MORE
        return self._text[self._position : self._position + count]

    def take(self, *literals: str) -> Generator[Action, None, str]:
        """Skip the one of these that comes next and return it, or "". Longer ones are tried first."""
        while True:
            rest = self._text[self._position : self._position + 64]
            literal, is_sure = first_of(rest, literals)
            if is_sure or self.ended:
                self._position += len(literal)
                self.marker = literal or self.marker
                return literal
            yield MORE

    def closing(self, *literals: str) -> Generator[Action, None, str]:
        """As `take` behind white space, which is skipped only with the literal.

        If the text ends with the beginning of one, that is skipped too and "" returned: half a marker closes nothing,
        and is no text.
        """
        while True:
            rest = self.rest()
            bare = rest.lstrip()
            if len(rest) - len(bare) > _SPACE_LIMIT:
                return ""
            literal, is_sure = first_of(bare, literals)
            if literal and (is_sure or self.ended):
                self._position += len(rest) - len(bare) + len(literal)
                self.marker = literal
                self.is_sealed = self.is_sealed or literal not in _PUNCTUATION
                return literal
            if is_sure:
                return ""
            if self.ended:
                self._position += len(rest) if bare else 0
                return ""
            yield MORE

    def sees(self, *literals: str) -> Generator[Action, None, bool]:
        """Return whether one of these comes next behind white space. Nothing is skipped."""
        while True:
            rest = self.rest()
            bare = rest.lstrip()
            literal, is_sure = first_of(bare, literals)
            if literal or is_sure or self.ended or len(rest) > len(bare) + _SPACE_LIMIT:
                return bool(literal) and len(rest) <= len(bare) + _SPACE_LIMIT
            yield MORE

    def expect(self, *literals: str) -> Generator[Action, None, str]:
        """As `closing`; anything else is no call."""
        if not (found := (yield from self.take(*literals))):
            raise NotACall
        return found

    def word(self, pattern: re.Pattern[str], limit: int = _NAME_LIMIT) -> Generator[Action, None, str]:
        """Read characters of a class; too many are no call."""
        seen = ""
        while True:
            found = pattern.match(self._text, self._position, self._position + limit + 1 - len(seen))
            if found is not None:
                seen += found.group()
                self._position = found.end()
            if len(seen) > limit:
                raise NotACall
            if self._position < len(self._text) or self.ended:
                return seen
            yield MORE

    def until(self, *stops: str) -> Generator[Action, None, tuple[str, str]]:
        """Read text up to the first of these. Return it and which one; ("…", "") if the text ends first."""
        pieces = GatheredText()
        longest = max(map(len, stops))
        while True:
            rest = self._text[self._position :]
            places = [(rest.find(stop), -len(stop), stop) for stop in stops if stop in rest]
            if places:
                place, _, stop = min(places)
                self._position += place + len(stop)
                self.marker = stop
                return pieces.text() + rest[:place], stop
            if self.ended:
                self._position = len(self._text)
                return pieces.text() + rest, ""
            sure = len(rest) - longest + 1
            if sure > 0:
                pieces.add(rest[:sure])
                self._position += sure
            yield MORE

    def leave(self, closing: str, openers: tuple[str, ...]) -> Generator[Action, None, None]:
        """Skip the rest of an unreadable call, up to a tag that begins so, or a stop; nothing if other text comes
        first.
        """
        closers = {closing, *self.stops}.difference(openers)
        while True:
            rest = self.rest()[:_MOST_LEFT]
            paragraph = _BLANK_LINE.split(rest, maxsplit=1)[0]
            marks = ((paragraph.find(one), one) for one in (*closers, *openers) if one in paragraph)
            place, mark = min(marks, default=(-1, ""))
            if mark or self.ended or len(paragraph) < len(rest) or len(rest) == _MOST_LEFT:
                break
            yield MORE
        if mark not in closers:
            return
        self.skip(place)
        while mark := (yield from self.closing(*closers)):
            if mark[-1] not in "]>":
                yield from self.until(">")

    def object_begins(self) -> Generator[Action, None, bool]:
        """Return whether a JSON object begins here that shows no placeholder: a brace and a key or its end, or the
        text's end.
        """
        while True:
            rest = self.rest()
            shown = is_shown(rest[:_MOST_SHOWN], is_ended=self.ended)
            if _OBJECT.match(rest) and shown is not None:
                return not shown
            if shown is not None and _OBJECT_BEGUN.fullmatch(rest) is None:
                return False
            if self.ended:
                return True
            yield MORE

    def json(self) -> Generator[Action, None, str]:
        """Read one JSON value by its brackets and quotes only (it may need repair); cut if the text ends first."""
        pieces = GatheredText()
        values = self.json_pieces()
        while True:
            try:
                action = next(values)
            except StopIteration:
                return pieces.text()
            if isinstance(action, Piece):
                pieces.add(action.text)
            else:
                yield action

    def json_pieces(self) -> Generator[Action, None, bool]:
        """As `json`, but yield `Piece`s as they come. Return whether it was complete."""
        first = yield from self.peek()
        if first not in ("{", "[", '"'):
            word = yield from self.word(_SCALAR)
            if word:
                yield Piece(word)
            return bool(word)
        depth, in_string, escaped = 0, False, False
        while True:
            text, start = self._text, self._position
            position, is_stopped = start, False
            if escaped and position < len(text):
                escaped = False
                position += 1
            while (found := (_INSIDE if in_string else _OUTSIDE).search(text, position)) is not None:
                mark, position = found.group(), found.end()
                if mark == '"':
                    in_string = not in_string
                elif mark == "\\":
                    escaped = position == len(text)
                    position += 1
                elif self._may_stop(found.start()):
                    position, is_stopped = found.start(), True
                    break
                elif mark != "<":
                    depth += 1 if mark in "{[" else -1
                if depth <= 0 and not in_string:
                    self._position = position
                    yield Piece(text[start:position])
                    return True
            self._position = end = position if is_stopped else len(text)
            if end > start:
                yield Piece(text[start:end])
            if self.ended or (is_stopped and any(text.startswith(stop, end) for stop in self.stops)):
                return False
            yield MORE

    def _may_stop(self, place: int) -> bool:
        """Return whether one of the stops begins here, as far as its text has come."""
        rest = self._text[place : place + 64]
        return any(rest.startswith(stop) or stop.startswith(rest) for stop in self.stops)


_BLANK_LINE: Final = re.compile(r"\n[ \t\r]*\n")
_OBJECT: Final = re.compile(r"\{\s{0,1000}[\"'“„‘«}\w]")
_OBJECT_BEGUN: Final = re.compile(r"(?:\{\s{0,1000})?")
_SCALAR: Final = re.compile(r"[^\s,}\]]+")


@final
class Family(msgspec.Struct, frozen=True, eq=False):
    """A format in which models write tool calls as text.

    Attributes:
        openers: what begins it.
        where: "anywhere" outside code, "line" at the start of a line, or "message": only as the whole message whose
            arguments fit the schema.
        named: a tool's name stands before it.
        followed_by: what must stand behind the name and its opener, and is read with the arguments.
        prompted: a marker that the prompt may have written, and what stands before and behind the name that follows it.
        is_code: code is written so too, which calls other functions beside.
        residue: what may stand behind its calls, each twice, the tokens at which models stop and begin among them.
        value_ends: what ends an argument between tags.
        quotes: what stands before and behind its texts.
        line_openers: those that count at a line's start alone.
        source: a page.
    """

    name: str
    openers: tuple[str, ...]
    parse: Callable[[Cursor, Tools, str], Parser]
    source: str
    where: Literal["anywhere", "line", "message"] = "anywhere"
    named: bool = False
    followed_by: tuple[str, ...] = ("",)
    prompted: tuple[str, str, str] | None = None
    is_code: bool = False
    residue: tuple[str, ...] = ()
    line_openers: tuple[str, ...] = ()
    value_ends: tuple[str, ...] = ()
    quotes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Add the tokens at which models stop, and begin again, to what may stand behind calls."""
        residue = dict.fromkeys((*self.residue, *STOP_TOKENS, *OWN_TURNS))
        msgspec.structs.force_setattr(self, "residue", tuple(residue))

    def read(self, cursor: Cursor, tools: Tools, opener: str) -> Parser:
        """Parse its calls from behind the opener on. A marker may stand there twice."""
        if self.where == "anywhere" and opener[0] == "<" and opener[-1] == ">":
            yield from cursor.closing(opener)
        yield from self.parse(cursor, tools, opener)

    def residue_behind(self, cursor: Cursor) -> Parser:
        """Skip what may stand behind its calls."""
        for _ in range(2 * len(self.residue)):
            if not (yield from cursor.closing(*self.residue)):
                return
