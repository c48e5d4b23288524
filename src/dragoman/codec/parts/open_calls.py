"""The open calls of a response: found by id, announced, settled, delivered or failed."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Final
from typing import Protocol as Interface

import msgspec

from dragoman import _json
from dragoman._json import whole_characters
from dragoman.bounds import AnswerBounds
from dragoman.codec.parts.argument_text import ArgumentText
from dragoman.codec.parts.open_parts import OpenCall
from dragoman.codec.parts.settled_arguments import Settled, beyond, is_same
from dragoman.events import CallFailureKind, Event, Severity, ToolCallDelta, ToolCallEnd, ToolCallFailed, ToolCallStart
from dragoman.protocol import NewId, TakesNothing
from dragoman.secret import name_alone
from dragoman.types import ToolCall

#: How many calls of one response may wait for a label, or be meant by a piece that has none. One more, and each of them
#: fails: a look at all of them stays short, however many pieces come.
MOST_WAITING: Final = 256


class Answer(Interface):
    """The response of the calls. It is passed in each time, to avoid a reference cycle."""

    events: list[Event]
    calls: OpenCalls
    longest_arguments: int
    bounds: AnswerBounds

    def deviate(self, code: str, where: str = "", seen: object = "", *, severity: Severity = "fault") -> None:
        """Report a deviation."""

    def is_late(self) -> bool:
        """Return whether the response has ended already; what comes then is ignored."""

    def open_call(self, id: str | None, name: str | None) -> OpenCall:
        """Begin a call."""

    def whole_call(self, id: str | None, name: str | None, arguments: str) -> OpenCall:
        """Add a whole call."""

    def add_arguments(self, call: OpenCall, text: str) -> None:
        """Append to a call's arguments."""

    def contradict(self, call: OpenCall, where: str) -> None:
        """Fail a call that came in two ways."""


def made_id(new_id: NewId, taken: Container[str], index: int) -> str:
    """Return an id of our own for the call at an index."""
    made = f"call_{new_id()}"
    while made in taken:  # by the wire, which made it up likewise
        made += f"_{index}"  # whatever makes ids, this ends
    return made


