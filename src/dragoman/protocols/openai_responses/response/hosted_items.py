"""Items that only this protocol has, passed on as they come: what a provider's own tool does.

Specification: https://platform.openai.com/docs/api-reference/responses-streaming (read 2026-11-21). Their events name
them by `output_index`, most by `item_id` too. The item at the end has everything that counts.
"""

from __future__ import annotations

from typing import Final

from dragoman._json import Json, Raw
from dragoman.codec.json_fields import read_fields, read_text
from dragoman.codec.parts.assembly import Assembly
from dragoman.events import NativeEvent
from dragoman.protocols.openai_responses.response.items import Items
from dragoman.protocols.openai_responses.wire import NAME, Place

_ADDED: Final = "response.output_item.added"
#: Events that belong to no item, and that no item repeats.
_OF_RESPONSE: Final = ("response.audio.", "response.steer")


def tell_live(kind: str, value: dict[str, Json], place: Place, *, items: Items, assembly: Assembly) -> None:
    """Pass an event of an item that only this protocol has, or of none."""
    of_part = not kind.startswith(_OF_RESPONSE)
    if of_part:
        index, id = value.get("output_index"), value.get("item_id")
        if type(index) is not int:
            return  # the encoder could not place it
        item = items.places.find(index, id if isinstance(id, str) else "")
        if item is None or item.kind != "opaque" or item.done:
            return
    assembly.native_event(NativeEvent(NAME, place.text(value), of_part))


def tell_input(kind: str, value: dict[str, Json], place: Place, *, items: Items, assembly: Assembly) -> bool:
    """Pass an event about the input of a custom call that the provider runs itself. Return False for a client's own."""
    index, id = value.get("output_index"), value.get("item_id")
    item = items.places.find(index, id if isinstance(id, str) else "") if type(index) is int else None
    if item is None or item.kind != "opaque":
        return False
    tell_live(kind, value, place, items=items, assembly=assembly)
    return True


class HostedItems:
    """The announced items of an answer that is being encoded: their places there."""

    __slots__ = ("_by_id", "_by_index")

    def __init__(self) -> None:
        self._by_index: dict[bytes, int] = {}  # the provider's `output_index` → ours
        self._by_id: dict[bytes, int] = {}

    def place(self, event: NativeEvent, next_index: int) -> tuple[str, dict[str, Json]] | None:
        """Return the type of an event and its fields with their item's place in this answer; None for an unknown item.

        Args:
            next_index: the place of an item that the event announces.
        """
        fields = read_fields(event.raw) or {}
        kind, index = read_text(fields.get("type")), fields.get("output_index")
        placed: dict[str, Json] = {key: raw for key, raw in fields.items() if key not in ("type", "sequence_number")}
        if index is None:
            return kind, placed
        if kind == _ADDED:
            self._by_index[bytes(index)] = next_index
            id = (read_fields(fields.get("item")) or {}).get("id")
            if id is not None:
                self._by_id[bytes(id)] = next_index
        if bytes(index) not in self._by_index:
            return None
        return kind, placed | {"output_index": self._by_index[bytes(index)]}

    def take(self, item: Raw) -> int | None:
        """Return the place of a whole item that was announced; None for another."""
        id = (read_fields(item) or {}).get("id")
        return self._by_id.pop(bytes(id), None) if id is not None else None
