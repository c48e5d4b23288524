"""The output items of one response: which event belongs to which, what each has said, and what its end adds.

Specification: `output_index` names an item; `item_id` repeats its id. Servers omit the index (llama.cpp), give another
item id with each event (Copilot), number all items 0, send only the item's end, or only the final list.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.framing.entries import check_entries
from dragoman.codec.nan import kept, kept_text
from dragoman.codec.parts.argument_growth import tell_whole
from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.parts.open_parts import OpenCall, OpenPart
from dragoman.codec.parts.settled_arguments import is_placeholder, told_once
from dragoman.codec.parts.unread_arguments import note_unread, note_words, tell_unread, tell_unread_event
from dragoman.events import TextStart, ThinkingStart
from dragoman.gathered import GatheredText
from dragoman.protocols.openai_responses.request.namespaces import offered_name
from dragoman.protocols.openai_responses.response.item import ARGUMENTS, NOWHERE, THINKING_GROUPS, Echo, Item, Key, Late
from dragoman.protocols.openai_responses.response.item_places import Places
from dragoman.protocols.openai_responses.response.unmodelled import note_whole
from dragoman.protocols.openai_responses.wire import (
    NAME,
    ItemKind,
    Place,
    argument_text,
    as_list,
    item_kind,
    make_native,
    native_fields,
    text_of,
)
from dragoman.secret import name_alone
from dragoman.types import Opaque

#: Native fields that mark what a part was, where the group's usual form is another.
_MARKS: Final[dict[str, Raw]] = {"refusal": Raw(b'"refusal"'), "reasoning": Raw(b'"reasoning_text"')}
#: The keys that tell the arguments of a call of each kind.
_ARGUMENTS: Final = {"function": ("arguments",), "custom": ("arguments", "input")}
_UNUSABLE: Final = ("incomplete", "failed", "cancelled", "canceled")


class Items(msgspec.Struct, eq=False):
    """The items of one response, as they opened. `live`: open ones by `output_index`, while indices are reliable."""

    _assembly: Assembly
    all: list[Item] = []
    places: Places = msgspec.field(default_factory=Places)
    _talking: Item | None = None  # the item whose text or thinking is open
    live: dict[int, Item] = {}

    __repr__ = name_alone

    # ------------------------------------------------------------ which item

    def find(self, index: int, id: str) -> Item | None:
        """Return the item of an event that is no call's."""
        if index < 0:
            self._assembly.deviate("missing-index", "output_index")  # quirk: responses-llamacpp-no-index
        return self.places.find(index, id)

    def find_call(self, index: int, id: str, call_id: str, kind: ItemKind) -> Item | None:
        """Return the call of an event's arguments, or None if it may be several, or does not exist."""
        if index < 0:
            self._assembly.deviate("missing-index", "output_index")
        found = self.places.find_call(index, id, call_id, doubt=self.doubt)
        is_orphan = self._assembly.ending.is_torn and not self.places.is_named(index, id, call_id)
        if is_orphan or not found.is_sure:  # its item may have begun in a frame that could not be read
            self.doubt(found.items)
            return None
        return found.items[0] if found.items else self.open_unannounced(index, id, kind, call_id=call_id)

    def find_told(self, index: int, id: str, call_id: str, text: str, name: str) -> Item | None:
        """Return the call whose deltas amount to these whole arguments, if no label names one: ids may rotate."""
        if (index >= 0 and not self.places.is_shared) or call_id or self.places.by_id(id) is not None:
            return None
        return self.places.find_told(text, name)

    def doubt(self, items: list[Item]) -> None:
        """Record that arguments came that each of these calls may own."""
        self._assembly.deviate("lost-arguments", "output", f"{len(items)} calls may have them")
        for item in items:
            item.is_doubtful = True
            self.live.pop(item.index, None)

    def is_surplus(self, item: Item, text: str) -> bool:
        """Return whether arguments for a complete call may belong to another, which waits for some."""
        if item.call is None or not text.strip() or (item.call.is_open() and not item.call.text.is_closed()):
            return False
        waiting = self.places.waiting_calls(self.doubt)
        if waiting:
            self.doubt([*waiting, item])
        return bool(waiting)

    def open(self, index: int, fields: dict[str, Json], place: Place) -> Item:
        """Begin an item, or find one that was announced before."""
        where = f"output[{index}]" if index >= 0 else "output"
        kind = item_kind(fields, self._assembly.deviate, where, offered=self._assembly.calls.offered_names)
        if not fields.get("type"):  # so what it is may stand deeper
            tell_unread(self._assembly, {key: one for key, one in fields.items() if isinstance(one, dict)}, where)
        id = fields["id"] if isinstance(fields.get("id"), str) else ""
        known = self.places.announced(index, id, fields)
        if known is not None:
            is_open = not known.done or (known.call is not None and known.call_id and not fields.get("arguments"))
            if is_open and known.kind == kind and known.is_same(id, fields):
                self._assembly.deviate("duplicate-start", where)
                if known.call is not None:
                    self._say_again(known, known.call, fields, place, where)
                return known
            self._assembly.deviate("reused-index", where)
            self.places.is_shared = True
            self.live.clear()
        type = said if isinstance(said := fields.get("type"), str) and said else kind
        item = Item(kind, index, id=id, type=type, native=native_fields(fields))
        self._hush()
        if kind in ("function_call", "custom_tool_call"):
            self._open_call(item, fields, place)
        return self._add(item)

    def _say_again(self, item: Item, call: OpenCall, fields: dict[str, Json], place: Place, where: str) -> None:
        """Take a second start of a call, with the same name and arguments; with another name both are refused."""
        name = offered_name(fields, item.native, self._assembly.calls.offered_names)
        if call.name and name not in ("", call.name):
            self._assembly.contradict(self._assembly.open_call(None, name), where)
            self._assembly.contradict(call, where)
            return
        item.prefill, is_one = told_once((item.prefill, self._arguments(item, fields, place)))
        if not is_one:
            self._assembly.contradict(call, where)

    def open_unannounced(self, index: int, id: str, kind: ItemKind, *, call_id: str = "") -> Item:
        """Open an item that was never announced, for its event."""
        self._assembly.deviate("part-not-opened", f"output[{index}]" if index >= 0 else "output")
        item = Item(kind, index, id=id, type=kind, native={"id": _json.raw(id)} if id else {})
        self._hush()
        if kind in ("function_call", "custom_tool_call"):
            item.call_id = call_id
            item.call = self._assembly.open_call(
                call_id, None, kind="custom" if kind == "custom_tool_call" else "function", wait=True
            )
        return self._add(item)

    def _add(self, item: Item) -> Item:
        self.all.append(item)
        check_entries(self.all, self._assembly.bounds)
        self.places.add(item)
        if item.index >= 0 and not self.places.is_shared:
            self.live[item.index] = item
        return item

    # ------------------------------------------------------------ text and thinking

    def grow(self, item: Item, key: Key, text: str) -> None:
        """Append a delta to a part of an item; it opens with its first text. What an end said before counts once."""
        if not (item.ends and item.is_late(key, text, self._assembly.deviate)):
            self._say(item, key, text)

    def _say(self, item: Item, key: Key, text: str) -> None:
        """Take thinking; a repetition counts once."""
        if not text:
            return
        if key[0] in THINKING_GROUPS:
            item.echo = item.echo or Echo()
            for at, said in item.echo.take(key, text):
                self._grow(item, at, said)
        else:
            self._grow(item, key, text)

    def _grow(self, item: Item, key: Key, text: str) -> None:
        part = item.part
        if part is None or item.key != key:
            part = self._open_part(item, key)
        text = self._assembly.lenient_text(text)
        item.pieces.add(text)
        self._assembly.add(part, text)

    def _open_part(self, item: Item, key: Key) -> OpenPart:
        self._hush()
        self._talking = item
        fields = dict(item.native)
        if key[0] in _MARKS:
            fields["type"] = _MARKS[key[0]]
        kind = ThinkingStart if key[0] in THINKING_GROUPS else TextStart
        item.part = self._assembly.open_part(kind, native=make_native(fields))
        item.key = key
        item.text_index = -1 if key[0] != "text" or key in item.ends or self._assembly.calls.may_lack() else key[1]
        item.pieces = item.said.setdefault(key, GatheredText())
        return item.part

    def _hush(self) -> None:
        """End other parts: servers omit the end of reasoning and messages, and only calls interleave."""
        if self._talking is not None:
            self._end_part(self._talking)

    def _end_part(self, item: Item) -> None:
        if item.part is not None:
            if item.told is not None and item.key[0] == "text":
                item.extras = item.told.take(item.key[1], item.extras, self._assembly.deviate)
            item.part.native = make_native(item.extras)
            self._assembly.end_part(item.part)
            self._talking = None
        item.part, item.key, item.text_index, item.extras = None, NOWHERE, -1, {}

    def final_text(self, item: Item, key: Key, text: str) -> None:
        """Take the whole text of a part, after its deltas or in their place."""
        pieces = item.said.get(key)
        said = pieces.text() if pieces is not None else item.echo.said(key) if item.echo is not None else ""
        if problem := item.end(key, self._assembly.bounds):
            return self._assembly.fail("answer_too_large", problem)
        if text == said or (pieces is None and not said and any(other.text() == text for other in item.said.values())):
            return
        if (parts := item.in_parts(key[0], text, self._assembly.deviate)) is not None:
            return self._say(item, *parts)
        if text and said:
            self._assembly.differ(text, said, f"output[{item.index}]")
        if text.startswith(said):
            self._say(item, key, text[len(said) :])
            item.late |= {key: Late(text, len(said))}

    def end_echo(self, item: Item) -> None:
        """End the thinking of an item: pass on what was held as a possible repetition, and was none."""
        if item.echo is not None:
            rest, is_twice = item.echo.end()
            for key, text in rest:
                self._grow(item, key, text)
            if is_twice:
                self._assembly.deviate("duplicate-final", f"output[{item.index}]", "thinking", severity="note")

    def _content(self, item: Item, fields: dict[str, Json], place: Place) -> None:
        """Take the whole content of a message. If its texts are divided differently, they are compared as one."""
        values = as_list(fields.get("content"))
        check_entries(values, self._assembly.bounds)
        texts = [text_of(value) for value in values]
        said = {key[1]: pieces.text() for key, pieces in item.said.items()}
        if len(item.said) + len(values) < 3 or all(
            text.startswith(said.get(index, "")) for index, text in enumerate([*texts, *[""] * len(said)])
        ):
            inner = place.inner("content")
            for index, value in enumerate(values):
                self.final_content(item, index, value, inner.inner(index))
            return
        whole, last = "".join(texts), next(reversed(item.said))
        self._assembly.differ(whole, item.text(), f"output[{item.index}]", "in other parts")
        if whole.startswith(item.text()):
            self._say(item, last, whole[len(item.text()) :])

    def final_content(self, item: Item, index: int, value: Json, place: Place) -> None:
        """Take a whole entry of an item's `content`."""
        kind = value.get("type") if isinstance(value, dict) else "output_text"
        group = "reasoning" if item.kind == "reasoning" or kind == "reasoning_text" else "text"
        if kind == "refusal":
            group = "refusal"
            text = text_of(value.get("refusal") or value)
        elif kind in (None, "output_text", "text", "input_text", "summary_text", "reasoning_text"):
            text, where = text_of(value), f"output[{item.index}].content[{index}]"
            if kind is None:
                self._assembly.deviate("missing-type", where)
            if isinstance(value, dict) and isinstance(value.get("text"), dict | list):
                self._assembly.deviate("wrong-type", f"{where}.text")
            if not text and isinstance(value, dict):
                said = value | {"text": _json.to_text(value["text"])} if value.get("text") else value
                note_words(self._assembly, said, where)
                tell_unread_event(self._assembly, value, where)
        else:
            self._assembly.deviate("unknown-part", f"output[{item.index}].content[{index}]", kind)
            return self._assembly.whole_part(Opaque(NAME, kept_text(_json.compact(place.text(value)))))
        key = (group, index)
        self.final_text(item, key, text)
        if item.key == key and isinstance(value, dict):
            item.extras |= {
                name: kept(inner)
                for name, inner in value.items()
                if inner and name not in ("type", "text", "refusal", "content", "parsed")
            }

    # ------------------------------------------------------------ calls

    def _open_call(self, item: Item, fields: dict[str, Json], place: Place) -> None:
        id = fields.get("call_id")
        item.call_id = id if isinstance(id, str) else ""
        item.call = self._assembly.open_call(
            item.call_id,
            offered_name(fields, item.native, self._assembly.calls.offered_names) or None,
            kind="custom" if item.kind == "custom_tool_call" else "function",
            native=make_native(item.native),
            wait=not item.call_id,  # the item's end may still tell it
        )
        note_unread(item.call, fields, *_ARGUMENTS[item.call.kind])
        prefill = self._arguments(item, fields, place)
        if prefill and item.call.kind == "function":
            if isinstance(_json.decode_object(prefill), _json.Malformed):
                self._assembly.add_arguments(item.call, prefill)
            else:
                item.prefill = prefill

    def _arguments(self, item: Item, fields: dict[str, Json], place: Place) -> str:
        """Return the argument text of an item; an object in place of text keeps its own text."""
        name = "input" if item.kind == "custom_tool_call" and "input" in fields else "arguments"
        return argument_text(fields, name, place, self._assembly.deviate)

    def final_arguments(self, item: Item, text: str) -> None:
        """Take the whole arguments of a call, after their deltas or in their place."""
        item.is_final, call = True, item.call
        if text and call is not None:
            item.is_doubtful, said = False, call.text.raw()
            if call.is_doubtful and is_placeholder(text) and call.text.is_closed():  # they are another call's
                return self._assembly.contradict(call, f"output[{item.index}].arguments")
            if text == said and call.text.phase != "odd":  # as most often; odd ones may have two readings
                item.late.pop(ARGUMENTS, None)
                return
            if text.startswith(said):
                item.late[ARGUMENTS] = Late(text, len(said))
            tell_whole(call, text, f"output[{item.index}].arguments", self._assembly)

    def again(self, item: Item, fields: dict[str, Json], place: Place) -> None:
        """Take an item that ended once more: a call must be the same, and what a text lacks is added."""
        if (call := item.call) is None:
            return self.complete(item, fields, place)
        if not item.is_told_by(fields):
            self._whole_call(item, call, fields, place)
        if fields.get("status") in _UNUSABLE and call.state != "failed":
            self._assembly.contradict(call, f"output[{item.index}].status")

    def _whole_call(self, item: Item, call: OpenCall, fields: dict[str, Json], place: Place) -> None:
        """Take a whole item's call: clients may read no other event of it."""
        where, text = f"output[{item.index}]", self._arguments(item, fields, place)
        self.name_call(item, fields)
        note_whole(call, fields, where, self._assembly, known=_ARGUMENTS[call.kind])
        if not (text.strip() or (call.text.is_blank() and is_placeholder(item.prefill))):
            self._assembly.deviate("placeholder-arguments", f"{where}.arguments", "empty behind others")
        self.final_arguments(item, text)

    def name_call(self, item: Item, fields: dict[str, Json]) -> None:
        """Take a call's id and name from its end, if its start lacked them."""
        call, id = item.call, fields.get("call_id")
        is_said = "namespace" not in fields and call is not None and fields.get("name") == call.name
        if call is None or (is_said and call.state != "waiting" and id in (None, item.call_id)):
            return
        name = offered_name(fields, item.native, self._assembly.calls.offered_names)
        is_other = call.name and name and not self._assembly.calls.is_name_of(call, name)
        if is_other or (name == "" and fields.get("name")):  # it is no text
            self._assembly.contradict(call, f"output[{item.index}].name")
        if isinstance(id, str) and item.call_id and id not in ("", item.call_id):  # results are sent back by it
            self._assembly.deviate("changing-id", f"output[{item.index}].call_id")
        if call.state != "waiting" or call.repeats is not None:
            return
        if not call.name and name:
            self._assembly.deviate("late-name", f"output[{item.index}]")
            call.name, call.is_doubtful = name, call.text.is_closed() and not self.places.is_sure(item)
        if not call.id and isinstance(id, str) and id:
            self._assembly.deviate("late-id", f"output[{item.index}]")
            item.call_id = id
            self._take_id(call, id)

    def _take_id(self, call: OpenCall, id: str) -> None:
        if self._assembly.calls.call_of(id) is None:
            call.id = id
            self._assembly.calls.register(call)

    # ------------------------------------------------------------ the end of an item

    def finish(self, item: Item, fields: dict[str, Json], place: Place) -> None:
        """End an item: add what its deltas lack, and close its parts."""
        if item.done:
            self._assembly.deviate("duplicate-call" if item.call else "duplicate-final", f"output[{item.index}]")
            return self.again(item, fields, place)
        self.complete(item, fields, place)
        item.done = True
        self.live.pop(item.index, None)
        self._end_part(item)
        if item.call is not None:
            self._end_call(item, item.call, fields)

    def complete(self, item: Item, fields: dict[str, Json], place: Place) -> None:
        """Add what a whole item has and its deltas lack."""
        told = native_fields(fields, item.id or None).items()
        late = {name: raw for name, raw in told if item.native.get(name) != raw}
        if item.kind == "message":
            self._content(item, fields, place)
            if not item.said or self._assembly.calls.may_lack():
                tell_unread(self._assembly, item.native | native_fields(fields), f"output[{item.index}]")
        elif item.kind == "reasoning":
            self._complete_reasoning(item, fields, place)
            self.end_echo(item)
        elif item.call is not None:
            self._whole_call(item, item.call, fields, place)
            self.final_arguments(item, item.prefill)
            if late:
                item.call.native = make_native(item.native | late)
        elif not item.done:
            self._assembly.whole_part(Opaque(NAME, kept_text(_json.compact(place.text(fields)))))
        if item.part is not None:
            item.extras |= late

    def _complete_reasoning(self, item: Item, fields: dict[str, Json], place: Place) -> None:
        for index, value in enumerate(as_list(fields.get("summary"))):
            self.final_text(item, ("summary", index), text_of(value))
        content = fields.get("content") or fields.get("reasoning_content") or fields.get("text")
        inner = place.inner("content")
        for index, value in enumerate(as_list(content)):
            self.final_content(item, index, value, inner.inner(index))
        seal = said if isinstance(said := fields.get("encrypted_content"), str) and not item.done else None
        if item.part is None and not item.done and (seal or (not item.said and item.id.startswith("rs_"))):
            self._open_part(item, ("summary", 0))  # nothing to show, but to be sent back
        if item.part is not None and seal:
            item.part.signature = seal

    def _end_call(self, item: Item, call: OpenCall, fields: dict[str, Json]) -> None:
        if call.is_open() and not call.id and item.id:
            self._assembly.deviate("missing-id", f"output[{item.index}].call_id")
            self._take_id(call, item.id)
        if item.is_doubtful:
            self._drop_doubtful(call)
        elif fields.get("status") in _UNUSABLE:  # if it is whole, somebody may have closed it
            kind: Literal["refused", "cut"] = "refused" if call.text.is_whole() else "cut"
            self._drop_cut(call, f"the provider says that it is {fields['status']}", kind=kind)
        else:
            self._assembly.end_call(call)

    def close(self, *, is_good: bool) -> None:
        """End all items. A start's arguments count at a good end, and must agree. Free text has no end of its own."""
        self._hush()
        for item in self.all:
            if item.told is not None:
                item.told.close(self._assembly.deviate)
            self.end_echo(item)
            if (call := item.call) is None:
                continue
            if is_good and not item.done:
                self._assembly.deviate("part-not-closed", f"output[{item.index}]", "no item tells the whole call")
            if item.is_doubtful:
                self._drop_doubtful(call)
            elif item.prefill and not item.done and (call.text.is_closed() or (is_good and call.text.is_blank())):
                self.final_arguments(item, item.prefill)
            elif not item.is_final and (call.kind == "custom" or (not item.done and call.text.is_empty())):
                self._drop_cut(call, "nothing says that its input is whole")

    def _drop_cut(self, call: OpenCall, why: str, *, kind: Literal["cut", "refused"] = "cut") -> None:
        self._assembly.drop_call(call, kind, f"tool call {call.name or '(no name)'}: {why}")

    def _drop_doubtful(self, call: OpenCall) -> None:
        message = f"tool call {call.name or '(no name)'}: arguments came that do not say which call they belong to"
        self._assembly.drop_call(call, "lost", message)
