"""Count the values of a JSON text without parsing it, by brackets and commas outside strings."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

_STRING_REST: Final = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
#: As far as every string is closed.
_CLOSED: Final = re.compile(rb'(?:[^"]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+', re.DOTALL)
_PIECE: Final = 64 * 1024
#: Bytes that are copied within the processor's nearest memory.
_SHORT: Final = 16 * 1024
#: Of a longer text, what is copied to be counted: little where a mark stands alone.
_STEP: Final = 4 * 1024
#: Bytes between two that are found by themselves as fast as by counting.
_RARE: Final = 16
_QUOTE: Final = ord('"')
#: Marks of an outline: those of a kind after one another.
_RUNS: Final = re.compile(rb",++|[\[{]++|[\]}]++")
_OPENING: Final = b"[{"
_COMMA: Final = ord(",")
_END: Final = ord("}")
#: How many levels of objects within objects are passed at that speed.
_INNERMOST: Final = 3
_BEFORE_VALUES: Final = (b",", b"[", b"{")
#: An opening bracket as 1, a closing one as -1.
_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_NO_MARKS: Final = bytes(set(range(256)) - set(b",[]{}"))


def values_beyond(body: bytes, most: int, opening: int = -1) -> int:
    """Return how many JSON values a text has if they are more than `most` (counting stops there), else 0.

    An empty list or object counts for two. Invalid JSON has values too. `opening`: how many opening brackets it has,
    those in strings included, if they were counted.
    """
    # `{},` takes three bytes. What stands in strings is told apart only where the quick count is too high.
    marks, room = (_BEFORE_VALUES, most - 1) if opening < 0 else (_BEFORE_VALUES[:1], most - 1 - opening)
    if 2 * len(body) < 3 * most or room_left(body, marks, room) >= 0:
        return 0
    count = 1  # each but the first stands behind a comma or an opening bracket
    for outline in outlines(body):
        count += sum(map(outline.count, _BEFORE_VALUES))
        if count > most:
            return count
    return 0


def has_wide_object(body: bytes, most: int, depth: int) -> bool:
    """Return whether an object of a JSON text has more than `most` members. Most texts are decided by a count.

    The search ends at a value with more than `depth` lists and objects around it. Objects and lists without others in
    them are passed at the speed of a search, so that few steps are left.
    """
    if room_left(body, (b":",), most) >= 0:
        return False
    narrow = re.compile(rb"\[,*+\]|\{,{0,%d}+\}" % (most - 1))
    around: list[int] = []  # commas so far, of each list and object that is open
    for outline in outlines(body):
        for _ in range(_INNERMOST):
            outline = narrow.sub(b"", outline.replace(b"{}", b""))
        for run in _RUNS.findall(outline):
            size, mark = len(run), run[0]
            if mark in _OPENING:
                around += [0] * size
            elif mark == _COMMA and around:
                around[-1] += size
            elif around:
                ended = around[-size:]
                if max(ended) >= most and any(
                    count >= most and end == _END for count, end in zip(reversed(ended), run, strict=False)
                ):
                    return True
                del around[-size:]
        if len(around) > depth:
            return False
    return False


def is_deeper(body: bytes, most: int) -> bool:
    """Return whether a text has more than `most` lists and objects around a value."""
    depth = 0
    for outline in outlines(body):
        steps = array("b", outline.translate(_STEPS, b","))
        if depth + len(steps) > most and max(accumulate(steps, initial=depth)) > most:
            return True
        depth += sum(steps)
    return False


def room_left(text: bytes, marks: tuple[bytes, ...], most: int) -> int:
    """Return `most` less the count of some bytes in a text, those in strings included; -1 or less if it has more.

    Stretches without such a byte are passed at the speed of a memory search. In a short piece, removing the byte finds
    each at that speed, in few steps of the interpreter and without new memory; where every few bytes is one, `count`
    is faster. Between the pieces other threads run.
    """
    size = len(text)
    if size <= _SHORT:
        for mark in marks:
            most -= size - len(text.replace(mark, b"", most + 1))
        return most
    for mark in marks:
        is_dense = False
        start = text.find(mark)
        while start >= 0:
            piece = text[start : start + _STEP]
            size = len(piece)
            count = piece.count(mark) if is_dense else size - len(piece.replace(mark, b"", most + 1))
            most -= count
            if most < 0:
                return most
            is_dense = count * _RARE > size
            start = text.find(mark, start + _STEP)
    return most


def outlines(body: bytes, *, piece: int = _PIECE) -> Iterator[bytes]:
    """Yield the brackets and commas outside strings, in pieces. A string may be open at the end of a piece, and of the
    body.

    Each byte is looked at a fixed number of times: an unclosed quote ends the search in its piece and is not tried
    again from the next quote. The pieces let other threads run in between.
    """
    position, in_string = 0, False
    while position < len(body):
        end = min(position + piece, len(body))
        if body.find(b"\\", position, end) < 0:  # then every quote begins or ends a string
            texts = body[position:end].split(b'"')
            yield b"".join(texts[in_string::2]).translate(None, _NO_MARKS)
            in_string ^= len(texts) % 2 == 0
            position = end
            continue
        if in_string:
            rest = _STRING_REST.match(body, position, end)
            position = rest.end() if rest is not None else end
            if position < end:  # at a quote, or at a backslash whose character is in the next piece
                in_string = body[position] != _QUOTE
                position += 2 if in_string else 1
            continue
        closed = _CLOSED.match(body, position, end)
        stop = closed.end() if closed is not None else end
        yield _STRING.sub(b"", body[position:stop]).translate(None, _NO_MARKS)
        in_string = stop < end
        position = stop + in_string
