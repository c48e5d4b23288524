"""Fragments whose labels name no call: assigned to the only call that may own them, else to none.

A fragment without an index and a known id belongs to the last call while no other call waits for arguments. One that
omits its index and brings a name or another id belongs to none. If several calls may own it, it is lost: none of them
is delivered, and no such fragment is assigned to any call from then on. A call of which nothing but its name came may
then be another one, repeated, so it is not run without arguments.
"""

from __future__ import annotations

from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.parts.open_calls import MOST_WAITING
from dragoman.codec.parts.open_parts import OpenCall


class Doubts:
    """What is known of the labels of one response.

    `_waiting` are the calls whose arguments may still come, `_bound` the indices (of parts) of calls with an index on
    the wire. `_is_torn`: fragments were lost. `_is_unsure`: a name may have been repeated, or begun a call.
    """

    __slots__ = (
        "_assembly", "_begun", "_bound", "_held", "_is_torn", "_is_unsure", "_lost", "_lost_indices", "_named_again",
        "_silent", "_waiting", "_with_index", "_without_id", "_without_index",
    )  # fmt: skip

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._waiting: list[OpenCall] = []
        self._bound: set[int] = set()
        self._begun = 0
        self._is_torn = False
        self._is_unsure = False
        self._held: set[int] = set()
        self._lost: set[str] = set()  # names and ids of calls that lost fragments, "" for any
        self._lost_indices: set[int] = set()  # indices on the wire of what was lost
        self._named_again: set[int] = set()  # calls whose name may have been that of another
        self._silent: set[int] = set()
        self._without_id: set[int] = set()
        self._with_index = False
        self._without_index = False

    def begin(self, call: OpenCall) -> None:
        """Record that a fragment opened a call."""
        self._begun += 1
        if not call.id:
            self._without_id.add(call.index)
        self._waiting.append(call)

    def hold(self, call: OpenCall) -> None:
        """Hold what comes of a call, because it may be two."""
        self._held.add(call.index)

    def see(self, call: OpenCall, index: int | None) -> None:
        """Record that a fragment of a call came with this index."""
        if index is None:
            self._without_index = True
        else:
            self._with_index = True
            self._bound.add(call.index)
            self._silent.discard(index)

    def may_go_on(self, call: OpenCall) -> bool:
        """Return whether a new id without a name continues a call: that has a name, and no other waits."""
        if self._are_too_many():
            return False
        return bool(call.name or not call.id) and all(
            other.text.is_whole() for other in self._waiting if other is not call
        )

    def pass_over(self, index: int | None) -> None:
        """Take an entry with nothing but an index that no call has: one may have begun."""
        if index is not None:
            self._silent.add(index)

    def tear(self) -> None:
        """Record that one delta has several fragments that name no call: only their places distinguish them."""
        if not self._are_too_many() and self._waiting:
            self._lose(self._waiting, "")
        self._is_torn = self._is_unsure = True

    def orphan(self, index: int | None, id: str) -> OpenCall:
        """Return a failing call for arguments of a call that began in an unreadable frame."""
        if index is not None:
            self._lost_indices.add(index)
        return self._lose([self._assembly.open_call(None, "", wait=True)], id)

    def share(self, call: OpenCall, id: str) -> None:
        """Record that fragments of another call may have gone to this one."""
        self._lose([call], id)

    def judge(self, index: int | None, id: str, name: str, arguments: str, last: OpenCall | None) -> OpenCall | None:
        """Return a call that a fragment without a known id or index may belong to, if the fragment is lost, else None.

        Args:
            last: the call of the previous fragment.
        """
        if not (name or arguments):  # a blank too may be some of a text
            return None
        is_sure = name and id and index is not None and not (self._lost or self._lost_indices or self._without_id)
        if last is None or is_sure:
            return None  # it is the first, or all its labels came, and so did those of all others
        if id and id in self._lost:
            return self._lose([last], id)
        if index in self._lost_indices:
            return last  # the rest of what was lost
        if self._are_too_many():
            return self._lose([last], name, id)
        if not name:
            return self._judge_nameless(index, id, arguments, last)
        if not id and arguments.strip() and not self._lost.isdisjoint((name, "")):
            return self._lose([last], name)
        if index is None and not last.name and last.is_open():
            nameless = [call for call in self._waiting if not call.name]
            has_index = last.index in self._bound  # so its own name would come with it
            if has_index or last.text.is_closed() or _begins(arguments) or len(nameless) > 1:
                # its name comes late, or that of another, or a call begins
                lost = self._lose([last, *nameless], name, id)
                return lost if last.text.is_started() else None
        namesakes = [call for call in self._waiting if call.name == name and self._may_be(call, index, id)]
        if last in namesakes and index is None:
            self._named_again.add(last.index)
        if last in namesakes and not (index is not None or id or arguments.strip() or last.text.is_started()):
            self._is_torn = True  # its name is said again, or another call begins
        if last in namesakes and index is None and (id or not _begins(arguments)):
            namesakes.remove(last)  # its name is said again
        if any(
            call.text.is_started()
            or call.index in self._held
            or (call is not last and arguments.strip() not in ("", "{}") and not call.text.is_over())
            for call in namesakes
        ):
            return self._lose(namesakes, name)
        self._is_unsure = (
            self._is_unsure
            or namesakes not in ([], [last])
            or (bool(namesakes) and index is not None)
            or (index is None and any(call.name == name and self._is_needy(call) for call in self._waiting))
        )
        return None

    def _judge_nameless(self, index: int | None, id: str, arguments: str, last: OpenCall) -> OpenCall | None:
        """As `judge`, for one without a name."""
        owners = [call for call in self._waiting if call is not last and self._may_wait(call, last)]
        is_alone = self._begun == 1 and last.text.is_started() and last.index not in self._bound
        is_other = self._without_index and not is_alone
        if index is None:
            is_other = bool(id and last.id) and last.index in self._bound
        may_be_two = not last.name or last.index in self._named_again
        is_second = may_be_two and last.text.is_started() and _begins(arguments)
        is_second = is_second or (last.is_doubtful and index is None and not id and arguments.strip() not in ("", "{}"))
        is_second = is_second or (index is None and self._may_be_bare(last))
        is_lost = owners or self._is_torn or self._silent or is_other or is_second
        if is_lost and index is not None:
            self._lost_indices.add(index)
        return self._lose([last, *owners], "", id) if is_lost else None

    def _are_too_many(self) -> bool:
        """Update which calls still wait. If they are too many, each of them fails."""
        self._waiting = [call for call in self._waiting if call.is_open() and not call.text.is_closed()]
        if len(self._waiting) <= MOST_WAITING:
            return False
        self._lose(self._waiting, "")
        return True

    def _may_wait(self, call: OpenCall, last: OpenCall) -> bool:
        """Return whether a call waits for arguments.

        `{}` may be a placeholder if the last call has one too, and is one if the tool needs more.
        """
        if not call.text.is_whole():
            return True
        return call.text.is_empty() and (
            (last.text.is_empty() and last.text.is_whole()) or not self._assembly.calls.takes_nothing(call.name)
        )

    def _is_needy(self, call: OpenCall) -> bool:
        is_held = call.index in self._held
        return call.text.is_empty() and not is_held and not self._assembly.calls.takes_nothing(call.name)

    def _may_be_bare(self, call: OpenCall) -> bool:
        """Return whether `{}` of a call may be all of its arguments, or a placeholder for what comes."""
        return call.text.is_empty() and call.text.is_whole() and self._assembly.calls.takes_nothing(call.name)

    def _may_be(self, call: OpenCall, index: int | None, id: str) -> bool:
        """Return whether these labels may be those of a call that came without them."""
        return (index is None or call.index not in self._bound) and (not id or call.index in self._without_id)

    def _lose(self, owners: list[OpenCall], *labels: str) -> OpenCall:
        self._lost.update(labels, (call.name for call in owners))
        self._is_torn = self._is_unsure = True
        if all(call.state == "whole" for call in owners):  # each has left, so another one lacks them
            owners = [self._assembly.open_call(None, "", wait=True)]
        self._assembly.deviate("lost-arguments", "tool_calls", f"{len(owners)} calls may have them")
        for call in owners:
            self._drop(call)
        return owners[0]

    def _drop(self, call: OpenCall) -> None:
        message = f"tool call {call.name or '(no name)'}: arguments came that do not say which call they belong to"
        self._assembly.drop_call(call, "lost", message)

    def close(self) -> None:
        """End the response: a call without arguments is one only if the labels are certain."""
        is_mixed = self._with_index and self._without_index
        if self._assembly.ending.is_torn or (self._begun > 1 and (self._is_unsure or is_mixed)):
            for call in self._waiting:
                if call.is_open() and self._assembly.calls.is_silent(call):
                    self._drop(call)


def _begins(arguments: str) -> bool:
    return arguments.lstrip().startswith("{")
