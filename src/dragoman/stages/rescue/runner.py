"""Run one family on one candidate: what it found, and whether each call was complete.

A call that its own brackets close may have closed too early: `{"command": "ls"}, "timeout": 5}`. So it waits for the
text behind it, up to the next call, its own closing tag, the end, or `AHEAD` characters. If that may be the rest of its
arguments (`behind/kinds.py` decides), it has two readings and fails.
"""

from __future__ import annotations

from collections.abc import Collection, Generator
from typing import Final, NamedTuple, TypeAlias, final

import msgspec

from dragoman._json import Json
from dragoman.codec.json_fields import parts_of
from dragoman.gathered import GatheredRuns, GatheredText
from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.behind.brackets import MAY_GO_ON, WRITTEN, Brackets
from dragoman.stages.rescue.behind.kinds import AHEAD, GOES_ON, Facts, Kind, kind_of
from dragoman.stages.rescue.behind.sealed import goes_on
from dragoman.stages.rescue.contexts import others_begin
from dragoman.stages.rescue.cursor import BODY, MORE, Action, Close, Cursor, Family, NotACall, Open, Parser, Piece
from dragoman.stages.rescue.json_calls import ARGUMENT_KEYS, NotOffered
from dragoman.stages.rescue.markers import Markers, closings
from dragoman.stages.rescue.quoted import Begun, closing_of, is_begun
from dragoman.stages.rescue.typed_tags import NESTED

#: What stands between calls; at the end of a text it belongs to them.
_BETWEEN: Final = " \t\r\n,;"
#: White space behind a call, past which no sentence goes on.
_MOST_SPACE: Final = 1000


@final
class Prose(msgspec.Struct, frozen=True, gc=False):
    """Text that is no call.

    `tag`: one of values with which it ends, or one that ends thinking which nothing began. `is_call`: it is a call to a
    tool that was not offered.
    """

    text: str
    tag: str = ""
    is_call: bool = False


@final
class Behind(msgspec.Struct, frozen=True):
    """The reader of the text behind a call that its own brackets closed: it looks for the rest of its arguments."""

    brackets: Brackets


#: What a scanner finds, in order. Between an `Open` and its `Close` there are only `Piece`s.
Found: TypeAlias = Prose | Open | Piece | Close | Behind
#: Characters of prose that more of it is added to, so that it is told once.
_SHORT: Final = 64
#: Why a call is refused whose markup does not go on.
UNREAD: Final = "its text is not of its format"


class Place(NamedTuple):
    """Where a candidate begins.

    Attributes:
        doubt: why a call there is refused: tags of its values stand before it, or one around it is open; or "".
        is_item: it begins an item of a list.
        has_words: something else stands before it on its line.
        in_sentence: and ends no sentence.
    """

    doubt: str = ""
    is_item: bool = False
    has_words: bool = False
    in_sentence: bool = False


