"""Schedule the garbage collector's full collections: while requests have created few objects."""

from __future__ import annotations

import asyncio
import gc
from typing import Final

#: Objects that may be made between two looks at the new ones, since answers make many and few of them hold each other;
#: then how many of these make one at all that is new since the last of that kind. A look holds every thread up: one at
#: 100,000 objects takes 20 ms. One at all that there is would come while a large answer has made a million.
_LOOKS: Final = 5_000, 4, 1_000_000_000
#: Seconds between two looks at all that there is, and after one that was put off.
_EVERY: Final = 60.0
_AGAIN: Final = 2.0
#: More objects are looked at after so many looks were put off alone: they may be the usual state.
_MOST_OBJECTS: Final = 100_000
_MOST_PUT_OFF: Final = 60


def look_seldom() -> None:
    """Exclude everything loaded so far from collections, and leave full collections to `look_when_few`."""
    gc.freeze()
    gc.set_threshold(*_LOOKS)


async def look_when_few(*, every: float = _EVERY, again: float = _AGAIN) -> None:
    """Run full collections from time to time, until cancelled."""
    while True:
        await asyncio.sleep(every)
        for _ in range(_MOST_PUT_OFF):
            if len(gc.get_objects(2)) <= _MOST_OBJECTS:
                break
            await asyncio.sleep(again)
        gc.collect()
