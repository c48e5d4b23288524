"""Lines of JSON that differ in one string alone, as the chunks of a stream do: that string of each, read at once.

Reading every line for itself costs several times as much, for what does not change is read again and again.
"""

from __future__ import annotations

import re
from typing import Final

from dragoman import _json

_VALUE: Final = re.compile(rb'\s*:\s*"((?:[^"\\]|\\.)*)"')
#: Between the strings of a list, in a form that no string has within.
_BETWEEN: Final = b'",\n"'

_decode_strings: Final = _json.typed_decoder(list[str])


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
    texts = _BETWEEN.join([line[len(head) : -len(tail)] for line in lines])
    if b"\\" + _BETWEEN in texts:  # a line that ends within its string would take the next one's beginning for its own
        return None
    strings = _decode_strings(b'["%b"]' % texts)
    if isinstance(strings, _json.Malformed) or len(strings) != len(lines) or not all(strings):
        return None
    return strings