class Runner:
    """One family reading one candidate."""

    __slots__ = (
        "begun_at", "cursor", "family", "found", "has_call", "is_begun", "is_over", "is_spoilt", "is_torn", "opened",
        "opener", "_arguments", "_begun", "_behind", "_body", "_brackets", "_in_call", "_in_tags", "_is_doubtful",
        "_is_endless", "_is_held", "_is_other", "_is_program", "_last", "_lost", "_markers", "_name", "_other",
        "_parser", "_place", "_tags", "_tools",
    )  # fmt: skip

    def __init__(
        self, family: Family, opener: str, cursor: Cursor, tools: Tools, markers: Markers, place: Place
    ) -> None:
        """Create it. `place`: where the candidate begins."""
        self._place = place
        self.family = family
        self.cursor = cursor
        self.found: GatheredRuns[Found] = GatheredRuns()
        self.begun_at = 0  # where the text begins behind the name of the last call, from the marker on
        self.opened = False
        self.has_call = False  # to an offered tool
        self.is_begun = False  # it cannot be read, and is a call that failed where no other family reads it
        self.is_over = False
        self.is_spoilt = False  # not all of it is calls that can be delivered
        self.is_torn = False  # nobody can tell where the last call ends: what follows may be the rest of a value
        self._tools = tools
        self._markers = markers
        parser = family.read(cursor, tools, opener)
        self._parser = self._unnamed(parser) if family.value_ends else parser
        self._behind = self._read_behind(opener)
        self.opener = opener
        self._begun: Begun | None = None  # a call that is named, until it opens
        self._is_doubtful = False  # it cannot be read, and may be no call
        cursor.mark()
        self._tags = closings(family)
        self._name = self._last = ""  # of the last call, and the last character of it
        self._arguments = GatheredText()  # the text of its arguments
        self._in_call = self._in_tags = self._is_held = False
        self._is_other = False  # the last call is one to a tool that was not offered
        self._other = GatheredText()  # its text
        self._lost = GatheredText()  # the text of such calls that did not end as they must
        self._is_endless = False  # the last call is code that nobody can read and nothing closes
        self._is_program = False  # a call is, in a family in which programs are written: none of its calls is meant
        self._brackets: Brackets | None = None  # what reads on behind the last call
        self._body: Close | None = None  # how the last call closed, until it is known what follows

    def is_in_call(self) -> bool:
        """Return whether a call is open, or held because it may be merely named."""
        return self._in_call or self._is_held

    def run(self) -> bool:
        """Read what has come. Return False if it is no call of this family."""
        try:
            if self._waits(parser := self._parser):
                return True
            if parser is not self._parser and self._waits(self._parser):  # its first call is more than named
                return True
        except NotACall as problem:
            if isinstance(problem, NotOffered):
                self._begun = None
            if self._in_call:
                self._take(Close("", "" if self.cursor.ended else UNREAD))
            else:
                self._is_doubtful = True
        if self._is_doubtful:
            is_begun = self._is_call()
            if is_begun is None or (is_begun and not self.opened):
                self.is_begun = is_begun is not None
                return True
            if is_begun:
                self.fail()
            elif not self.opened:
                return False
            else:
                self.cursor.rewind()  # what follows the last call is none
                self.is_spoilt, self._is_doubtful = True, False
        if self._waits(self._behind):
            return True
        self.is_over = True
        self._settle_body(is_proven=self.cursor.is_sealed or bool(self.cursor.rest().strip()))
        if self._is_other:
            self._say()
        return self.opened

    def fits(self) -> bool:
        """Return whether there are calls whose arguments, coerced, fit the tools' schemas."""
        calls: list[tuple[str, list[str]]] = []
        for action in self.found.items:
            if isinstance(action, Open):
                calls.append((action.name, []))
            elif isinstance(action, Piece):
                calls[-1][1].append(action.text)
        # A name alone is a call without arguments where it stands beside one with some.
        empty = "{}" if any(pieces for _, pieces in calls) else ""
        are_meant = bool(calls) and not self._is_program
        return are_meant and all(self._tools.fits(name, "".join(pieces) or empty) for name, pieces in calls)

    def fail(self) -> None:
        """Report the begun call as failed."""
        assert self._begun is not None
        self._is_doubtful = self.is_begun = False
        self._take(Open(self._begun.name))
        self._take(Close("", UNREAD))

    def swallowed(self, text: str) -> str:
        """Return what may hold calls that nobody read: calls to other tools that did not end as they must, or the
        `text` of a message whose last call is code without a reading and without an end.
        """
        return self._lost.text() or (text if self._is_endless else "")

    def _is_call(self) -> bool | None:
        """Return whether unreadable text is a call all the same; None while it is unknown."""
        begun, cursor = self._begun, self.cursor
        if begun is None or self.family.where == "message" or not self._tools.has(begun.name):
            return False
        text = cursor.passed()[self.begun_at :] + cursor.rest()
        ends = (*cursor.stops, *self.family.residue, *self.family.openers, closing_of(self.opener) or self.opener)
        schema = self._tools.schema(begun.name)
        return is_begun(text, ends, schema.has_member, is_body=begun.is_body, is_ended=cursor.ended)

    def _waits(self, parser: Parser) -> bool:
        """Take what a parser finds. Return whether it waits for more text."""
        for action in parser:
            if isinstance(action, Begun):
                passed = self.cursor.passed()
                if self._begun is None or action.is_body or passed[self.begun_at :].strip():  # not white space alone
                    self.begun_at = len(passed)
                self._begun, self.cursor.names_other = action, not self._tools.has(action.name)
                continue
            if not isinstance(action, Open | Piece | Close):
                if self._is_other and self._in_call:
                    self._say()
                return True
            self._take(action)
            if self.is_spoilt and self.family.where == "message":  # none of it runs, however much has come
                return True
        return False

    def _say(self, lead: str = "") -> None:
        """Pass what was read since the mark as text, behind a lead: it is of a call to a tool that was not offered."""
        if text := lead + self.cursor.passed():
            self.found.add(Prose(text, is_call=True))
            self._other.add(text)
        self.cursor.mark()

    def _unnamed(self, parser: Parser) -> Parser:
        """Yield what a parser finds, but hold its first call while it may be merely named.

        It is if it stands in tags without arguments, on one line, as an item of a list or in a sentence that goes on
        behind it. An element that its own tag ends stands alone, with no words behind it, or is named.
        """
        begun: list[Open] = []
        for action in parser:
            if isinstance(action, Open):
                begun.append(action)
                break
            yield action
        held: list[Action] = [*begun]
        self._is_held = bool(begun)
        for more in parser if begun and begun[0].in_tags else ():
            if not isinstance(more, Piece | Close):
                yield more
                continue
            held.append(more)
            if more == Piece("{}") and len(held) == 2 and "\n" not in self.cursor.passed():
                continue
            if isinstance(more, Close) and more.is_whole() and (yield from self._is_named()):
                self._begun, self._is_held = None, False
                raise NotACall
            break
        self._is_held = False
        self._parser = parser  # which reads on by itself
        yield from held

    def _is_named(self) -> Generator[Action, None, bool]:
        """Return whether the call that was just read is no more than named where it stands."""
        is_element = self.cursor.passed().endswith("/>")
        if self._place.is_item or not (is_element or self._place.has_words):
            return self._place.is_item
        while True:
            rest = self.cursor.rest()
            words = rest.lstrip()
            for _ in range(2 * len(self.family.residue)):
                if not (residue := next(filter(words.startswith, self.family.residue), "")):
                    break
                rest, is_element = words[len(residue) :], False
                words = rest.lstrip()
            is_far = len(rest) - len(words) > _MOST_SPACE
            if self.cursor.ended or is_far or not any(one.startswith(words) for one in (*self.family.residue, "")):
                break
            yield MORE
        first = words[:1]
        if is_element:
            return self._place.has_words or first.isalnum()
        goes_on = first.islower() or (self._place.in_sentence and first.isalnum()) or first in (",", ";", ".")
        return self._place.has_words and goes_on and "\n" not in rest[: len(rest) - len(words)]

    def _read_behind(self, opener: str) -> Parser:
        """Read what stands behind the last call: its family's residue, and its rest if it cannot be read."""
        cursor = self.cursor
        if not cursor.is_broken:
            yield from self.family.residue_behind(cursor)
            passed = cursor.passed()
            if self._body is not None and self.family.where != "message" and others_begin(passed) == len(passed):
                yield from self._look_behind()
        if cursor.is_broken:
            if end := closing_of(opener):
                yield from cursor.leave(end, self.family.openers)
            yield from self.family.residue_behind(cursor)
        rest = cursor.rest()
        if cursor.ended and not rest.strip(_BETWEEN):
            cursor.skip(len(rest))

    def _look_behind(self) -> Parser:
        """Fail the last call if what stands behind it may belong to it."""
        if not self.cursor.is_sealed:
            while (kind := self._kind_behind()) is None:
                yield MORE
            if kind in GOES_ON:
                self._refuse()
        is_whole = self._body is not None and self._body.is_whole()
        if is_whole and (keys := self._lacking()):
            while (more := self._goes_on(keys)) is None:
                yield MORE
            if more:
                self._refuse()

    def _refuse(self) -> None:
        """Fail the last call, because what stands behind it may belong to it."""
        self._body = Close("", MAY_GO_ON)
        self.cursor.is_broken = self.is_spoilt = True

    def _goes_on(self, keys: Collection[str]) -> bool | None:
        """Return whether arguments of these names, which the last call lacks, stand behind it; None while it is
        unknown.
        """
        text = self.cursor.rest()[:AHEAD]
        stop = others_begin(text[: self._markers.call_begins(text)])
        is_whole = self.cursor.ended or stop < len(text)
        if not is_whole and len(text) < AHEAD:
            stop = self._markers.held(text)  # what begins another call is none of this one
        return goes_on(text[:stop], keys, is_whole=is_whole)

    def _kind_behind(self) -> Kind | None:
        """Return the kind of text behind the last call's brackets; None while it is unknown. Words may go on behind
        it.
        """
        between = self._passed_between()
        text = (between + self.cursor.rest())[:AHEAD]
        first = self._markers.call_begins(text)
        opener = others_begin(text[:first])
        end = min((place for _, one in self._tags if (place := text.find(one)) >= 0), default=len(text))
        stop = min(opener, end)
        if stop == len(text) < AHEAD and not self.cursor.ended:
            return None
        is_closed = end < opener
        if not text.strip(_BETWEEN) or (is_closed and not text[:end].strip(_BETWEEN)):
            return "nothing"
        facts = self._facts()
        kind = kind_of(text[:stop], facts, is_closed=is_closed)
        if kind in ("nothing", "words") and not (is_closed or opener < first):
            self._brackets = facts.brackets()
            self._brackets.feed(between)
        return kind

    def _passed_between(self) -> str:
        """Return separators that were read behind the last call."""
        passed = self.cursor.passed()
        return passed[len(passed.rstrip(_BETWEEN)) :]

    def _lacking(self) -> Collection[str]:
        """Return the arguments, in whatever depth, that the last call lacks; if it has none, also what contains
        some.
        """
        given = _keys(self._tools.read(self._name, self._arguments.text()))
        missing = self._tools.schema(self._name).names() - given
        return missing if given or not missing else missing | ARGUMENT_KEYS

    def _facts(self) -> Facts:
        """Return the facts about the last call."""
        schema = self._tools.schema(self._name)
        arguments = self._arguments.text()
        given = _keys(self._tools.read(self._name, arguments))
        more = frozenset() if given else ARGUMENT_KEYS
        roots = frozenset(key for key in schema.names() if schema.has_member(key)) - given
        return Facts(
            closes=")" if self._last == ")" else "}",
            ends_in_text=arguments.rstrip("}]) \t\r\n")[-1:] == '"',
            is_empty=not given,
            keys=schema.names() | more,
            roots=roots | more,
            tags=self._tags,
        )

    def _take(self, action: Open | Piece | Close) -> None:
        self._settle_body(is_proven=True)
        if isinstance(action, Close):
            self._close(action)
        elif isinstance(action, Open):
            self._open(action)
        elif not self._is_other:
            self._arguments.add(action.text)
            self.found.add(action)

    def _open(self, begun: Open) -> None:
        """Begin a call. One to a tool that was not offered stays text, with what was read before it."""
        lead, is_item = "" if self.opened else self.opener, self._place.is_item and not self.opened
        self._in_tags, self._name, self._begun = begun.in_tags, begun.name, None
        self._is_other = not self._tools.has(begun.name)
        self._is_program = self._is_program or (self._is_other and self.family.is_code)
        self.opened = self._in_call = self._tools.reads_others = True
        if self._is_other:
            self._other.clear()
            self._say(lead)
            return
        self.has_call = True
        self.cursor.unmark()
        self._arguments.clear()
        self.found.add(msgspec.structs.replace(begun, family=self.family.name, is_item=is_item))

    def _close(self, end: Close) -> None:
        """End a call. The marker that closed it, by its family, must have been read."""
        cursor = self.cursor
        if end.by not in ("", BODY, cursor.marker):
            end = Close("", end.problem)
        self._in_call, self._last = False, cursor.last()
        self.is_spoilt = self.is_spoilt or not end.is_whole()
        self.is_torn = self._in_tags and not end.is_whole()
        self._is_endless = self.family.is_code and end.problem != "" and cursor.ended and not cursor.rest().strip()
        cursor.is_sealed = end.by not in ("", BODY)
        cursor.is_broken = not end.is_whole()
        if self._is_other:
            self._say()
            is_cut = end.problem == "" and not cursor.rest().strip()
            if not end.is_whole() and (self.is_torn or not (is_cut or end.problem == NESTED)):
                self._lost.add(self._other.take())
            return
        cursor.mark()
        if self._place.doubt and end.is_whole():
            end = Close("", self._place.doubt)
        if end.is_whole():
            self._body = end
        else:
            self.found.add(end)

    def _settle_body(self, *, is_proven: bool) -> None:
        """Report a call once it is known whether something of it stands behind it."""
        if self._body is not None and self._body.by != BODY:
            self.found.add(self._body)
            self._body = None
        elif self._body is not None:
            passed = WRITTEN if self._last == WRITTEN else ""
            passed = "}" if self.cursor.passed().lstrip()[:1] == "}" else self._body.passed or passed
            if self._brackets is not None:
                self.found.add(Behind(self._brackets))
            whole = Close(BODY, is_proven=is_proven, passed=passed)
            self.found.add(whole if self._body.is_whole() else self._body)
            self._body = None


def say(text: str, out: list[Found]) -> None:
    """Add prose to what was found, to the short one before it if there is one: that is told once."""
    last = out[-1] if out else None
    if type(last) is Prose and not (last.tag or last.is_call) and len(last.text) <= _SHORT:
        out[-1] = Prose(last.text + text)
    else:
        out.append(Prose(text))


def _keys(value: Json) -> frozenset[str]:
    """Return the keys of all objects in a value."""
    return frozenset(key for part in parts_of(value) if isinstance(part, dict) for key in part)
