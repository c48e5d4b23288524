"""Reconcile the list of output items that a final event repeats: streamed ones count once, others are added."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import Final

from dragoman import _json
from dragoman._json import Json, Malformed
from dragoman.codec.framing.entries import check_entries
from dragoman.codec.parts.assembly import Assembly
from dragoman.protocols.openai_responses.response.item import Item
from dragoman.protocols.openai_responses.response.items import Items
from dragoman.protocols.openai_responses.wire import ItemKind, Place, text_of

#: Entries without a known id are compared with this many streamed items of their type.
_MOST_COMPARED: Final = 16


def reconcile(items: Items, output: list[Json], place: Place, *, assembly: Assembly) -> None:
    """Add what the list has and the stream lacks. Ids rotate and servers merge items, so content counts too."""
    check_entries(output, assembly.bounds)
    entries = [(index, value) for index, value in enumerate(output) if isinstance(value, dict)]
    if len(entries) < len(output):
        assembly.deviate("wrong-type", "response.output", "an entry that is no object")
    assembly.said.is_whole = assembly.is_empty
    streamed = Streamed(items.all)
    if _is_said(items.all, entries, "message"):
        entries = [(index, value) for index, value in entries if value.get("type") != "message"]
    came = [item for item in items.all if item.call is not None and item.call.state != "failed"]
    found: list[Item | None] = []
    for index, fields in entries:
        item = streamed.match(index, fields)
        if item is not None:
            item.repeated = True
        found.append(item)
    left_out = [item.call for item in came if item.call is not None and not item.repeated]
    unsaid = "".join([item.text() for item in items.all if item.kind == "message" and not item.repeated])
    for (index, fields), item in zip(entries, found, strict=True):
        where = Place(place.frame, place, index)
        if item is None and unsaid and fields.get("type") == "message":  # told otherwise: the deltas count
            assembly.differ(text_of(fields.get("content")), unsaid, f"response.output[{index}]")
        elif item is None:
            if streamed.is_any:
                assembly.deviate("part-not-opened", f"response.output[{index}]")
            item = items.open(-1 if streamed.is_any else index, fields, where)
            if item.call is not None and left_out:  # it is one of these, told otherwise, or another one
                for call in (item.call, *left_out):
                    assembly.contradict(call, f"response.output[{index}]")
            items.finish(item, fields, where)
        elif item.done:
            items.again(item, fields, where)
        else:
            items.finish(item, fields, where)


def _is_said(streamed: list[Item], entries: list[tuple[int, dict[str, Json]]], kind: ItemKind) -> bool:
    """Return whether the items of a kind together contain the streamed text."""
    said = [item for item in streamed if item.kind == kind]
    if len(said) < 2 or not all(item.done for item in said):
        return False
    final = "".join(text_of(value.get("content")) for _, value in entries if value.get("type") == kind)
    return final == "".join(item.text() for item in said)


class Streamed:
    """The items of the stream, to be found by an entry of the final list."""

    __slots__ = ("_by_id", "_by_index", "_by_type", "is_any")

    def __init__(self, streamed: list[Item]) -> None:
        self.is_any = bool(streamed)
        self._by_id: dict[tuple[str, str], Item] = {}
        self._by_index: dict[int, Item] = {}
        self._by_type: dict[str, deque[Item]] = {}
        for item in streamed:
            self._by_id[item.type, item.id] = item
            if item.call is not None:
                self._by_id[item.type, item.call.id] = item
            self._by_index[item.index] = item
            self._by_type.setdefault(item.type, deque()).append(item)

    def match(self, index: int, fields: dict[str, Json]) -> Item | None:
        """Return the item that an entry repeats."""
        kind = fields.get("type")
        kind = kind if isinstance(kind, str) else ""
        for name in ("call_id", "id"):
            id = fields.get(name)
            item = self._by_id.get((kind, id)) if isinstance(id, str) and id else None
            if item is not None and not item.repeated:
                return item
        item = self._by_index.get(index)
        if item is not None and not item.repeated and item.type == (kind or item.type) and _is_alike(item, fields):
            return item
        waiting = self._by_type.get(kind)
        while waiting and waiting[0].repeated:
            waiting.popleft()
        nearest = islice(waiting or (), _MOST_COMPARED)
        return next((item for item in nearest if not item.repeated and _is_alike(item, fields)), None)


def _is_alike(item: Item, fields: dict[str, Json]) -> bool:
    """Return whether an entry without a known id repeats the item, or continues it."""
    if item.call is not None:
        return _is_alike_call(item, fields)
    if item.kind == "opaque":
        return True
    said = item.text()
    if not said:
        return item.kind == "reasoning" or not item.done
    summary, content = text_of(fields.get("summary")), text_of(fields.get("content"))
    return any(text.startswith(said) for text in (content, summary, summary + content))


def _is_alike_call(item: Item, fields: dict[str, Json]) -> bool:
    if item.call is None or item.call.name not in ("", fields.get("name")):
        return False
    final = fields.get("input" if item.kind == "custom_tool_call" else "arguments")
    if not isinstance(final, str):
        return True
    said = item.call.arguments or item.call.text.raw()
    if final.startswith(said):
        return True
    whole = _json.decode_object(said)
    return not isinstance(whole, Malformed) and whole == _json.decode_object(final)
