"""Delta events that came together and let one part grow, read at once.

What is not all alike is read event by event (`decode.py`), which gives the same events.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from dragoman import _json
from dragoman.protocols.openai_responses.wire import PlainDelta

_decode_deltas: Final = _json.batch_decoder(PlainDelta)


class Burst(NamedTuple):
    """`kind`: the type of the events; `item`: its index; `place`: their content index; `texts`: none of them empty."""

    kind: str
    item: int
    place: int
    texts: list[str]


def read_burst(bodies: list[bytes]) -> Burst | None:
    """What the events say together; None when they are not all of one kind, or not of one part."""
    events = _decode_deltas(bodies)
    if events is None:
        return None
    kind, index, place = events[0].type, events[0].output_index, events[0].content_index
    texts = [
        event.delta
        for event in events
        if event.delta and event.type == kind and event.output_index == index and event.content_index == place
    ]
    return Burst(kind, index, place, texts) if len(texts) == len(bodies) else None
