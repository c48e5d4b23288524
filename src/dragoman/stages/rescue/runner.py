"""One family reading one candidate: what it found, and whether each call was whole.

A call that its own brackets close may have closed too early: `{"command": "ls"}, "timeout": 5}`. So what stands between
them and its end must be what its family has there: white space, separators, closings, other calls. Words may follow on
a line of their own, or behind a blank up to the end of the line. Anything else may be the rest of its arguments: it has
two readings and fails.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias, final

import msgspec

from dragoman.gathered import GatheredRuns
from dragoman.stages.rescue.cursor import (
    BODY,
    MORE,
    Close,
    Cursor,
    Family,
    NotACall,
    Open,
    Parser,
    Piece,
    Tools,
)
from dragoman.stages.rescue.json_calls import CALL_BEGINS
from dragoman.stages.rescue.markers import Markers
from dragoman.stages.rescue.quoted import closing_of

#: What stands between calls; at the end of a text it belongs to them.
_BETWEEN: Final = " \t\r\n,;"


@final
class Prose(msgspec.Struct, frozen=True, gc=False):
    """Text that is no call. `tag`: one of values with which it ends."""

    text: str
    tag: str = ""


#: What a scanner finds, in order. Between an `Open` and its `Close` there are only `Piece`s.
Found: TypeAlias = Prose | Open | Piece | Close
#: Why a call is refused that stands behind tags of values of its family.
MOVED: Final = "an argument of it, or a part of one, stands before it"
#: Why a call is refused behind whose brackets something stands that may be of it.
GOES_ON: Final = "what stands behind its brackets may be the rest of its arguments: two readings"
#: Closing tags and tokens, of whatever family, and how they begin.
_CLOSINGS: Final = re.compile(r"(?:\s*+(?:</[^<>\s]{1,80}+>|<[|｜][^<>\"\n]{1,80}+>|```))++")
_CLOSING_BEGUN: Final = re.compile(r"\s*+(?:<(?:/[^<>\s]{0,80}|[|｜][^<>\"\n]{0,80})?|`{1,2})?")
_SEPARATORS: Final = re.compile(r"[\s,;]*+")
#: At the beginning of a line, what no words begin with, and a key of an argument, or what may become one of these.
_NO_WORDS: Final = re.compile(r"[,;:=\"'“”{}\])]|\[\s{0,8}[\"'{\d]")
#: A line of words behind a call, of which no quotation mark, bracket or key makes arguments, and how it begins.
_WORDS: Final = re.compile(r"[^\W\d_](?:[^\"'“”{}\[\]<>:=\n]|(?<=\w)'(?=\w))*+")
_WORDS_END: Final = re.compile(r"'?\Z")
_KEY: Final = re.compile(r"([\w.-]{1,64}+)[\"']?\s{0,8}(?:(=)(?!=)|:)")
_KEY_BEGUN: Final = re.compile(r"[\w.-]{1,64}+[\"']?\s{0,8}=?|\[\s{0,8}")
#: A call of Python's form.
_PYTHON_BEGINS: Final = re.compile(r"[\w.]{1,200}+\(")
#: Characters in which that is told.
_AHEAD: Final = 300


class Runner:
    """One family reading one candidate."""

    __slots__ = (
        "cursor", "family", "found", "is_over", "is_spoilt", "is_torn", "opened", "_behind", "_body", "_in_call",
        "_in_tags", "_is_moved", "_markers", "_name", "_parser", "_tools",
    )  # fmt: skip

    def __init__(
        self, family: Family, opener: str, cursor: Cursor, tools: Tools, markers: Markers, *, is_moved: bool = False
    ) -> None:
        """`is_moved`: tags of its values stand before the candidate."""
        self._is_moved = is_moved
        self.family = family
        self.cursor = cursor
        self.found: GatheredRuns[Found] = GatheredRuns()
        self.opened = False
        self.is_over = False
        self.is_spoilt = False  # not all of it is calls that can be delivered
        self.is_torn = False  # nobody can tell where the last call ends: what follows may be the rest of a value
        self._tools = tools
        self._markers = markers
        self._parser = family.read(cursor, tools, opener)
        self._behind = self._read_behind(opener)
        self._name = ""  # of the last call
        self._in_call = self._in_tags = False
        self._body: Close | None = None  # the last call closed by its own brackets, until it is known what follows

    def is_in_call(self) -> bool:
        """Whether a call is open, or it is not known whether one is."""
        return self._in_call or not self.opened

    def run(self) -> bool:
        """Read what has come; False when it is no call of this family."""
        try:
            if self._waits(self._parser):
                return True
        except NotACall:
            if not self.opened:
                return False
            if self._in_call:
                self._take(Close("", "" if self.cursor.ended else "its text is not of its format"))
            else:
                self.cursor.rewind()  # what follows the last call is none
                self.is_spoilt = True
        if self._waits(self._behind):
            return True
        self.is_over = True
        self._settle_body(is_proven=self.cursor.is_sealed or bool(self.cursor.rest().strip()))
        return self.opened

    def _waits(self, parser: Parser) -> bool:
        """Take what a parser finds; gives whether it waits for more text."""
        for action in parser:
            if not isinstance(action, Open | Piece | Close):
                return True
            self._take(action)
        return False

    def _read_behind(self, opener: str) -> Parser:
        """What stands behind the last call: its family's residue, and what is left of it when it cannot be read."""
        cursor = self.cursor
        if not cursor.is_broken:
            yield from self.family.residue_behind(cursor)
            if self._body is not None and not cursor.is_sealed and self.family.where != "message":
                while (goes_on := self._goes_on()) is None:
                    yield MORE
                if goes_on:
                    self._body = Close("", GOES_ON)
                    cursor.is_broken = self.is_spoilt = True
        if cursor.is_broken:
            if end := closing_of(opener):
                yield from cursor.leave(end, self.family.openers)
            yield from self.family.residue_behind(cursor)
        rest = cursor.rest()
        if cursor.ended and not rest.strip(_BETWEEN):
            cursor.skip(len(rest))

    def _goes_on(self) -> bool | None:
        """Whether what stands behind the last call's brackets may be of its arguments; None while it is not known."""
        cursor, markers = self.cursor, self._markers
        passed, rest = cursor.passed(), cursor.rest()
        text = passed[len(passed.rstrip(_BETWEEN)) :] + rest
        separators = _SEPARATORS.match(text)
        assert separators is not None
        place, lead = separators.end(), separators.group()
        if place > _AHEAD or (place == len(text) and cursor.ended):
            return False
        opener = markers.openers.match(text, place)
        if opener is not None and opener.group() not in markers.tags:
            return False  # another call begins
        is_short = not cursor.ended and len(text) - place < _AHEAD
        closings = _CLOSINGS.match(text, place)
        behind = place if closings is None else closings.end()
        if is_short and (text[place:] in markers.partial or _CLOSING_BEGUN.fullmatch(text, behind)):
            return None  # an opener or a closing may be cut here
        has_comma = bool(lead) and not lead.isspace()
        is_line = "\n" in lead or closings is not None or passed.rstrip().endswith(("]", "```"))
        ahead = text[behind : place + _AHEAD].lstrip()
        if CALL_BEGINS.match(ahead) or (has_comma and _PYTHON_BEGINS.match(ahead)):
            return False  # of a tool that was not offered
        if not is_line and "," not in lead and lead[-1:].isspace() and (words := _WORDS.match(ahead)) is not None:
            if is_short and _WORDS_END.match(ahead, words.end()):
                return None
            if ahead[words.end() : words.end() + 1] in ("", "\n"):
                return False
        if not is_line or _NO_WORDS.match(ahead):  # a call may still begin with a brace, or behind a comma
            return None if is_short and (has_comma or ahead[:1] == "{") else True
        if is_short and _KEY_BEGUN.fullmatch(ahead):
            return None
        key = _KEY.match(ahead)  # `Note: …` is words, where the tool has no such argument
        is_key = key is not None and ("," in lead or key[2] or self._tools.schema(self._name).has_member(key[1]))
        return bool(is_key)

    def _take(self, action: Open | Piece | Close) -> None:
        self._settle_body(is_proven=True)
        if isinstance(action, Close):
            self._close(action)
            return
        if isinstance(action, Open):
            self._in_tags, self._name = action.in_tags, action.name
            action = msgspec.structs.replace(action, family=self.family.name)
            self.opened = self._in_call = True
            self.cursor.unmark()
        self.found.add(action)

    def _close(self, end: Close) -> None:
        """A call ends; what its family says closed it must have been read."""
        cursor = self.cursor
        if end.by not in ("", BODY, cursor.marker):
            end = Close("", end.problem)
        self._in_call = False
        self.is_spoilt = self.is_spoilt or not end.is_whole()
        self.is_torn = self._in_tags and not end.is_whole()
        cursor.mark()
        cursor.is_sealed = end.by not in ("", BODY)
        cursor.is_broken = not end.is_whole()
        if self._is_moved and end.is_whole():
            end = Close("", MOVED)
        if end.by == BODY and not end.problem:
            self._body = end
        else:
            self.found.add(end)

    def _settle_body(self, *, is_proven: bool) -> None:
        """A call that its own brackets closed is told when it is known whether something stands behind it."""
        if self._body is not None:
            passed = "}" if self.cursor.passed().lstrip()[:1] == "}" else ""
            whole = Close(BODY, is_proven=is_proven, passed=passed)
            self.found.add(whole if self._body.is_whole() else self._body)
            self._body = None
