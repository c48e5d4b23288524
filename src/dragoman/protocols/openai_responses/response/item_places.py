"""Find the output item of an event by its call id, item id and index together.

Specification: `output_index` names an item; `item_id` repeats its id. Servers omit some of them, give another item id
with each event (Copilot), or number all items 0. Arguments that may belong to several calls are given to none: they
count as lost until a final event repeats them whole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from dragoman import _json
from dragoman.codec.parts.open_calls import MOST_WAITING
from dragoman.protocols.openai_responses.request.namespaces import offered_name

if TYPE_CHECKING:
    from dragoman._json import Json
    from dragoman.protocols.openai_responses.response.item import Item

    #: Takes note of calls that may own arguments that came.
    Doubt: TypeAlias = Callable[[list[Item]], None]


class Found(NamedTuple):
    """The items that an event may mean; if `is_sure`, the only one."""

    items: list[Item]
    is_sure: bool


class Places:
    """Finds the items of one response by their call id, item id and index.

    Attributes:
        is_shared: several items came with one index, so that an id counts more.
    """

    __slots__ = ("_by_call", "_by_id", "_by_index", "_calls", "_last", "_repeated_ids", "_untold", "is_shared")

    def __init__(self) -> None:
        self._by_call: dict[str, Item] = {}
        self._by_id: dict[str, Item] = {}
        self._repeated_ids: set[str] = set()  # that several items have, so that they name none
        self._by_index: dict[int, Item] = {}
        self._calls: list[Item] = []  # those that are calls, but such as were seen to have ended
        self._untold: deque[Item] = deque(maxlen=MOST_WAITING)  # the last ones that are calls
        self._last: Item | None = None
        self.is_shared = False

    def add(self, item: Item) -> None:
        """Add an item."""
        self._last = item
        if item.id and self._by_id.setdefault(item.id, item) is not item:
            self._repeated_ids.add(item.id)
        if item.call_id:
            self._by_call[item.call_id] = item
        if item.index >= 0:
            self._by_index[item.index] = item
        if item.call is not None:
            self._calls.append(item)
            self._untold.append(item)

    def announced(self, index: int, id: str, fields: dict[str, Json]) -> Item | None:
        """Return the item that a start may tell once more: that of its index, or a call that waits for arguments."""
        if index < 0:
            return self.by_id(id)
        named = self._by_call.get(_text(fields, "call_id")) if index not in self._by_index else None
        call = named.call if named is not None and not named.done else None
        waits = call is not None and call.name and not call.text.is_closed()
        if (
            named is not None
            and call is not None
            and waits
            and offered_name(fields, {}, (call.name,)) in ("", call.name)
        ):
            # quirk: responses-start-at-another-index
            self._by_index[index] = named
        return self._by_index.get(index)

    def by_id(self, id: str) -> Item | None:
        """Return the only item with this id."""
        return self._by_id.get(id) if id and id not in self._repeated_ids else None

    def is_sure(self, item: Item) -> bool:
        """Return whether an event named an item by an id that no other has: what came is its own."""
        return item.is_named and self.by_id(item.id) is item

    def are_own(self, item: Item, id: str, call_id: str, text: str) -> bool:
        """Return whether arguments are certainly the item's: it waits for some, and the ids are its own or name no
        other item.

        A `text` that may be empty is checked for what stands beside it.
        """
        is_named = (id == item.id or id not in self._by_id) and (not call_id or call_id == item.call_id)
        phase = item.call.text.phase if is_named and item.call is not None else "closed"
        return phase != "closed" and (phase != "held" or ('"' in text and not _is_of_another(item, id)))

    def is_named(self, index: int, id: str, call_id: str) -> bool:
        """Return whether an event names an item that came."""
        return call_id in self._by_call or id in self._by_id or index in self._by_index

    def find(self, index: int, id: str) -> Item | None:
        """Return the item of an event that is no call's: by its index, else by its id, else the last open one."""
        if index >= 0:
            item = self._by_index.get(index)
            return self.by_id(id) or item if item is None or self.is_shared else item
        item = self.by_id(id)
        if item is None and self._last is not None and not self._last.done:
            item = self._last
        return item

    def find_call(self, index: int, id: str, call_id: str, *, doubt: Doubt) -> Found:
        """Return the call of an event's arguments, or no item if it was never announced. `doubt`: see `open_calls`."""
        at_index = self._by_index.get(index)
        if at_index is not None and at_index.call is not None and not call_id and self.by_id(id) is at_index:
            at_index.is_named = True  # the usual event: both labels name one call
            return Found([at_index], True)
        named = self._by_call.get(call_id) if call_id else None
        found = [item for item in (named, self.by_id(id)) if item is not None]
        at_index = self._by_index.get(index) if index >= 0 else None
        if at_index is not None and not (self.is_shared and found):
            found.append(at_index)
        found = list(dict.fromkeys(found))
        if found:
            is_strange = bool(call_id) and named is None and any(item.call_id for item in found)
            if index >= 0 and at_index is None and named is None:  # another index: behind a whole call it is another's
                is_strange = any(item.index >= 0 and item.call and item.call.text.is_whole() for item in found)
            if found == [at_index] and named is None and self.by_id(id) is None:
                if self.is_shared and (sharing := self._sharing(index, doubt))[1:]:
                    return Found(sharing, False)
                is_strange = is_strange or _is_of_another(found[0], id)
            found = [item for item in found if item.call is not None]
            if len(found) == 1 and not is_strange:
                found[0].is_named = found[0].is_named or found[0].id == id
                return Found(found, True)
            return Found(found or self.waiting_calls(doubt), False)
        if call_id and index < 0 and (waiting := self._without_id(doubt)) is not None:
            waiting.call_id = call_id
            self._by_call[call_id] = waiting
            return Found([waiting], True)
        if call_id or index >= 0:
            return Found([], True)
        owners = [item for item in self.waiting_calls(doubt) if not (id and item.is_named and id != item.id)]
        return Found(owners, not owners[1:] and not any(_is_of_another(item, id) for item in owners))

    def _sharing(self, index: int, doubt: Doubt) -> list[Item]:
        """Return the calls that wait for arguments, and came with one index."""
        return [item for item in self.waiting_calls(doubt) if item.index == index and not item.is_final]

    def _without_id(self, doubt: Doubt) -> Item | None:
        """Return the only call without an id and without arguments."""
        waiting = [item for item in self.waiting_calls(doubt) if not item.call_id]
        one = waiting[0] if len(waiting) == 1 else None
        return one if one is not None and one.call is not None and one.call.text.is_empty() else None

    def find_told(self, text: str, name: str) -> Item | None:
        """Return the call, of this name if it has one, whose deltas amount to these whole arguments, told by no event.

        Another call's start may have ended it. Of very many calls the last ones are looked at.
        """
        wanted = _without_spaces(text)
        for item in self._untold:
            call = item.call
            if call is None or item.is_final or call.state == "failed" or not call.text.is_whole():
                continue
            said = (call.text.raw(), call.arguments) if not call.name or name in ("", call.name) else ()
            if wanted in map(_without_spaces, said):
                return item
        return None

    def _like(self, fields: dict[str, Json], *, is_named: bool) -> tuple[Item | None, Item | None]:
        """Return the first call with the arguments of a whole one, and the first at all, that may be it: its name fits,
        it has not ended, and, if the whole one is named, has no call id.
        """
        said = fields.get("arguments", "")
        text = _without_spaces(said if isinstance(said, str) else _json.to_text(said))
        told = [
            (item, item.call.text)
            for item in self._untold
            if item.call is not None
            and not item.done
            and item.call.name in ("", fields.get("name"))
            and not (is_named and item.call_id)
        ]
        alike = (item for item, own in told if _without_spaces(own.raw()) == text)
        return next(alike, None), told[0][0] if told else None

    def open_calls(self, doubt: Doubt) -> list[Item]:
        """Return the calls that have not ended.

        If they are very many, `doubt` is called with them, and none is returned from then on: an event without labels
        is looked for among few.
        """
        self._calls = [item for item in self._calls if not item.done and item.call is not None and item.call.is_open()]
        if len(self._calls) > MOST_WAITING:
            doubt(self._calls)
            self._calls = []
        return self._calls

    def waiting_calls(self, doubt: Doubt) -> list[Item]:
        """Return those whose arguments may still come."""
        calls = self.open_calls(doubt)
        return [item for item in calls if item.call is not None and not item.call.text.is_closed()]

    def find_whole(self, index: int, fields: dict[str, Json]) -> Item | None:
        """Return the item that a whole one ends: a call's id counts most, then the item's id, then its index."""
        call_id = _text(fields, "call_id")
        item = self._by_call.get(call_id) if call_id else None
        if item is not None:
            return item
        id = _text(fields, "id")
        item = self.find(index, id)
        if index < 0 and self.by_id(id) is None and (item is None or item.call is not None):
            alike, told = self._like(fields, is_named=bool(call_id))
            item = alike or (item if call_id or id else told or item)
        if item is None or not call_id or not item.call_id:
            return item
        # another call id at the same place: it rotates as the item's id does, or this is another call, as behind an end
        if item.call is not None and not item.done and item.call.name == offered_name(fields, {}, (item.call.name,)):
            return item
        item.is_doubtful = not item.done
        return None


def _is_of_another(item: Item, id: str) -> bool:
    """Return whether arguments under an id may be those of another call than the item, which may be whole."""
    if not id or id == item.id or item.call is None:
        return False
    return item.is_final or (not item.call.name and item.call.text.is_whole())


def _without_spaces(text: str) -> bytes:
    """Return arguments without white space between their values: an end may tell an object, the deltas its text."""
    return _json.without_spaces(text.encode("utf-8", "surrogatepass")).strip()


def _text(fields: dict[str, Json], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""
