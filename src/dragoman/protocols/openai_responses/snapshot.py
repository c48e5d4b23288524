"""The whole list of output items that a final event repeats: what was streamed counts once, what was not is added."""

from __future__ import annotations

from dragoman import _json
from dragoman._json import Json, Malformed
from dragoman.assembly import Assembly
from dragoman.protocols.openai_responses.items import Item, Items, Place
from dragoman.protocols.openai_responses.wire import ItemKind, text_of


def reconcile(items: Items, output: list[Json], place: Place, *, assembly: Assembly) -> None:
    """Add what the list says and the stream did not. Ids rotate and servers merge items, so content counts too."""
    entries = [(index, value) for index, value in enumerate(output) if isinstance(value, dict)]
    streamed = list(items.all)
    if _is_said(streamed, entries, "message"):
        entries = [(index, value) for index, value in entries if value.get("type") != "message"]
    for index, fields in entries:
        where: Place = (place[0], (*place[1], index))
        item = _match(streamed, index, fields)
        if item is None:
            if streamed:
                assembly.deviate("part-not-opened", f"response.output[{index}]")
            item = items.open(index if not streamed else -1, fields, where)
            items.finish(item, fields, where)
            continue
        item.repeated = True
        if not item.done:
            items.finish(item, fields, where)


def _is_said(streamed: list[Item], entries: list[tuple[int, dict[str, Json]]], kind: ItemKind) -> bool:
    """Whether the items of a kind hold, taken together, the text that was streamed."""
    final = "".join(text_of(value.get("content")) for _, value in entries if value.get("type") == kind)
    said = [item for item in streamed if item.kind == kind]
    return len(said) > 1 and all(item.done for item in said) and final == "".join(item.text() for item in said)


def _match(streamed: list[Item], index: int, fields: dict[str, Json]) -> Item | None:
    """The streamed item that an entry repeats."""
    free = [item for item in streamed if not item.repeated and item.type == (fields.get("type") or item.type)]
    id, call_id = fields.get("id"), fields.get("call_id")
    for item in free:
        if (id and item.id == id) or (item.call is not None and call_id and item.call.id == call_id):
            return item
    alike = [item for item in free if _is_alike(item, fields)]
    return next((item for item in alike if item.index == index), alike[0] if alike else None)


def _is_alike(item: Item, fields: dict[str, Json]) -> bool:
    """Whether an entry without a known id says what the item said, or goes on from there."""
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
