"""Bodies broken by chance: what proxies, templates and bugs do to bytes, and to the JSON in them. Seeded, no clock."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from typing import Any

#: What is put into bodies: JSON and its wrecks, framing, bytes that are no text.
JUNK = (
    b"{}", b"[]", b"null", b'""', b"true", b"NaN", b"1e999", b"-", b"99999999999999999999", b'"', b"\\", b"\\u",
    b"\\ud83d", b"\\udc00", b'\\"', b"{", b"}", b"[", b"]", b",", b":", b"\n", b"\r", b"\r\n", b"\n\n", b"\x00",
    b"\xff", b"\xc3", b"\xe2\x80\xa8", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"data: ", b"data:", b"data: [DONE]\n\n",
    b"event: error\n", b": ping\n\n", b"id: 1\n", b"[DONE]", b"<html>502 Bad Gateway</html>", b'{"error":"x"}',
    b'data: {"error":{"message":"x"}}\n\n', b"}{", b"]}", b"\x1f\x8b", b"[" * 2000, b'{"a":' * 2000,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 10**20, "", "x", "null", "{}", " ", "\ud800", [], {}, [None], [[]], [{}], {"": None},
    {"a": {"b": []}}, "0", '{"a":1}', "tool_calls", "error", [1, "x", None], {"type": "text", "text": "hi"},
    {"type": "unknown"}, {"error": "x"}, {"message": "x"},
)  # fmt: skip


def mutated(body: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    """The body after one to six accidents."""
    for _ in range(chance.choice((1, 1, 2, 3, 6))):
        body = chance.choice(ACCIDENTS)(body, others, chance)
    return body[:400_000]


def pieces(body: bytes, chance: random.Random) -> list[bytes]:
    """The body as it may arrive."""
    size = chance.choice((1, 7, 100, 1000, 10**6))
    if size == 1 and len(body) > 5000:
        size = 50
    return [body[start : start + size] for start in range(0, len(body), size)]


def _span(size: int, chance: random.Random) -> tuple[int, int]:
    start = chance.randrange(size + 1)
    return start, min(size, start + chance.choice((1, 1, 2, 5, 20, 200)))


def flip(body: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    if not body:
        return body
    place = chance.randrange(len(body))
    return body[:place] + bytes([body[place] ^ (1 << chance.randrange(8))]) + body[place + 1 :]


def drop(body: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    start, end = _span(len(body), chance)
    return body[:start] + body[end:]


def double(body: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    start, end = _span(len(body), chance)
    return body[:end] + body[start:end] * chance.choice((1, 1, 2, 50)) + body[end:]


def insert(body: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    place = chance.randrange(len(body) + 1)
    return body[:place] + chance.choice(JUNK) + body[place:]


def truncate(body: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    return body[: chance.randrange(len(body) + 1)]


def splice(body: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    other = chance.choice(others)
    return body[: chance.randrange(len(body) + 1)] + other[chance.randrange(len(other) + 1) :]


def move_lines(body: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    """Drop, double, swap or shuffle lines or events."""
    end = chance.choice((b"\n", b"\n\n"))
    lines = body.split(end)
    place, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    match chance.randrange(4):
        case 0:
            del lines[place]
        case 1:
            lines.insert(other, lines[place])
        case 2:
            lines[place], lines[other] = lines[other], lines[place]
        case _:
            chance.shuffle(lines)
    return end.join(lines)


def change_value(body: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    """Put another value, or another key, into the JSON of one line (or of the whole body)."""
    spans = [found.span() for found in re.finditer(rb"\{.*\}", body)] or [(0, len(body))]
    start, end = chance.choice(spans)
    try:
        value = json.loads(body[start:end])
    except (ValueError, RecursionError):
        return insert(body, others, chance)
    _change_within(value, chance)
    return body[:start] + json.dumps(value).encode() + body[end:]


def _change_within(value: Any, chance: random.Random) -> None:
    places = list(_places(value))
    if not places:
        return
    container, key = chance.choice(places)
    match chance.randrange(4):
        case 0:
            del container[key]
        case 1 if isinstance(container, dict):
            container[chance.choice(("type", "id", "error", "index", "content", "x", key.upper()))] = container.pop(key)
        case 2 if isinstance(container, list):
            container.append(container[key])
        case _:
            container[key] = chance.choice(VALUES)


def _places(value: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    waiting = [value] if isinstance(value, dict | list) else []
    while waiting:
        container = waiting.pop()
        keys = list(container) if isinstance(container, dict) else range(len(container))
        for key in keys:
            found.append((container, key))
            if isinstance(container[key], dict | list):
                waiting.append(container[key])
    return found


ACCIDENTS = (flip, drop, double, insert, truncate, splice, move_lines, change_value, change_value, change_value)