class OpenCalls(msgspec.Struct, eq=False):
    """The open calls by index, and counts of the others.

    Attributes:
        by_index: those that are open.
        by_id: each call with an id, open or not.
        ripe: those that another part's opening closes.
        has_astray: arguments came that a call without any may have lost: around the calls, or behind those of another.
        has_bare: a call without arguments was delivered.
        usable, failed: the numbers of delivered and failed calls.
        end: the index from which on a call may be a second answer's: behind the stop reason, or where the words before
            the first call came again. None before it, and where no call came before it.
    """

    _new_id: NewId
    offered_names: frozenset[str]
    takes_nothing: TakesNothing
    _needs_ids: Severity | None  # the severity of a call without an id; None: the protocol has no ids
    by_index: dict[int, OpenCall] = {}
    ripe: dict[int, OpenCall] = {}
    by_id: dict[str, OpenCall] = {}
    usable: int = 0
    failed: int = 0
    has_astray: bool = False
    has_bare: bool = False
    end: int | None = None
    _before_end: set[tuple[str, str]] | None = None  # names and arguments of the calls before it, once another came
    _has_strays: bool = False
    _without_id: set[str] = set()  # names of calls without one, each of which is reported once
    _nameless: list[OpenCall] = []  # calls that began without a name
    _pieces: set[str] | None = set()  # names of failed calls that stand in a tool's, and are none; None at the end
    _again: dict[int, list[OpenCall]] = {}  # part index of a call → those that were sent under its id again

    __repr__ = name_alone

    # ------------------------------------------------------------ ids and names

    def add(self, call: OpenCall, answer: Answer) -> None:
        """Begin a call. With another call's id it is held until it is complete."""
        if not call.name:
            self._nameless.append(call)
            if len(self._nameless) > MOST_WAITING:
                self._fail_nameless(answer)
        earlier = self.by_id.get(call.id) if call.id else None
        if earlier is not None:
            call.repeats = earlier
            self._again.setdefault(earlier.index, []).append(call)
        elif call.id:
            self.by_id[call.id] = call
        self.by_index[call.index] = call

    def without_blanks(self, name: str, assembly: Answer) -> str:
        """Return a name without surrounding white space, if that is a tool's name and no other tool's begins so."""
        bare = name.strip()
        if bare == name or bare not in self.offered_names or any(one.startswith(name) for one in self.offered_names):
            return name
        assembly.deviate("mangled-name", f"call {bare}", repr(name))
        return bare

    def call_of(self, id: str) -> OpenCall | None:
        """Return the call with this id, from the wire or generated."""
        return self.by_id.get(id)

    def register(self, call: OpenCall) -> None:
        """Record a call under its id."""
        self.by_id.setdefault(call.id, call)

    def goes_on(self, name: str, text: ArgumentText) -> bool:
        """Return whether the same name under a new id continues a call: its arguments are incomplete and must come."""
        return not (text.is_whole() or text.is_over()) and (text.is_started() or not self.takes_nothing(name))

    def is_silent(self, call: OpenCall) -> bool:
        """Return whether no arguments of a call came, or `{}` where its tool needs more."""
        return call.text.is_blank() or (call.text.is_empty() and not self.takes_nothing(call.name))

    def may_lack(self) -> bool:
        """Return whether a delivered or open call has no arguments, so that arguments elsewhere may be its own."""
        if self.has_bare:
            return True
        for call in self.by_index.values():  # noqa: SIM110 -- half the time, and asked at most events
            if call.text.phase == "held":
                return True
        return False

    @property
    def has_strays(self) -> bool:
        """Return whether arguments came that belong to no call."""
        return self._has_strays or any(
            not call.name and call.is_open() and not call.text.is_blank() for call in self._nameless
        )

    def _fail_nameless(self, answer: Answer) -> None:
        """Update which calls still wait for their names. If they are too many, they get none."""
        waiting = [call for call in self._nameless if call.is_open() and not call.name]
        surplus = max(0, len(waiting) - MOST_WAITING // 2)
        self._nameless = waiting[surplus:]
        for call in waiting[:surplus]:
            self.fail(call, answer, "nameless", "a tool call has no name")

    def announce(self, call: OpenCall, answer: Answer) -> None:
        """Send a call's start event. One that may repeat another stays held until it is complete."""
        if call.state != "waiting" or not call.name or call.repeats is not None:
            return
        if self.end is not None and not call.is_settled and self._is_late(call):
            return
        if call.name not in self.offered_names and not call.is_settled and self._glued(call.name) > 1:
            return  # how many calls this is, its arguments tell
        if not call.id or self.by_id.setdefault(call.id, call) is not call:  # none, or a late one that another call has
            if call.id:
                answer.deviate("duplicate-id", f"call {call.name}")
            call.id = self._make_id(call, answer)
        if not (call.id.isascii() and call.name.isascii()):
            call.id, call.name = whole_characters(call.id), whole_characters(call.name)
        if self.offered_names and call.name not in self.offered_names:
            answer.deviate("unknown-tool", f"call {call.index}", call.name)
        call.state = "announced"
        answer.events.append(ToolCallStart(call.index, call.id, call.name, call.kind, call.native))
        if call.pending is not None:
            answer.events.append(ToolCallDelta(call.index, call.pending.text()))
            call.pending = None

    def _make_id(self, call: OpenCall, answer: Answer) -> str:
        """Record a call under an id of our own."""
        if not call.id and call.name not in self._without_id:
            self._without_id.add(call.name)
            if self._needs_ids:
                answer.deviate("missing-id", f"call {call.name}", severity=self._needs_ids)
        made = made_id(self._new_id, self.by_id, call.index)
        self.by_id[made] = call
        return made

    def add_whole(self, call: OpenCall, answer: Answer, text: str, *, is_plain: bool) -> None:
        """Begin a call that came whole. It is delivered if its arguments are plain, unless its id or name say that it
        may be another, or several.
        """
        id, name = call.id, call.name
        is_usual = is_plain and name in self.offered_names and (not id or (id not in self.by_id and id.isascii()))
        if not (is_usual and name.isascii() and self.end is None):
            self.add(call, answer)
            self.announce(call, answer)
            if is_plain and call.state == "announced":
                answer.events.append(ToolCallDelta(call.index, text))
                self.deliver(call, answer, text)
            return
        if id:
            self.by_id[id] = call
        else:
            id = call.id = self._make_id(call, answer)
        self.usable += 1
        call.state, call.arguments = "whole", text
        answer.events += (
            ToolCallStart(call.index, id, name, call.kind, call.native),
            ToolCallDelta(call.index, text),
            ToolCallEnd(call.index, ToolCall(id, name, text, call.kind, call.signature, call.native)),
        )

    def _glued(self, name: str) -> int:
        """Return how often a name repeats an offered one (`ff`: `f`, twice); 0 if it does not or was offered itself."""
        period = (name + name).find(name, 1)
        return len(name) // period if 0 < period < len(name) and name[:period] in self.offered_names else 0

    def is_name_of(self, call: OpenCall, name: str) -> bool:
        """Return whether a repeated name is the call's: as it is, or as it was before its calls were separated."""
        return name == call.name or (call.is_settled and self._glued(name) > 1 and name.startswith(call.name))

    # ------------------------------------------------------------ settling and failing

    def settle_ripe(self, answer: Answer) -> None:
        """Close the complete calls: another part opens, or a stop reason was seen (more may still come)."""
        ripe, self.ripe = self.ripe, {}
        for index in sorted(ripe):
            if not ripe[index].is_open():
                continue
            if not ripe[index].name:
                self.ripe[index] = ripe[index]
            else:
                self.settle(ripe[index], answer, proven=True)

    def settle(self, call: OpenCall, answer: Answer, *, proven: bool) -> None:
        """Close a call: deliver it, or fail it with the reason. One whose name may be a piece of another's waits."""
        if call.name not in self.offered_names and self._pieces is not None and self._is_piece(call.name):
            return
        if call.repeats is not None and call.repeats.is_open() and not call.repeats.text.is_empty():
            self.settle(call.repeats, answer, proven=proven)
        if call.unread and (call.is_torn or call.text.is_empty()):
            self._fail_unread(call, answer)
            return
        settled = _settled(call, answer.bounds, proven=proven)
        if call.repeats is not None and self._is_repeated(call, call.repeats, settled, answer):
            return
        is_bare = call.text.is_empty() and (self._may_lack(call) or (self.has_strays and self.is_silent(call)))
        if call.kind == "function" and call.name and is_bare:
            problem = "arguments came that name no call; they may be its own"
            self.fail(call, answer, "lost", f"tool call {call.name}: {problem}")
            return
        if settled.text is None:
            self.fail(call, answer, settled.kind, f"tool call {call.name or '(no name)'}: {settled.problem}")
            return
        if not call.name:
            self.fail(call, answer, "nameless", "a tool call has no name")
            return
        call.is_settled = True
        if self.end is not None and call.index >= self.end and self._is_told_again(call, settled.text):
            problem = "the answer tells it, and again behind its end, or behind its first words"
            self.fail(call, answer, "contradicted", f"tool call {call.name}: {problem}")
            return
        more = settled.more
        self.has_astray = self.has_astray or bool(more)
        waiting = (
            [one for one in self.by_index.values() if one is not call and not one.text.is_closed()] if more else []
        )
        if more and (waiting or call.is_doubtful):
            for owner in (call, *waiting):
                self.fail(owner, answer, "lost", f"tool call {owner.name}: another one has arguments for two")
            return
        if call.state == "waiting" and settled.objects and self._glued(call.name) == len(settled.objects):
            answer.deviate("mangled-name", f"call {call.index}", call.name)
            call.name = call.name[: len(call.name) // len(settled.objects)]
            more = settled.objects[1:]
        if call.state == "waiting":
            self.announce(call, answer)
        for code, seen in settled.codes:
            answer.deviate(code, f"call {call.index}", seen)
        if settled.delta:
            answer.events.append(ToolCallDelta(call.index, settled.delta))
        self.deliver(call, answer, settled.text)
        self._add_further(call, settled, more, answer)

    def _is_piece(self, name: str) -> bool:
        offered = self.offered_names
        return bool(name and offered) and name not in offered and any(name in one for one in offered)

    def fail_pieces(self, answer: Answer) -> None:
        """Fail the calls whose names are pieces of a tool's: no more calls come. They are if one begins it and another
        ends it, or a piece was lost.
        """
        pieces, self._pieces = self._pieces or set(), None
        if not self.by_index:
            return
        pieces |= {call.name for call in self.by_index.values() if self._is_piece(call.name)}
        if pieces and (self.has_strays or self._are_of_one(pieces)):
            for call in [call for call in self.by_index.values() if call.name in pieces]:
                self.fail(call, answer, "lost", f"tool call {call.name}: its name may be a piece of another one's")

    def _are_of_one(self, pieces: set[str]) -> bool:
        """Return whether one of these begins the name of a tool, and another one ends it."""
        return any(
            one.startswith(piece) and any(one.endswith(other) for other in pieces if other != piece)
            for one in self.offered_names
            for piece in pieces
        )

    def _add_further(self, call: OpenCall, settled: Settled, more: Sequence[str], answer: Answer) -> None:
        """Take what stands behind a call's own arguments: more objects, each a call, and perhaps a piece of one."""
        if not (more or settled.cut_after):
            return  # as most often
        end = self.end
        if not self._is_late(call):
            self.end = None  # they came before it, too
        for text in more:
            if more is settled.more and len(self.offered_names) > 1 and _shares_no_key(call.arguments, text):
                problem = "arguments behind its own have none of their keys: they may be another tool's"
                self.fail(answer.open_call(None, call.name), answer, "lost", f"tool call {call.name}: {problem}")
            else:
                answer.whole_call(None, call.name, text)
        self.end = end
        if settled.cut_after:
            further = answer.open_call(None, call.name)
            self.fail(further, answer, "cut", f"tool call {call.name}: further arguments in the same call are cut")

    def _may_lack(self, call: OpenCall) -> bool:
        """Return whether arguments came that a call without any may own: astray, or under its id again."""
        return self.has_astray or any(
            one.repeats is call and one.name in ("", call.name) and not one.text.is_empty()
            for one in self._again.get(call.index, ())
        )

    def _fail_unread(self, call: OpenCall, answer: Answer) -> None:
        kind: CallFailureKind = "unreadable" if call.text.is_empty() else "lost"
        problem = f"it has {call.unread!r} and no" if call.text.is_empty() else f"a piece of it has {call.unread!r} for"
        self.fail(call, answer, kind, f"tool call {call.name or '(no name)'}: {problem} arguments")

    def _is_repeated(self, call: OpenCall, earlier: OpenCall, settled: Settled, answer: Answer) -> bool:
        """Return whether a call sent under a used id is the earlier one again; else give it its own id."""
        blank = call.text.is_empty() or not call.text.raw().strip()
        is_named = call.name in ("", earlier.name)
        if blank and is_named and earlier.arguments not in ("", "{}"):
            same = True
        else:
            same = settled.text is not None and is_named and is_same(settled.text, earlier.arguments)
        if same:
            answer.deviate("duplicate-call", f"call {earlier.index}")
            del self.by_index[call.index]
            call.state = "failed"
            return True
        answer.deviate("duplicate-id", f"call {call.index}", call.id)
        if not blank and is_named and earlier.is_open() and earlier.text.is_empty():
            self.fail(earlier, answer, "lost", f"tool call {earlier.name}: arguments came under its id again")
        call.id = ""
        call.name = call.name or earlier.name
        call.repeats = None
        return False

    def deliver(self, call: OpenCall, answer: Answer, text: str) -> None:
        """Deliver a complete call with these arguments."""
        del self.by_index[call.index]
        call.state, call.live = "whole", None
        call.arguments = text
        if text == "{}":
            self.has_bare = True
        if self._before_end is not None and not self._is_late(call):
            self._before_end.add((call.name, text))
        self.usable += 1
        whole = ToolCall(call.id, call.name, text, call.kind, call.signature, call.native)
        answer.events.append(ToolCallEnd(call.index, whole))

    def _is_late(self, call: OpenCall) -> bool:
        return self.end is not None and call.index >= self.end

    def _is_told_again(self, call: OpenCall, text: str) -> bool:
        """Return whether a call behind `end` tells one before it once more, as a second answer would."""
        if self._before_end is None:
            before = [one for one in self.by_id.values() if one.state == "whole" and not self._is_late(one)]
            self._before_end = {(one.name, one.arguments) for one in before}
        return (call.name, text) in self._before_end

    def are_all(self, told: Sequence[tuple[str, str, str]]) -> bool:
        """Return whether ids, names and arguments are those of all calls so far, in their order. An id counts only
        where both have one.
        """
        return 0 < len(told) == len(self.by_id) and all(
            (id in ("", call.id) or call.name in self._without_id)
            and name == call.name
            and is_same(text, call.arguments or call.text.raw())
            for (id, name, text), call in zip(told, self.by_id.values(), strict=True)
        )

    def account_for(self, told: Sequence[tuple[str, str, str]]) -> bool:
        """Return whether calls where none are read need not fail the answer: they are all of its own, or it fails."""
        return self.failed > 0 or self.are_all(told)

    def fail(self, call: OpenCall, answer: Answer, kind: CallFailureKind, message: str) -> None:
        """Fail an open call, with the reason."""
        if call.repeats is not None:
            call.repeats, call.id = None, ""
        call.is_settled, call.pending = True, None  # what was held tells the failure alone
        self.announce(call, answer)
        del self.by_index[call.index]
        call.state = "failed"
        call.live = None
        self.failed += 1
        if self._pieces is not None and self._is_piece(call.name):
            self._pieces.add(call.name)
        self._has_strays = self._has_strays or kind == "lost" or (kind == "nameless" and not call.text.is_blank())
        answer.events.append(ToolCallFailed(call.index, call.id, call.name, kind, message, call.text.raw()))


def _shares_no_key(one: str, other: str) -> bool:
    """Return whether two objects with members have none of the same name."""
    keys, others = _json.decode_object(one), _json.decode_object(other)
    return (
        isinstance(keys, dict) and isinstance(others, dict) and bool(keys and others) and keys.keys().isdisjoint(others)
    )


def _settled(call: OpenCall, bounds: AnswerBounds, *, proven: bool) -> Settled:
    """Return the result of a call's text. Arguments with too many values are not read."""
    if call.kind != "function":
        cut = Settled(None, kind="cut", problem="the response ended before the call did")
        return Settled(call.text.raw()) if proven else cut
    most = bounds.argument_values
    refused = beyond(call.text.raw(), most) if call.size > most else None
    return refused or call.text.settle(proven=proven)
