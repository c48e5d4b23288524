"""Hold calls that seem to have ended, while what follows may show that they are none.

A value between tags has no quotation marks. If it contains its own closing tags (`x</parameter></function>`), the call
seems to end in it, and what follows reads as prose and other calls. Such tags come again at the real end, where they
close nothing. Then the end of the value cannot be told, so that no call of the text from there on is run. The same
holds for a quotation token (`<|"|>`) before a bracket or a comma, behind a call whose texts stand between such tokens.

A lone closing tag of thinking makes the text before it thinking, and its calls drafts: none of them is run beside an
answer's.

A second attempt may follow the first in one stream, where a server or a gateway asked again: words with which the
answer began and its first call come once more. No call of the text is run then: those of both would.

A call waits for at most `MOST_WAITING` characters behind it. If one of these comes later, the call was delivered
already, and the answer fails: its calls are read, and nothing runs them.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from dragoman.codec.parts.settled_arguments import Settled
from dragoman.events import Deviation, Event, Failure, Finish, ToolCallFailed, settle_reason
from dragoman.secret import name_alone
from dragoman.stages.rescue.behind.brackets import MAY_GO_ON, Brackets
from dragoman.stages.rescue.cursor import Close, Family
from dragoman.stages.rescue.markers import parameter_begins, value_begins
from dragoman.stages.rescue.parts import Call, Part
from dragoman.stages.rescue.typed_tags import NESTED

TWO_READINGS: Final = "tags of values come again behind it, so that it may not have ended: two readings"
#: Why a call is refused that stood in thinking that no tag began.
IS_THOUGHT: Final = "thinking ends behind it, and an answer follows"
#: Why an answer fails that begins again.
AGAIN: Final = "the answer begins again behind it, and tells it once more"
#: Characters by which the beginning of an answer is known, and of what follows a call in which they are looked for.
_HEAD: Final = 16
_MOST_WORDS: Final = 4096
#: Characters behind a call, of text and of other calls, after which it is told.
MOST_WAITING: Final = 200
#: Characters of text in which a tag and the beginning of the next one stand.
_KEPT: Final = 120


class Ended(msgspec.Struct, eq=False):
    """Calls that wait, with the text behind them.

    Attributes:
        reads: the text that comes is read: behind them, or where the answer begins and nothing waits.
        told: the name of the first call that was delivered before it was known to have two readings, and why, or None.
    """

    # those that wait, each with how much came before it
    _calls: deque[tuple[Call, Close, int]] = msgspec.field(default_factory=deque)
    _due: list[tuple[Call, Close]] = []  # those that waited long enough
    _again: re.Pattern[str] | None = None  # what ends a value of the waiting calls in tags
    _tag: re.Pattern[str] | None = None
    _begins: frozenset[str] = frozenset()  # of the parameters of the family
    _tail: str = ""
    _is_refused: bool = False
    _behind: int = 0  # characters that came behind the first call
    _told: Call | None = None  # the first call that was told of this text
    _drafts: list[tuple[Call, Close]] = []  # calls of thinking that no tag began
    _told_draft: Call | None = None  # the first one of them that was told
    _behind_call: tuple[Call, Brackets] | None = None  # and what reads the text behind it
    _head: str = ""  # the words before the first call
    _has_room: bool = True  # for more of them
    _first: tuple[str, str] | None = None  # that call
    _words: str = ""  # behind the last call
    _thought: set[str] = set()  # families of the calls in thinking
    _ends: list[str] = []  # what closes them
    _closing: re.Pattern[str] | None = None  # the same
    told: tuple[str, str] | None = None
    reads: Literal["", "begins", "behind"] = "begins"

    __repr__ = name_alone

    def read_behind(self, call: Call, brackets: Brackets) -> None:
        """Read the text behind a call that its own brackets closed."""
        self._behind_call, self.reads = (call, brackets), "behind"

    def read(self, text: str, *, is_end: bool = False) -> None:
        """Take text behind a call that its own brackets closed. `is_end`: another call, or nothing, follows it."""
        if self._behind_call is None:
            return
        call, brackets = self._behind_call
        brackets.feed(text, is_end=is_end)
        if brackets.goes_on:
            self.told = self.told or (call.name, MAY_GO_ON)
        if brackets.is_over:
            self._behind_call = None

    def holds(self, name: str) -> bool:
        """Return whether a call of this tool waits."""
        return any(call.name == name for call, _, _ in self._calls)

    def hold(self, call: Call, end: Close, value_ends: tuple[str, ...], quotes: tuple[str, ...]) -> None:
        """Let an ended call wait. `value_ends`, `quotes`: of its family."""
        if end.is_whole():
            self._look_for(value_ends, quotes)
        if end.problem == NESTED:
            self._read_nested(end.passed)
        if self._begins_again(call):
            self.told, end = self.told or (call.name, AGAIN), Close("", AGAIN)
        self._calls.append((call, end, self._behind))
        self.reads = "behind"

    def refuse(self) -> None:
        """Fail the waiting calls, because what follows may be the rest of a value."""
        self._is_refused = True
        if self._told is not None:
            self.told = self.told or (self._told.name, TWO_READINGS)

    def see(self, tag: str) -> None:
        """Take a tag of values that came as text. If it begins a parameter, the waiting calls lack some."""
        self._is_refused = self._is_refused or (bool(self._calls) and tag in self._begins)

    def add(self, text: str, *, of_call: int = 0) -> None:
        """Take text that is no call, or `of_call` characters of one."""
        if self._first is not None:
            self._words = (self._words + text)[-_MOST_WORDS:]
        elif self._has_room:
            self.begin(text)
        if self._again is None or not text:
            self._pass(of_call or len(text))
            return
        read = self._tail + text
        found = None if self._is_refused else self._again.search(read)
        self._tail = read[-_KEPT:]
        if found is None:
            self._pass(len(text))
        else:
            self._pass(found.end() - len(read) + len(text) - 1)  # so that it is one in pieces of any size
            self.refuse()

    def begin(self, text: str) -> None:
        """Take words with which the answer begins."""
        self._head = (self._head + text).lstrip()[:_HEAD]
        self._has_room = len(self._head) < _HEAD
        self._see_reads()

    def due(self) -> list[tuple[Call, Close]]:
        """Return the calls that need not wait any more, each with its end."""
        if not (self._due or self._is_refused):
            return []
        due, self._due = self._due, []
        if self._is_refused:
            due += [(call, end if end.problem else Close("", TWO_READINGS)) for call, end, _ in self._calls]
            self._calls.clear()
        self._see_reads()
        return due

    def think(self) -> None:
        """Keep the waiting calls as drafts: the text was thinking."""
        self._told_draft = self._told_draft or self._told
        drafts = self.take() if self.reads == "behind" else []
        self._drafts += drafts
        for call, _ in drafts:
            self.think_of(call.family)
        self._head, self._has_room, self._first, self._words = "", True, None, ""
        self._see_reads()

    def think_of(self, family: str) -> None:
        """Take the family of a call in thinking, which may be closed behind it."""
        if family not in self._thought:
            self._thought.add(family)
            self._closing = None

    def answers(self) -> None:
        """Read the text that comes as the beginning of the answer, unless a call came: thinking has ended."""
        if self._first is None:
            self._head, self._has_room = "", True
            self._see_reads()

    def blank(self, part: Part, text: str, families: Sequence[Family]) -> str | None:
        """Return None for a text of an answer. Else it is nothing, blank or what closes a call of the thinking before
        it: return the mark of that which it perhaps begins.
        """
        rest = (part.mark if part.space else "") + text
        if part.is_thinking or not self._thought:
            return None if part.is_thinking or rest.strip() else ""
        if self._closing is None:
            self._ends = [end for family in families if family.name in self._thought for end in family.residue]
            self._closing = re.compile("|".join([r"(?:\s", *map(re.escape, self._ends)]) + ")*+")
        found = self._closing.match(rest)
        rest = rest[found.end() :] if found is not None else rest
        return rest if not rest or any(end.startswith(rest) for end in self._ends) else None

    def drafts(self, *, has_answer: bool) -> list[tuple[Call, Close]]:
        """Return the drafts, each with its end: they count if no answer follows."""
        if has_answer:
            self._thought.clear()
            self._closing = None
        if not (self._drafts or self._told_draft):
            return []
        drafts, self._drafts = self._drafts, []
        if not has_answer:
            return drafts
        if self._told_draft is not None:
            self.told = self.told or (self._told_draft.name, IS_THOUGHT)
        return [(call, Close("", IS_THOUGHT) if end.is_whole() else end) for call, end in drafts]

    def take(self) -> list[tuple[Call, Close]]:
        """Return all waiting calls, each with its end: the text has ended."""
        self.read("", is_end=True)
        calls = self.due()
        if not self._is_refused:
            calls += [(call, end) for call, end, _ in self._calls]
            self._calls.clear()
            self._again, self._tag, self._tail, self._told, self._behind = None, None, "", None, 0
        self._see_reads()
        return calls

    def _see_reads(self) -> None:
        if self._calls or self._again or self._behind_call or self._first is not None:
            self.reads = "behind"
        else:
            self.reads = "begins" if self._has_room else ""

    def _look_for(self, value_ends: tuple[str, ...], quotes: tuple[str, ...]) -> None:
        """Look for marks of values behind a complete call."""
        sought = rf"(?:{'|'.join(map(re.escape, quotes))})\s{{0,40}}[}}\],]" if quotes else ""
        if value_ends and self._tag is None:
            ends = "|".join(map(re.escape, value_ends))
            begins = "|".join(re.escape(begin) + "(?!/)" for begin in value_begins(value_ends))
            sought = rf"(?:{ends})\s{{0,40}}[<\]]"
            self._begins = parameter_begins(value_ends)
            self._tag = re.compile(f"(?P<end>{ends})|{begins}")
        if self._again is None:
            self._again = re.compile(sought) if sought else None
        elif sought not in self._again.pattern:  # calls of several families wait
            self._again = re.compile(f"{self._again.pattern}|{sought}")

    def _begins_again(self, call: Call) -> bool:
        """Return whether a call, and the words before it, are those that came first."""
        told, head = (call.name, call.text.raw()), self._head.rstrip()
        words, self._words = self._words, ""
        if self._first is None:
            self._first = told
            return False
        is_there = head in words if len(self._head) == _HEAD else words.rstrip().endswith(head)
        return told == self._first and is_there and any(map(str.isalnum, head))

    def _pass(self, size: int) -> None:
        """Count characters; the calls that have waited for enough of them are due."""
        self._behind += size
        while self._calls and not self._is_refused and self._behind - self._calls[0][2] > MOST_WAITING:
            call, end, _ = self._calls.popleft()
            self._due.append((call, end))
            self._told = self._told or (call if end.is_whole() else None)

    def _read_nested(self, passed: str) -> None:
        """Judge a value that contains the beginning of a call, with which `passed` was skipped.

        If its tags close each other and the value, it is one call that contains others, and the waiting calls are
        separate; else they may continue in it.
        """
        if self._tag is None or self._again is None:
            return
        depth = 1
        for found in self._tag.finditer(passed):
            depth += -1 if found["end"] else 1
            if depth < 0:
                break
        if depth != 0:
            self.refuse()


def failed_call(call: Call, end: Close, settled: Settled) -> ToolCallFailed:
    """Return the failure of a call that is incomplete, or has no single reading."""
    problem = end.problem or settled.problem or "its text ends before its end"
    # "lost" and "refused" are final: what is whole by chance must not be mended into a call.
    kind = "lost" if end.is_cut else "refused" if end.problem else settled.kind
    message = f"tool call {call.name}, written as text: {problem}"
    return ToolCallFailed(call.index, call.id, call.name, kind, message, call.text.raw())


def finish(event: Finish, out: list[Event], *, usable: int, failed: int) -> Finish:
    """Return the end of an answer with these numbers of usable and failed calls in its text.

    If the answer stopped for them, the wire was right to say so, and the deviation about it is removed from the events.
    """
    reason = settle_reason(event.reason, usable_calls=usable, failed_calls=failed)
    if event.reason == "stop" and reason == "tool_use":
        out[:] = [said for said in out if type(said) is not Deviation or said.where != "stop reason"]
    return msgspec.structs.replace(event, reason=reason)


def failed(event: Finish, name: str, why: str) -> Failure:
    """Return the end of an answer in which a delivered call of this name has two readings."""
    message = f"tool call {name}, written as text: {why}"
    return Failure("wire", message, usage=event.usage, cost=event.cost, native=event.native)
