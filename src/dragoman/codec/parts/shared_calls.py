"""A call that continues under another id: one call whose id changes, or two that were taken for one.

LM Studio, GLM-4 and Poolside send a new id, and the name again, with each chunk of one call. Gateways send a new id for
each call, all at index 0. The same name under a new id, while the arguments so far are incomplete, may be either, so
what comes is held. If an id comes back they are two calls, separated by id. If none does until the end, they are one.
"""

from __future__ import annotations

from dragoman.codec.parts.argument_text import ArgumentText
from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.parts.open_parts import OpenCall


class _Shared:
    """One call and its ids, the latest last. `held`: what came under each since the second. `are_two`: one delta told
    two of them, so that they are calls.
    """

    __slots__ = ("are_two", "call", "held", "ids", "index", "is_held", "text")

    def __init__(self, call: OpenCall, index: int | None, *, is_held: bool) -> None:
        self.call = call
        self.index = index
        self.ids = [call.id]
        self.is_held = is_held
        self.are_two = False
        self.held: list[tuple[str, str]] = []
        self.text = ArgumentText()
        self.text.add(call.text.raw())

    def add(self, id: str, arguments: str) -> None:
        """Hold what came under an id, "" for none."""
        if id and id != self.ids[-1]:
            self.ids.append(id)
        if arguments:
            self.held.append((id, arguments))
            self.text.add(arguments)


class SharedCalls:
    """Such calls of one response. `behind`: the last one behind which another call began, by its index."""

    __slots__ = ("_assembly", "_at", "_by_id", "_open", "_parted", "_torn", "_unmatched", "behind")

    def __init__(self, assembly: Assembly, unmatched: list[OpenCall]) -> None:
        """Create it. `unmatched`: takes the calls that turn out to be further ones."""
        self._assembly = assembly
        self._unmatched = unmatched
        self._open: dict[_Shared, None] = {}  # in their order
        self._at: dict[int | None, _Shared] = {}  # those that are held, by the index of their deltas
        self._by_id: dict[str, _Shared] = {}
        self._parted: list[OpenCall] = []  # calls that were found to be several
        self.behind: dict[int | None, OpenCall] = {}
        self._torn: set[int | None] = set()  # indices whose deltas must say an id

    def is_torn(self, index: int | None) -> bool:
        """Return whether several calls share an index, so that it names none of them."""
        return index in self._torn

    def text_of(self, call: OpenCall) -> ArgumentText | None:
        """Return what came of a call under several ids: another id with its name may be of it too. None: under one."""
        shared = self._by_id.get(call.id)
        return None if shared is None else shared.text if shared.is_held else call.text

    def begin(self, call: OpenCall, index: int | None, id: str, arguments: str, *, is_named: bool) -> None:
        """Record that a call continues under another id. Without the name it can be no other call: nothing is held."""
        shared = self._by_id.get(call.id)
        if shared is None:
            shared = _Shared(call, index, is_held=is_named)
            self._open[shared] = None
            self._by_id[call.id] = shared
        self._by_id[id] = shared
        if is_named and not shared.is_held:  # it went on without its name before: what came since, is of one or of two
            self._drop(call)
        elif is_named:
            shared.add(id, arguments)
            self._at[index] = shared
        else:
            shared.add(id, "")
            self._assembly.add_arguments(call, arguments)

    def part(self, call: OpenCall) -> None:
        """Record that one delta told two ids of a call."""
        if (shared := self._by_id.get(call.id)) is not None:
            shared.are_two = True

    def take(self, index: int | None, id: str, name: str, arguments: str, where: str) -> OpenCall | None:
        """Take a fragment of a held call. Return None if it is another's: then it goes the usual way."""
        if id:
            shared = self._by_id.get(id)
            if shared is not None and id != shared.ids[-1]:
                self._part(shared)
                return None
            if shared is not None and name != shared.call.name and name in self._assembly.calls.offered_names:
                self._drop(shared.call)  # what came under this id was another's
                return shared.call
            if shared is None and self._assembly.calls.call_of(id) is not None:
                return None
            if shared is None and (shared := self._at.get(index)) is not None:
                is_new = name not in ("", shared.call.name) or not self._assembly.calls.goes_on(name, shared.text)
                if name and is_new:
                    self.behind[index] = self._at.pop(index).call  # another call begins here
                    return None
                if shared.is_held:
                    self._by_id[id] = shared
        elif index in self._torn:
            return self._lose(arguments, where)
        else:
            shared = self._at.get(index)
            if shared is not None and name not in ("", shared.call.name):
                return None
            if shared is not None and index is None and arguments.strip():
                self._assembly.deviate("lost-arguments", where, f"{len(shared.ids)} ids may have them")
                self._drop(shared.call)
                return shared.call
        if shared is None or not shared.is_held:
            return None
        self._assembly.deviate("changing-id", where)
        shared.add(id, arguments)
        return shared.call

    def _part(self, shared: _Shared) -> None:
        """Separate the calls, because an id came back."""
        self._forget(shared)
        call, assembly = shared.call, self._assembly
        if not call.is_open():
            return
        if not shared.is_held or any(not id for id, _ in shared.held):
            self._drop(call)
            return
        assembly.deviate("reused-index", "tool_calls", f"{len(shared.ids)} ids")
        self._torn.add(shared.index)
        calls = {call.id: call}
        for id in shared.ids:
            if id not in calls:
                calls[id] = assembly.open_call(id, call.name, kind=call.kind)
        self._parted += calls.values()
        self._unmatched += list(calls.values())[1:]
        for id, arguments in shared.held:
            assembly.add_arguments(calls[id], arguments)

    def _forget(self, shared: _Shared) -> None:
        self._open.pop(shared, None)
        for id in shared.ids:
            if self._by_id.get(id) is shared:
                del self._by_id[id]
        if self._at.get(shared.index) is shared:
            del self._at[shared.index]

    def _lose(self, arguments: str, where: str) -> OpenCall | None:
        """Take a delta with nothing but an index that several calls share."""
        if not arguments:
            return None
        self._assembly.deviate("lost-arguments", where, f"{len(self._parted)} calls may have them")
        for call in self._parted:
            self._drop(call)
        return self._parted[0]

    def _drop(self, call: OpenCall) -> None:
        message = f"tool call {call.name}: arguments came that do not say which call they belong to"
        self._assembly.drop_call(call, "lost", message)

    def close(self, *, is_good: bool) -> None:
        """End the response."""
        for shared in tuple(self._open):
            self._forget(shared)
            if not shared.call.is_open():
                continue
            is_needy = shared.text.is_blank() and not self._assembly.calls.takes_nothing(shared.call.name)
            if shared.is_held and (is_needy or not is_good or shared.are_two):
                self._drop(shared.call)
            for _, arguments in shared.held if shared.call.is_open() else ():
                self._assembly.add_arguments(shared.call, arguments)
        for call in self._parted:
            if call.text.is_blank() and not self._assembly.calls.takes_nothing(call.name):
                self._drop(call)
