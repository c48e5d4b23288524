"""Lines of JSON that differ in one string alone, as the chunks of a stream do: that string of each, read at once.

Reading every line for itself costs several times as much, for what does not change is read again and again.
"""

from __future__ import annotations

import re
from typing import Final

from dragoman import _json

_VALUE: Final = re.compile(rb'\s*:\s*"((?:[^"\\]|\\.)*)"')

_decode_strings: Final = _json.lines_decoder(str)


def read_alike(lines: list[bytes], key: bytes) -> list[str] | None:
    """The string that a key has in each line; None when one is empty, or they may differ in anything else.

    Args:
        lines: one JSON object each, without line ends. Of the first it is known that it is JSON; then the others are.
        key: with its quotes.
    """
    first = lines[0]
    place = first.find(key)
    found = _VALUE.match(first, place + len(key))
    if place < 0 or found is None or first.find(key, place + 1) >= 0:
        return None
    head, tail = first[: found.start(1)], first[found.end(1) :]
    if b"\\" in head or b"\\" in tail:  # the key may be there once more, written otherwise
        return None
    if not (lines[-1].startswith(head) and lines[-1].endswith(tail)):
        return None
    if b"\n".join(lines).count(b"%b\n%b" % (tail, head)) != len(lines) - 1:
        return None
    # each with its quotes; a line that ends within its string would have a line end there, which no string has
    start, stop = len(head) - 1, 1 - len(tail)
    strings = _decode_strings([line[start:stop] for line in lines])
    return strings if strings is not None and all(strings) else None
