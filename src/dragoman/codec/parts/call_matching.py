"""Match fragments with calls: one accumulator for every dialect of index and id.

Specification (OpenAI Chat): an index counts up per call and stays with it; id and name come once. Servers send all
parallel calls at index 0, no index, no id, a new id with each chunk, the name repeatedly or in pieces.
`CallSlots.fragment` applies the rules in order.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Literal, TypeAlias

import msgspec

from dragoman.codec.parts.argument_growth import grow_by_many, tell_whole
from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.parts.call_names import NOTHING, completes, extends, join_name, without_words
from dragoman.codec.parts.doubtful_calls import Doubts
from dragoman.codec.parts.open_parts import OpenCall
from dragoman.codec.parts.settled_arguments import is_same
from dragoman.codec.parts.shared_calls import SharedCalls
from dragoman.deviations import clip
from dragoman.secret import name_alone
from dragoman.types import Native

CallKind: TypeAlias = Literal["function", "custom"]
#: Where a call stands that has no index by its form. No wire has this one, so no fragment with an index lets it grow.
OUTSIDE: Final = -(1 << 62)


class CallSlots(msgspec.Struct, eq=False):
    """Finds the call of each fragment of one response and appends to it. `by_index`: the last call at each index.
    `twice`: indices that several fragments of the delta have which is read.
    """

    _assembly: Assembly
    by_index: dict[int, OpenCall] = {}
    _doubts: Doubts | None = None  # once a fragment came
    _last: OpenCall | None = None
    _index_of: dict[int, int] = {}  # on the wire, of the last fragment of each part
    _left: dict[int, OpenCall] = {}  # calls that went on at an index which nobody opened, by their own
    _unmatched: list[OpenCall] = []  # calls that a final message may repeat
    _doubted: list[tuple[OpenCall, list[OpenCall]]] = []  # calls of it that those may be, told otherwise
    # calls at whose index another one began, and whether its name may be theirs, told as far as it is known
    _replaced: list[tuple[OpenCall, bool]] = []
    _crowded: set[int] = set()  # indices at which several calls are open, so that they name none of them
    twice: Collection[int | None] = ()
    _shared: SharedCalls | None = None  # once a call came under a second id

    __repr__ = name_alone

    def grow(self, index: int | None, arguments: str) -> bool:
        """Take the usual delta, which has neither id nor name. False: it is not that plain, use `fragment`."""
        call = self.by_index.get(index) if index is not None else None
        if call is None or call.state != "announced" or call.kind != "function":
            return False
        self._assembly.add_arguments(call, arguments)
        self._last = call
        return True

    def grow_many(self, index: int, arguments: list[str]) -> int:
        """Take non-empty deltas of one call that came together, as `grow` does."""
        call = self.by_index.get(index)
        if call is None or call.state != "announced" or call.kind != "function":
            return 0
        self._last = call
        return grow_by_many(call, arguments, self._assembly)

    def fragment(
        self,
        index: int | None,
        id: str,
        name: str,
        arguments: str,
        *,
        kind: CallKind = "function",
        where: str = "tool_calls",
    ) -> OpenCall:
        """Take one fragment. `index`: None when the wire says none; `id`, `name`, `arguments`: "" likewise."""
        name = self._assembly.calls.without_blanks(name, self._assembly)
        if name in NOTHING or id in NOTHING:
            id, name = without_words(id, name, where, self._assembly)
        told = index
        if index in self._crowded:
            index = None
        if index is None and not (id or name) and (lost := self._doubt().judge(index, id, name, arguments, self._last)):
            return lost
        if self._shared is not None and (held := self._shared.take(index, id, name, arguments, where)) is not None:
            return held
        at_index = self.by_index.get(index) if index is not None else None
        if told is None:
            self._assembly.deviate("missing-index", where)
        known = self._known(id, at_index)
        named = at_index if not id else known
        if named is not None and named.state == "failed":
            return named  # its own still, and lost
        if index in self._left and not name and known in (None, self._left[index]):
            return self._come_back(self._left[index], id, arguments)
        if known is None and (lost := self._lost(at_index, index, id, name, arguments)) is not None:
            return lost
        call = self._find(at_index, index, id, name, arguments, where)
        if call is None:
            call = self._begin(index, id, name, kind=kind, where=where)
            self._look_back(call, at_index, index, name, arguments)
            if told is not None and index is None:
                self._assembly.deviate("reused-index", where, f"index {told}")
        else:
            self._go_on(call, index, id, name, arguments, where)
        index = self._place(call, index)
        if id and call.id and id != call.id and call.repeats is None and call.is_open():
            self._share(call, index, id, name, arguments)
            return call
        if self._shared is not None and self._shared.is_torn(index):
            self.by_index.pop(index or 0, None)
        if arguments or not call.fragments:
            self._assembly.add_arguments(call, arguments)
        self._announce(call)
        return call

    def _place(self, call: OpenCall, index: int | None) -> int | None:
        """Record where the last fragment of a call came. Return its index if that names calls."""
        if index in self._crowded:
            index = None
        self._doubt().see(call, index)
        self._last = call
        if index is not None:
            self.by_index[index] = call
            self._index_of[call.index] = index
        if call.is_doubtful:
            self.crowd(index)  # what comes next there may be of the next call, whose name is as late
        return index

    def begin(self, index: int, id: str, name: str, arguments: str) -> OpenCall:
        """As `fragment`, for one with all labels: most often a tool's call begins, at the next index."""
        calls = self._assembly.calls
        if (
            index != len(self.by_index)
            or index in self.by_index
            or id in calls.by_id
            or id in NOTHING
            or name not in calls.offered_names
            or self._shared is not None
            or self._left
            or self._crowded
        ):
            return self.fragment(index, id, name, arguments)
        doubts = self._doubt()
        if (lost := doubts.judge(index, id, name, arguments, self._last)) is not None:
            return lost
        call = self._last = self.by_index[index] = self._assembly.open_call(id, name, wait=True)
        self._unmatched.append(call)
        self._index_of[call.index] = index
        doubts.begin(call)
        doubts.see(call, index)
        self._assembly.add_arguments(call, arguments)
        self._announce(call)
        return call

    def misname(self, index: int | None, id: str, name: str) -> bool:
        """Take a fragment with a name where none is read. Return whether it was lost.

        Unless the name is that of the call that it would continue, it begins another call, which fails and takes what
        follows. The former call fails too if more of it may come.
        """
        at_index = self._last if index is None else self.by_index.get(index)
        call = self._assembly.calls.call_of(id) if id else at_index
        if call is not None and call.name == name:
            return False
        for earlier in (call, at_index):
            if earlier is not None and earlier.is_open() and not earlier.text.is_closed():
                message = f"tool call {earlier.name or '(no name)'}: what may be more of it has another name"
                self._assembly.drop_call(earlier, "lost", message)
        misnamed = self._begin(index, "", "", kind="function", where="tool_calls")
        self._assembly.drop_call(misnamed, "nameless", f"a tool call has its name, {clip(name)}, in another place")
        if index is not None:
            self.by_index[index] = misnamed
        self._doubt().see(misnamed, index)
        self._last = misnamed
        return True

    def _doubt(self) -> Doubts:
        if self._doubts is None:
            self._doubts = Doubts(self._assembly)
        return self._doubts

    def pass_over(self, index: int | None) -> None:
        """Take an entry that has nothing but its index."""
        if index not in self.by_index:
            self._doubt().pass_over(index)

    def crowd(self, index: int | None) -> None:
        """Record that an index names several open calls: from now on it counts as none."""
        if index is not None:
            self._crowded.add(index)
            self.by_index.pop(index, None)

    def tear(self) -> None:
        """Record that fragments that came together name no call."""
        self._doubt().tear()

    def _known(self, id: str, at_index: OpenCall | None) -> OpenCall | None:
        """Return the call of an id; of two that came under it, the one at the index."""
        if id and at_index is not None and at_index.id == id:
            return at_index
        return self._assembly.calls.call_of(id) if id else None

    def _find(
        self, at_index: OpenCall | None, index: int | None, id: str, name: str, arguments: str, where: str
    ) -> OpenCall | None:
        """Return the call that a fragment continues, or None if it begins a new one."""
        known, offered = self._known(id, at_index), self._assembly.calls.offered_names
        if known is not None and known is not at_index:
            return self._find_by_id(known, at_index, name, index=index, where=where)
        call = at_index
        if call is None and index is not None:
            return self._find_unindexed(id, name, arguments, where)
        if call is None:
            call = self._last
        if call is None:
            return None
        if known is call:
            # a whole call again under one id: the assembly tells a repetition from another call
            if name and (call.text.is_over() or (name != call.name and call.text.is_whole())):
                return call if extends(call, name, offered) or self._is_rest(call, name, arguments) else None
            return call if call.is_open() or not (name or arguments.strip()) else None
        if not id:
            return call if self._continues(call, name, arguments) else None
        if not name and call.text.is_over() and arguments.strip() not in ("", "{}" if call.name else ""):
            return None  # an object of its own
        if not name:  # quirk: id-new-on-every-chunk
            return call if at_index is not None or self._doubt().may_go_on(call) else None
        if not call.id and self._continues(call, name, arguments):
            return call  # a late id
        return call if name == call.name and call.is_open() and self._assembly.calls.goes_on(name, call.text) else None

    def _lost(
        self, at_index: OpenCall | None, index: int | None, id: str, name: str, arguments: str
    ) -> OpenCall | None:
        """Return the call that a fragment without a known id may belong to, if the fragment is lost, else None."""
        is_own = at_index is not None and id in ("", at_index.id)
        if arguments and not (name or is_own) and self._assembly.ending.is_torn:
            return self._doubt().orphan(index, id)
        if at_index is None and (id or name or index is not None):
            return self._doubt().judge(index, id, name, arguments, self._last)
        return None

    def _find_by_id(
        self, known: OpenCall, at_index: OpenCall | None, name: str, *, index: int | None, where: str
    ) -> OpenCall | None:
        """Return the call of a fragment whose id is that of another call than the one at its index."""
        if name and not known.is_open():
            return None
        if name and name == known.name and (known.text.is_closed() if index is None else known.text.is_whole()):
            return None
        if name and known.name and name != known.name and not extends(known, name, self._assembly.calls.offered_names):
            return None
        is_elsewhere = self._index_of.get(known.index, index) != index
        if at_index is not None and is_elsewhere and not (name or known.text.is_over() or at_index.text.is_over()):
            self._doubt().share(at_index, known.id)  # the labels name one each
            self._doubt().share(known, known.id)
        if at_index is not None or known not in self.by_index.values():
            return known
        self._assembly.deviate("duplicate-id", where, "the same id at another index")
        return known

    def _find_unindexed(self, id: str, name: str, arguments: str, where: str) -> OpenCall | None:
        """Return the last call if it may continue at an unused index with nothing that begins a call."""
        last = self._last
        if id or name or last is None or not last.name or not last.is_open() or last.text.is_closed():
            return None
        if not last.text.is_started() and arguments.lstrip()[:1] == "{":
            return None
        self._assembly.deviate("odd-index", where)
        own = self._index_of.get(last.index)
        if own is not None and self.by_index.get(own) is last:
            del self.by_index[own]
            self._left[own] = last
        return last

    def _come_back(self, call: OpenCall, id: str, arguments: str) -> OpenCall:
        """Take a fragment of a call that continued at an unopened index and returns to its own.

        The pieces at the other index may be those of a call whose beginning is lost.
        """
        if arguments:
            self._doubt().share(call, id)
        return call

    def _continues(self, call: OpenCall, name: str, arguments: str) -> bool:
        """Return whether a fragment without a new id continues this call."""
        offered = self._assembly.calls.offered_names
        if not name or self._is_rest(call, name, arguments):
            return True
        if not call.is_open():
            return False
        if not call.name or extends(call, name, offered) or completes(call, name, offered):
            return True
        if name == call.name:  # `{}` may have been a placeholder
            return not call.text.is_over() and not (call.text.is_whole() and arguments.strip() == "{}")
        return call.text.is_started() and name not in offered

    def _is_rest(self, call: OpenCall, name: str, arguments: str) -> bool:
        """Return whether a fragment says no more behind whole arguments than a call of its tool cannot be: nothing."""
        is_blank = name == call.name and arguments.strip() in ("", "{}")
        return is_blank and call.text.is_over() and not self._assembly.calls.takes_nothing(name)

    def _share(self, call: OpenCall, index: int | None, id: str, name: str, arguments: str) -> None:
        """Record that the call continues under another id: it may be two calls, so nothing more of it may leave."""
        if self._shared is None:
            self._shared = SharedCalls(self._assembly, self._unmatched)
        call.is_doubtful = call.is_doubtful or call.text.is_closed()
        self._doubt().hold(call)
        self._shared.begin(call, index, id, arguments, is_named=bool(name))
        if index in self.twice:
            self._shared.part(call)
        if name and index is not None:
            self.by_index.pop(index, None)

    def close(self, *, is_good: bool) -> None:
        """End the response. A call under several ids, none of which came back, is one call if the end is good."""
        if self._shared is not None:
            self._shared.close(is_good=is_good)

    def _look_back(
        self, call: OpenCall, at_index: OpenCall | None, index: int | None, name: str, arguments: str
    ) -> None:
        """Take a call that has begun: it may be the one before it again, or its name may be that one's."""
        before = at_index or (self._shared and self._shared.behind.get(index)) or self._last
        is_near = index is None or before is at_index
        if before is not None and self._adds_nothing(before, name, arguments, is_near=is_near):
            call.repeats = before  # it is one, if nothing follows
        if at_index is not None and name and at_index.is_open() and not (at_index.name or at_index.text.is_blank()):
            self._doubt().share(at_index, call.id)
            self._doubt().share(call, call.id)

    def _go_on(self, call: OpenCall, index: int | None, id: str, name: str, arguments: str, where: str) -> None:
        """Take the id and name of a fragment for a call that has begun."""
        if call.repeats is not None and call.repeats.id != call.id and arguments.strip():
            call.repeats = None  # it is another
        self._join_id(call, id, where)
        join_name(call, name, where, self._assembly)

    def _begin(self, index: int | None, id: str, name: str, *, kind: CallKind, where: str) -> OpenCall:
        if index is not None and index in self.by_index:
            self._assembly.deviate("reused-index", where, f"index {index}")
            before = self.by_index[index]
            self._replaced.append((before, not id and name != before.name and name.startswith(before.name)))
            if before.is_open() and (not before.name or self._waits(before)):
                self.crowd(index)
        elif index not in (None, OUTSIDE, len(self.by_index) + len(self._crowded)):
            self._assembly.deviate("odd-index", where, f"index {index}")
        call = self._assembly.open_call(id, name, kind=kind, wait=True)
        self._unmatched.append(call)
        self._doubt().begin(call)
        return call

    def _waits(self, call: OpenCall) -> bool:
        """Return whether arguments of a call must still come."""
        return not call.text.is_over() and not (call.text.is_empty() and self._assembly.calls.takes_nothing(call.name))

    def _adds_nothing(self, call: OpenCall, name: str, arguments: str, *, is_near: bool) -> bool:
        """Return whether a fragment that begins a call behind another one may say no more than that.

        `is_near`: no index tells them apart.
        """
        if name != call.name or arguments.strip() not in ("", "{}"):
            return False
        text = self._shared.text_of(call) if self._shared is not None else None
        if text is not None and not arguments.strip():
            return True
        is_over = text.is_over() if text is not None else is_near and call.text.is_over()
        return is_over and not self._assembly.calls.takes_nothing(name)

    def _join_id(self, call: OpenCall, id: str, where: str) -> None:
        if not id or id == call.id:
            return
        if call.state == "waiting" and not call.id:
            call.id = id
            self._assembly.calls.register(call)
            self._assembly.deviate("late-id", where)
        elif call.repeats is None or call.repeats.id != id:
            self._assembly.deviate("changing-id", where)

    def _announce(self, call: OpenCall) -> None:
        """Send the call's start, once its id and complete name are known."""
        if call.state != "waiting" or not call.name:
            return
        offered = self._assembly.calls.offered_names
        is_offered = call.name in offered
        is_begun = "\n".join(("", *offered)).count("\n" + call.name) > is_offered  # another name begins with this one
        if is_begun and (call.fragments < 2 or not is_offered):
            return
        if call.id or call.fragments > 1:
            self._assembly.calls.announce(call, self._assembly)

    # ------------------------------------------------------------ whole calls

    def whole(
        self,
        id: str,
        name: str,
        arguments: str,
        *,
        kind: CallKind = "function",
        signature: str | None = None,
        native: Native | None = None,
        where: str = "message.tool_calls",
    ) -> OpenCall:
        """Add a call of a whole message. Each entry is a separate call, unless it repeats a whole one with its id.

        In a final message that follows deltas, what was streamed already counts once.
        """
        assembly = self._assembly
        name = assembly.calls.without_blanks(name, assembly)
        self.close(is_good=False)
        assembly.calls.settle_ripe(assembly)
        for call in self._unmatched:
            if (id and call.id == id) or (
                call.name == name and (not id or call.state != "whole" or is_same(call.arguments, arguments))
            ):
                self._unmatched.remove(call)
                assembly.deviate("duplicate-final", where)
                if name in ("", call.name):
                    tell_whole(call, arguments, where, assembly)
                else:
                    assembly.contradict(call, where)
                call.signature = call.signature or signature
                return call
        told = assembly.whole_call(id, name, arguments, kind=kind, signature=signature, native=native)
        left_out = [call for call in self._unmatched if call.name == name and call.state == "whole"]
        if left_out:
            self._doubted.append((told, left_out))
        return told

    def compare(self) -> None:
        """Compare a final message with the stream.

        A call that the message left out or reports differently contradicts it. One whose arguments may have gone to
        another call, or to none, fails.
        """
        if self._doubts is not None:
            self._doubts.close()
        for call, may_grow in self._replaced:
            is_silent = call.kind == "function" and call.text.is_empty()
            if is_silent and (may_grow or not self._assembly.calls.takes_nothing(call.name)):
                message = f"tool call {call.name}: another one came in its place before its arguments"
                self._assembly.drop_call(call, "lost", message)
        for told, left_out in self._doubted:
            if any(call in self._unmatched for call in left_out):
                self._assembly.contradict(told, "message.tool_calls")
