"""Wire faults, by the names of `dragoman.deviations`: what they do to the bytes of an answer, in any protocol.

Each changes the frames of a correct answer (the data of an event stream, a line, a whole body), so that none of them
names a protocol. A fault that finds nothing to change cannot be played there.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias, final

import msgspec

from dragoman import _json
from dragoman.codec.json_fields import parts_of
from dragoman.types import Part, Text, Thinking, ToolCall

#: Changes one frame's value in place; whether it found something to change.
Spoil: TypeAlias = Callable[[Any], bool]


@final
class Fault(msgspec.Struct, frozen=True):
    """What it changes: the parts of the answer before they are written, values of frames, or the bytes of a body."""

    parts: Callable[[tuple[Part, ...]], tuple[Part, ...]] | None = None
    value: Spoil | None = None
    body: Callable[[bytes], bytes] | None = None
    needs_call: bool = False


def play(body: bytes, fault: Fault) -> bytes | None:
    """Return a body with the fault in it, or None if it has no place for it."""
    if fault.value is not None:
        spoiled, found = [], False
        for prefix, data, suffix in _frames(body):
            value = _json.decode(data) if data else None
            if isinstance(value, dict | list) and fault.value(value):
                found, data = True, _json.encode(value)
            spoiled.append(prefix + data + suffix)
        return b"".join(spoiled) if found else None
    if fault.body is not None:
        changed = fault.body(body)
        return changed if changed != body else None
    return body


def _frames(body: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield lines as the text before their JSON, the JSON, and the line end."""
    for line in body.splitlines(keepends=True):
        text = line.rstrip(b"\r\n")
        prefix = b"data: " if text.startswith(b"data: ") else b""
        yield prefix, text[len(prefix) :], line[len(text) :]


def _inside(value: Any) -> Iterator[dict[str, Any]]:
    """Yield all objects of a value."""
    return (one for one in parts_of(value) if isinstance(one, dict))


def _calls(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects that are calls, in any protocol."""
    for one in _inside(value):
        for key in ("tool_calls", "functionCall", "content_block", "item", "output", "content"):
            inner = one.get(key)
            for call in inner if isinstance(inner, list) else (inner,):
                if isinstance(call, dict) and (
                    key in ("tool_calls", "functionCall") or call.get("type") in ("tool_use", "function_call")
                ):
                    yield call


def _named(call: dict[str, Any]) -> dict[str, Any]:
    """Return the object that contains a call's name and arguments."""
    inner = call.get("function")
    return inner if isinstance(inner, dict) else call


def _without(*keys: str) -> Spoil:
    def spoil(value: Any) -> bool:
        found = False
        for call in _calls(value):
            for key in keys if "args" not in call else ():  # where calls need none of these
                found = call.pop(key, None) is not None or found
        return found

    return spoil


def _at_zero(value: Any) -> bool:
    """Set every call's index to 0, as servers do that never count them."""
    found = False
    for one in _inside(value):
        calls = one.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict) and call.get("index"):
                call["index"], found = 0, True
    return found


def _mangle(value: Any) -> bool:
    found = False
    for call in _calls(value):
        named = _named(call)
        if isinstance(named.get("name"), str):
            named["name"], found = f"functions.{named['name']}", True
    return found


def _without_end(value: Any) -> bool:
    found = False
    for one in _inside(value):
        for key in ("finish_reason", "done_reason"):
            found = one.pop(key, None) is not None or found
    return found


def _misspelled_end(value: Any) -> bool:
    found = False
    for one in _inside(value):
        for key in ("finish_reason", "finishReason", "done_reason", "stop_reason"):
            if isinstance(one.get(key), str):
                one[key], found = "finished_somehow", True
    return found


def _doubled(value: Any) -> bool:
    found = False
    for call in _calls(value):
        named = _named(call)
        for key in ("arguments", "args", "input"):
            if isinstance(named.get(key), dict) and named[key]:
                named[key], found = _json.to_text(named[key]), True
    return found


def _as_text(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Write calls as text, as models do that were trained so."""
    out: list[Part] = []
    for part in parts:
        if isinstance(part, ToolCall):
            written = f'{{"name": {_json.to_text(part.name)}, "arguments": {part.arguments}}}'
            part = Text(f"<tool_call>\n{written}\n</tool_call>")
        out.append(part)
    return tuple(out)


def _think(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Write thinking into the text."""
    thought = "".join(part.text for part in parts if isinstance(part, Thinking)) or "Hm."
    rest = [part for part in parts if not isinstance(part, Thinking)]
    if rest and isinstance(rest[0], Text):
        return (Text(f"<think>{thought}</think>{rest[0].text}"), *rest[1:])
    return (Text(f"<think>{thought}</think>"), *rest)


def _in_first_event(change: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    def changed(body: bytes) -> bytes:
        before, mark, after = body.partition(b"data: ")
        return before + change(mark) + after if mark else body

    return changed


def _one_newline(body: bytes) -> bytes:
    return body.replace(b"\n\n", b"\n") if body.startswith(b"data:") else body


def _stray(body: bytes) -> bytes:
    first, mark, rest = body.partition(b"\n\n")
    return first + mark + b"upstream is slow today\n\n" + rest if mark else body


def _without_mark(body: bytes) -> bytes:
    return body.replace(b"data: [DONE]\n\n", b"")


FAULTS: Final[Mapping[str, Fault]] = {
    "byte-order-mark": Fault(body=lambda body: b"\xef\xbb\xbf" + body),
    "double-data-prefix": Fault(body=_in_first_event(lambda mark: mark + mark)),
    "mangled-name": Fault(value=_mangle, needs_call=True),
    "missing-id": Fault(value=_without("id", "call_id"), needs_call=True),
    "missing-index": Fault(value=_without("index"), needs_call=True),
    "missing-type": Fault(value=_without("type"), needs_call=True),
    "arguments-type": Fault(value=_doubled, needs_call=True),
    "mislabelled-gzip": Fault(body=lambda body: gzip.compress(body, mtime=0)),
    "missing-stop-reason": Fault(value=_without_end),
    "no-end-marker": Fault(body=_without_mark),
    "rescued-call": Fault(parts=_as_text, needs_call=True),
    "reused-index": Fault(value=_at_zero, needs_call=True),
    "single-newline": Fault(body=_one_newline),
    "stop-reason": Fault(value=_misspelled_end),
    "stray-text": Fault(body=_stray),
    "thinking-as-text": Fault(parts=_think),
}


def needs_call(faults: Iterable[str]) -> bool:
    """Return whether one of them is a fault of a call."""
    return any(FAULTS[name].needs_call for name in faults)
