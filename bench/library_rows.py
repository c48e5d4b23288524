"""The library's rows that are compared with an older commit: what decoding is run on."""

from collections.abc import Callable, Iterator
from functools import partial

import memory
import streams

COUNT = 2000
CALLS = 200


def library_rows() -> Iterator[tuple[str, Callable[[], object]]]:
    """Decoding, with and without stages, in large reads and in one read an event."""
    for protocol in streams.PROTOCOLS:
        for kind in ("text", "arguments", "string", "parallel"):
            written = streams.frames(protocol, kind, CALLS if kind == "parallel" else COUNT)
            for cut, pieces in (("large reads", streams.blocks(written)), ("one event a read", written)):
                for way, run in (("decode", memory.decode), ("all stages", memory.decode_staged)):
                    yield f"{protocol} {kind}, {cut}, {way}", partial(run, protocol, pieces)
