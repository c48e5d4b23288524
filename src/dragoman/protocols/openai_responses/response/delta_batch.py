"""Delta events that came together and let one part grow: their shape, told by the JSON reader itself.

What does not fit these Structs is read event by event (`decode.py`), which gives the same events.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple

from dragoman import _json
from dragoman.codec.delta_batch import narrowed
from dragoman.protocols.openai_responses.wire import ARGUMENTS_DELTA, TEXT_DELTA, PlainDelta

_PLACE: Final = {"output_index": int, "content_index": ..., "delta": str, "logprobs": ...}
#: Ids count for arguments alone.
_IDS: Final = {"item_id": ..., "call_id": ...}
_Text: Final = narrowed(PlainDelta, {"type": Literal[TEXT_DELTA], **_PLACE}, passed_over=_IDS)
_Arguments: Final = narrowed(PlainDelta, {"type": Literal[ARGUMENTS_DELTA], **_PLACE, **_IDS})


class Burst(NamedTuple):
    """`item`: the index of the output item; `place`: that of its text, -1 for arguments; `texts`: none is empty.

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
    """What the events say together; None when they are not all of one kind, or not of one part. `is_alone`: there is
    one item that grows, so that an index that is told twice can name no other."""
    if b'"response.output_text.delta"' in lines[0]:
        said = _decode_texts(lines)
        if said is None:
            return None
        item, place, ids = said[0].output_index, said[0].content_index, set[tuple[str, str]]()
        texts = [each.delta for each in said if each.output_index == item and each.content_index == place]
    else:
        joined = b"\n".join(lines)
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
