"""Events about calls: the usual ones decoded with a Struct of their shape, and arguments in any form.

What does not fit these Structs is read member by member (`decode.py`), with the same result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from dragoman import _json
from dragoman._json import Json, Malformed
from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.parts.unread_arguments import note_unread_piece
from dragoman.protocols.openai_responses.response.item import ARGUMENTS
from dragoman.protocols.openai_responses.response.items import Items
from dragoman.protocols.openai_responses.wire import EventPlace, ItemKind, Place, argument_text, text_of

#: The keys that tell arguments in an event about them.
_ARGUMENTS_OF_STEP: Final[dict[str, tuple[str, ...]]] = {"delta": ("delta",), "done": ("arguments", "input")}


class Added(msgspec.Struct, tag="response.output_item.added", tag_field="type", gc=False, forbid_unknown_fields=True):
    """The start of an item whose fields are all texts."""

    sequence_number: int
    output_index: int
    item: dict[str, str]


class Done(msgspec.Struct, tag="response.output_item.done", tag_field="type", gc=False, forbid_unknown_fields=True):
    """The end of such an item."""

    sequence_number: int
    output_index: int
    item: dict[str, str]


class ArgumentsDone(
    msgspec.Struct,
    tag="response.function_call_arguments.done",
    tag_field="type",
    gc=False,
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """The whole arguments of a call."""

    sequence_number: int
    item_id: str
    output_index: int
    arguments: str
    name: str | UnsetType = UNSET
    call_id: str = ""


#: Where a value of them stands: all are texts, so that none is asked for as it is written.
ANYWHERE: Final = Place(b"")
_UNUSUAL: Final = Malformed("it is no usual event about a call")
CallEvent: TypeAlias = Added | Done | ArgumentsDone
_decode: Final[Callable[[bytes], CallEvent | Malformed]] = _json.typed_decoder(CallEvent)  # type: ignore[arg-type]


def read_call_event(data: bytes) -> CallEvent | Malformed:
    """Return a usual event about a call that has nothing else and no repeated key."""
    event = _decode(data)
    if isinstance(event, Malformed):
        return event
    is_usual = isinstance(event, ArgumentsDone) or (
        event.item.get("type") == "function_call" and "content" not in event.item
    )
    return event if is_usual and _json.holds_all(event, data) else _UNUSUAL


def take_done(event: ArgumentsDone, *, items: Items, assembly: Assembly) -> None:
    """Take the whole arguments of a call."""
    told: dict[str, Json] = {"item_id": event.item_id, "arguments": event.arguments}
    if event.name is not UNSET:
        told["name"] = event.name
    take_arguments(event, told, "done", "function_call", ANYWHERE, items=items, assembly=assembly)


def take_arguments(
    event: EventPlace | ArgumentsDone,
    value: dict[str, Json],
    step: str,
    kind: ItemKind,
    place: Place,
    *,
    items: Items,
    assembly: Assembly,
) -> None:
    """Take a piece of a call's arguments, or all of them. `value`: the event's fields."""
    name = step if step == "delta" else "arguments" if "arguments" in value else "input"
    text = argument_text(value, name, place, assembly.deviate)
    labels = (event.output_index, event.item_id, event.call_id)
    item = items.find_told(*labels, text, text_of(value.get("name"))) if step == "done" else None
    item = item or items.find_call(*labels, kind)
    if item is None or item.call is None:
        return
    if item.kind != kind:  # free text for a call of JSON, or the other way round
        return items.doubt([item])
    note_unread_piece(item.call, value, *_ARGUMENTS_OF_STEP[step], arguments=text)
    if step == "delta":
        if items.is_surplus(item, text) or item.is_doubtful:
            return
        if not (item.is_final and item.is_late(ARGUMENTS, text, assembly.deviate)):
            assembly.add_arguments(item.call, text)
    else:
        items.name_call(item, value)
        items.final_arguments(item, text)
