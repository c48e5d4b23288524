"""Decode plain deltas, one by one and in batches that let one part grow, with a Struct of their shape.

What does not fit these Structs is read event by event (`decode.py`), with the same result.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple

import msgspec

from dragoman import _json
from dragoman.codec.delta_batch import LastFrame, narrowed
from dragoman.codec.framing.body import BodyReader, Frame
from dragoman.codec.parts.argument_growth import grow_by_many
from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.repeated_keys import tells_more
from dragoman.protocols.openai_responses.response.item import Item
from dragoman.protocols.openai_responses.response.items import Items
from dragoman.protocols.openai_responses.wire import ARGUMENTS_DELTA, TEXT_DELTA, PlainDelta, decode_delta
from dragoman.secret import name_alone

_PLACE: Final = {"output_index": int, "content_index": ..., "delta": str, "logprobs": ...}
#: Ids count for arguments alone.
_IDS: Final = {"item_id": ..., "call_id": ...}
_Text: Final = narrowed(PlainDelta, {"type": Literal[TEXT_DELTA], **_PLACE}, passed_over=_IDS)
_Arguments: Final = narrowed(PlainDelta, {"type": Literal[ARGUMENTS_DELTA], **_PLACE, **_IDS})


class Growth(msgspec.Struct, eq=False):
    """Appends plain deltas to open items."""

    _items: Items
    _assembly: Assembly
    _reader: BodyReader
    _last: LastFrame = msgspec.field(default_factory=LastFrame)
    _item: Item | None = None  # that the last frame let grow

    __repr__ = name_alone

    def take_alone(self, event: bytes) -> bool:
        """Take the bytes of an event that came alone, as the one before. Return False if they must be fed."""
        if (text := self._last.read(event)) and (total := self._reader.total_with(event)) and self._grow(text):
            self._reader.total = total
            return True
        return False

    def take(self, data: bytes, name: bytes) -> bool:
        """Take an event that is a plain delta of an open item and nothing else. Return False if it may be another."""
        if name and not name.endswith(b"delta"):
            self._last.forget()
            return False
        if (text := self._last.read(data)) and self._grow(text):
            return True
        event, live = decode_delta(data), self._items.live
        if type(event) is PlainDelta and (text := event.delta) and (item := live.get(event.output_index)):
            if (call := item.call) is None:
                is_its = event.type == TEXT_DELTA and item.text_index == event.content_index and item.part is not None
            else:
                is_its = (
                    event.type == ARGUMENTS_DELTA
                    and data.count(b'"delta"') < 2
                    and (len(live) < 2 or data.count(b'"output_index"') < 2)
                    and (
                        (event.item_id == item.id and not event.call_id and call.live is not None)
                        or (
                            call.kind == "function"
                            and self._items.places.are_own(item, event.item_id, event.call_id, text)
                        )
                    )
                )
            if is_its:
                if call is None and data.count(b'"delta"') > 1 and tells_more(data, b'"delta"'):
                    self._assembly.deviate("repeated-key", "delta")
                self._item = item
                if not self._grow(text) and call is not None:
                    self._assembly.add_arguments(call, text)
                self._last.learn(data, b'"delta"', self._reader.head, counter=b'"sequence_number"')
                return True
        self._last.forget()
        return False

    def take_many(self, lines: list[bytes], take: Callable[[list[Frame]], None]) -> int:
        """Take events that came together and all let one item grow; gives how many, from the first on. `take`: takes
        the one with which a text opens."""
        live = self._items.live
        burst = read_burst(lines, is_alone=len(live) < 2)
        item = live.get(burst.item) if burst is not None else None
        if burst is None or item is None or (item.call is None) is (burst.place < 0):
            return 0
        texts = burst.texts
        if (call := item.call) is not None:
            text, are_own = "".join(texts), self._items.places.are_own
            is_its = call.kind == "function" and all(are_own(item, *ids, text) for ids in burst.ids)
            return grow_by_many(call, texts, self._assembly) if is_its else 0
        if item.text_index != burst.place:
            take([(lines[0], b"")])
            texts = texts[1:]
        if item.part is None or item.text_index != burst.place:
            return 1
        item.pieces.add("".join(texts))
        self._assembly.add_many(item.part, texts)
        return len(lines)

    def _grow(self, text: str) -> bool:
        """Append plain text, or arguments that need no check, to the same item."""
        item = self._item
        if item is None:
            return False
        if item.call is None and item.part is not None:
            item.pieces.add(text)
            self._assembly.add(item.part, text)
        elif item.call is None or item.call.live is None:
            return False
        else:
            self._assembly.add_arguments(item.call, text)
        return True


class Burst(NamedTuple):
    """The deltas of one part. `item`: the index of the output item; `place`: that of its text, -1 for arguments;
    `texts`: none is empty.

    `ids`: the item and call ids that came with arguments.
    """

    item: int
    place: int
    texts: list[str]
    ids: set[tuple[str, str]]


_ids_of: Final[Callable[[Any], tuple[str, str]]] = attrgetter("item_id", "call_id")
_decode_texts: Final = _json.lines_decoder(_Text)
_decode_arguments: Final = _json.lines_decoder(_Arguments)


def read_burst(lines: list[bytes], *, is_alone: bool) -> Burst | None:
    """Return the combined deltas, or None if they are not all of one kind and part.

    `is_alone`: only one item grows, so that a repeated index can name no other.
    """
    joined = b"\n".join(lines)
    if b'"response.output_text.delta"' in lines[0]:
        said = _decode_texts(lines, joined)
        if said is None or joined.count(b'"delta"') > len(lines):
            return None
        item, place, ids = said[0].output_index, said[0].content_index, set[tuple[str, str]]()
        texts = [each.delta for each in said if each.output_index == item and each.content_index == place]
    else:
        grown = _decode_arguments(lines, joined)
        if grown is None or joined.count(b'"delta"') > len(lines):
            return None
        if not is_alone and joined.count(b'"output_index"') > len(lines):
            return None  # it may be told twice, and so may what it adds
        first, place = grown[0], -1
        item, item_id, call_id = first.output_index, first.item_id, first.call_id
        texts = [
            each.delta
            for each in grown
            if each.output_index == item and each.item_id == item_id and each.call_id == call_id
        ]
        ids = {(item_id, call_id)}
        if len(texts) < len(lines):  # some servers give each event another id
            texts = [each.delta for each in grown if each.output_index == item]
            ids = set(map(_ids_of, grown))
    return Burst(item, place, texts, ids) if len(texts) == len(lines) and all(texts) else None
