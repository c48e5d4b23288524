"""Frames that contain a call and cannot be read reliably: a repeated key with different values, or invalid JSON.

Readers differ in which of the values counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, Literal

from dragoman import _json
from dragoman._json import TOLD_TWICE, Json
from dragoman.codec.containers import Place, misplaced
from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.repeated_keys import repeats_key

#: A call under the keys of the protocols, not an empty list; or as the type of an item or block. A frame may be cut
#: before the call begins.
_CALL: Final = re.compile(
    rb'tool_calls"\s*(?::\s*(?:\[\s*[^]\s]|\[?\s*\Z)|\Z)|(?:tool_calls|function_?[cC]all)"\s*(?::\s*(?:\{|\Z)|\Z)'
)
#: The type of an item or a block that is a call, or what only calls have.
_TYPE: Final = re.compile(
    rb'"type"\s*:\s*"(?:tool_use|function_call|custom_tool_call)"|"(?:arguments|partial_json|partialArgs|args)"\s*:'
)
#: What these two begin with.
_CALL_MARKS: Final = (b'tool_calls"', b'function_call"', b'functionCall"', b'function_Call"', b'functioncall"')
_TYPE_MARKS: Final = (b'"type"', b'"arguments"', b'"partial_json"', b'"partialArgs"', b'"args"')
_NAME: Final = re.compile(rb'"name"\s*:\s*("(?:[^"\\]|\\.){1,512}")')
_MOST_NAMES: Final = 32
#: Bytes of the shortest key of these with its colon.
_SHORTEST: Final = 7
#: A comment of an event stream that a gateway wrote as data: words, so that it is no rest of a frame.
_COMMENT: Final = re.compile(rb"\s{0,9}:\s{0,9}(?!nul|tru|fals)[A-Za-z][A-Za-z _.-]{2,80}\s{0,9}\Z")


def hides_call(frame: bytes) -> bool:
    """Return whether an unread call stands in a frame because a key around it is repeated without one."""
    return _shows_call(frame) and repeats_key(frame)


def _shows_call(frame: bytes) -> bool:
    return _stands(_CALL, _CALL_MARKS, frame)


def _stands(pattern: re.Pattern[bytes], marks: tuple[bytes, ...], frame: bytes) -> bool:
    """Return whether a pattern matches somewhere, at one of its marks.

    A search for all of them at once tries each byte, and holds the interpreter for 0.1 s a MiB.
    """
    for mark in marks:
        place = frame.find(mark)
        while place >= 0:
            if pattern.match(frame, place):
                return True
            place = frame.find(mark, place + 1)
    return False


def refuse(assembly: Assembly, where: str, frame: bytes, name: str = "") -> None:
    """Fail a call in such a frame: its content, and its owner, have two readings.

    So each open call fails, and one more for what is lost. `name`: of that; without it, all whose names are in the
    frame.
    """
    if assembly.phase == "open":
        lose_open_calls(assembly, where, TOLD_TWICE)
        for lost in [name] if name else _names_in(frame, assembly.calls.offered_names) or [""]:
            _lose(assembly, lost, "contradicted", TOLD_TWICE)


def unreadable(assembly: Assembly, where: str, problem: str, frame: bytes, *, is_stream: bool) -> None:
    """Take an unreadable frame: each open call fails, and each one that it names and no other frame reports.

    A body that is one document and no JSON fails as a whole.
    """
    if assembly.phase != "open":
        return
    if _COMMENT.match(frame):  # quirk: comment-as-data
        return assembly.deviate("unreadable-frame", where, "a comment of the event stream")
    told = lose_open_calls(assembly, where, problem)
    if len(frame) < _SHORTEST or b'"' not in frame:  # no key, no name: tiny frames may come by the thousand
        return
    is_twice = problem == TOLD_TWICE
    names, offered = _names_in(frame, assembly.calls.offered_names), assembly.calls.offered_names
    is_call = _shows_call(frame)
    if not (is_stream or is_twice) or not (is_call or _stands(_TYPE, _TYPE_MARKS, frame) or (offered and names)):
        return
    is_before = assembly.calls.end is None  # which a reason before the first call is no sign of
    is_nameless = not (names or told) and is_before and is_call
    for name in [""] if is_nameless else names:
        if name not in told:
            message = TOLD_TWICE if is_twice else "its frame could not be read"
            _lose(assembly, name, "contradicted" if is_twice else "lost", message)


def check_places(assembly: Assembly, fields: Mapping[str, Json], places: Mapping[str, Place]) -> None:
    """Check that each object stands where it belongs: a value in its place may have been part of any open call."""
    if key := misplaced(fields, places):
        lose_open_calls(assembly, key, "expected an object")


def objects_in(assembly: Assembly, where: str, frame: Json) -> Iterator[dict[str, Json]]:
    """Yield the objects of a frame that is none itself: those of a list.

    Any other frame may have been part of any open call, except `null`, which keeps connections alive.
    """
    if isinstance(frame, list) and frame:
        assembly.deviate("envelope", where, "a list")
    else:
        assembly.deviate("unknown-event", where, type(frame).__name__)
    for item in frame if isinstance(frame, list) and frame else [frame]:
        if isinstance(item, dict):
            yield item
        elif item is not None:
            lose_open_calls(assembly, where, "expected an object")


def lose_open_calls(assembly: Assembly, where: str, problem: str) -> set[str]:
    """Fail every open call, because a frame is lost. Return their names.

    After a stop reason the calls have come, and what is lost is usage or the end marker.
    """
    assembly.deviate("unreadable-frame", where, problem)
    ending, calls = assembly.ending, assembly.calls
    ending.unreadable = ending.unreadable or problem
    ending.is_torn = ending.is_torn or ending.reason is None
    lost = list(calls.by_index.values()) if ending.reason is None else []
    for call in lost:
        calls.fail(call, assembly, "lost", f"tool call {call.name or '(no name)'}: a frame could not be read")
    return {call.name for call in lost}


def _lose(assembly: Assembly, name: str, kind: Literal["contradicted", "lost"], problem: str) -> None:
    assembly.drop_call(assembly.open_call(None, name, wait=True), kind, f"tool call {name or '(no name)'}: {problem}")


def _names_in(frame: bytes, offered: frozenset[str]) -> list[str]:
    """Return the names in a frame, each once: those that were offered; if none were, the only one."""
    read = [_json.decode(found[1]) for found in _NAME.finditer(frame)]
    names = list(dict.fromkeys(name for name in read if isinstance(name, str)))
    known = [name for name in names if name in offered]
    return known[:_MOST_NAMES] if offered else names if len(names) == 1 else []
