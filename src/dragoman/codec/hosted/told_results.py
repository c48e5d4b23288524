"""Earlier results of tools that another provider ran, said as texts of the answer: its model saw them, and went on.

No vendor takes another's: Messages checks the seals of what its search found, others know no such parts. Forms (all
read 2026-11-27): Messages' `server_tool_use` and `…_tool_result`, Responses' `…_call` items with their results in
them, Gemini's `executableCode` and `toolCall` with `codeExecutionResult` and `toolResponse`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final, NamedTuple

import msgspec

from dragoman import _json
from dragoman._json import Json
from dragoman.codec.counterparts import kind_of
from dragoman.codec.json_fields import FILE_BYTES, as_object, read
from dragoman.deviations import clip, part_path
from dragoman.events import Deviation
from dragoman.types import Message, Native, Opaque, Part, ProtocolName, Request, Text

_USES: Final = ("server_tool_use", "mcp_tool_use")
#: What ends the type of a result, and of an item that may contain its own.
_RESULT: Final = "_tool_result"
_ITEM: Final = "_call"
#: Fields of such an item, or of its `action`, that are results.
_RESULTS: Final = ("output", "outputs", "results", "error", "sources")
#: Gemini's parts.
_CALLED: Final = ("executableCode", "toolCall")
_RETURNED: Final = ("codeExecutionResult", "toolResponse")
#: Fields that say nothing to another model: seals, ids, marks. Values that go without saying.
_UNREADABLE: Final = re.compile(r"encrypted_\w+|(?:\w+_)?id|signature|cache_control|citations|caller|status")
_USUAL: Final = (("status", "completed"), ("is_error", False))
#: Where the bytes of a file stand, by the type of what has them.
_FILES: Final = (("data", "base64"), ("result", "image_generation_call"))


class _Half(NamedTuple):
    """A call or its result. `id`: the call's, "" if there is none; `said`: a line for each value; `unsaid`: paths."""

    id: str
    name: str
    said: list[str]
    unsaid: list[str]


def with_results_told(request: Request, protocol: ProtocolName) -> tuple[Request, list[Deviation]]:
    """Return the request with what other protocols' providers found for its answers as texts of these."""
    told: list[Deviation] = []
    messages = list(request.messages)
    for place, message in enumerate(messages):
        if message.role == "assistant" and Opaque in map(type, message.parts):
            messages[place] = _told(message, place, protocol, told)
    return (msgspec.structs.replace(request, messages=tuple(messages)) if told else request), told


def _told(message: Message, place: int, protocol: ProtocolName, told: list[Deviation]) -> Message:
    parts: list[Part | None] = list(message.parts)
    begun: dict[str, list[tuple[int, str, _Half]]] = {}  # by id: of two without one, either may be whose result it is
    made: set[int] = set()
    for number, part in enumerate(message.parts):
        if type(part) is not Opaque or part.protocol == protocol:
            continue
        where = f"{part_path((place, number))}.<{kind_of(part.raw)}>"
        call, result = _halves(as_object(read(part.raw)))
        if call is not None and result is None:
            begun.setdefault(call.id, []).append((number, where, call))
        calls = begun.pop(result.id, []) if call is None and result is not None else []
        if result is None or not (result.said or (call is not None and call.said)):
            continue
        before, called, known = calls[0] if len(calls) == 1 else (number, where, call)
        parts[before] = None
        parts[number] = Text(_words(known, result), native=Native(part.protocol, {}))  # whose answer it is
        made.add(number)
        unsaid = [f"{called}.{name}" for name in known.unsaid] if known is not None else []
        unsaid += [f"{where}.{name}" for name in result.unsaid]
        told += [Deviation("untranslated", path, f"{part.protocol}'s own", "note") for path in unsaid]
        told += [Deviation("changed", path, "said as text", "note") for path in dict.fromkeys((called, where))]
    return msgspec.structs.replace(message, parts=_apart(parts, made)) if made else message


def _apart(parts: list[Part | None], made: set[int]) -> tuple[Part, ...]:
    """Return the parts that are left, with an empty line between a made text and its neighbours: they may be joined."""
    texts = {number: part.text for number, part in enumerate(parts) if isinstance(part, Text)}
    for before, number in pairwise(texts):
        if before in made:
            texts[before] += "\n\n"
        elif number in made:
            texts[number] = f"\n\n{texts[number]}"
    return tuple(
        [
            msgspec.structs.replace(part, text=texts[number]) if isinstance(part, Text) else part
            for number, part in enumerate(parts)
            if part is not None
        ]
    )


def _words(call: _Half | None, result: _Half) -> str:
    given = call.said if call is not None else []
    name = call.name if call is not None else result.name
    found = ["It returned:", *result.said] if result.said else []  # an item says what it found only where that is asked
    return "\n".join([f"The tool {name} was used.", *given, *found])


def _halves(fields: dict[str, Any]) -> tuple[_Half | None, _Half | None]:
    """Return the call and the result that a part contains."""
    kind = str(fields.get("type"))
    if kind in _USES:
        server = fields.get("server_name")
        name = str(fields.get("name")) + (f" of {server}" if server else "")
        return _half(fields.get("id"), name, fields, "name", "server_name"), None
    if kind.endswith(_RESULT):
        return None, _half(fields.get("tool_use_id"), kind.removesuffix(_RESULT), fields)
    if kind.endswith(_ITEM) and not fields.get("call_id"):  # with one, the client ran it: its result is another item
        return _split(fields, kind.removesuffix(_ITEM))
    for key in (*_CALLED, *_RETURNED):
        inner = fields.get(key)
        if isinstance(inner, dict):
            half = _half(inner.get("id"), str(inner.get("toolType") or "code_execution"), inner, "toolType")
            return (half, None) if key in _CALLED else (None, half)
    return None, None


def _split(fields: dict[str, Any], name: str) -> tuple[_Half | None, _Half | None]:
    """Return the call and the results in an item."""
    action = as_object(fields.get("action"))
    found = {key: value for key, value in {**action, **fields}.items() if key in _RESULTS}
    given = {key: value for key, value in fields.items() if key not in _RESULTS}
    if action:
        given["action"] = {key: value for key, value in action.items() if key not in _RESULTS}
    server = fields.get("server_label")
    name = f"{fields.get('name')} of {server}" if server else name
    return _half("", name, given, "name", "server_label"), _half("", name, found)


def _half(id: Json, name: str, fields: dict[str, Any], *known: str) -> _Half:
    half = _Half(id if isinstance(id, str) else "", clip(name), [], [])
    _read({key: value for key, value in fields.items() if key not in known}, half)
    return half


def _read(fields: dict[str, Json], half: _Half) -> None:
    """Add a line for each value with something in it, and the paths of those that say nothing."""
    left: list[tuple[str, Json, bool]] = [("", fields, True)]  # path, value, whether it says something
    while left:
        path, value, is_said = left.pop()
        if not is_said or (isinstance(value, str) and FILE_BYTES.search(value.encode("utf-8", "surrogatepass"))):
            half.unsaid.append(clip(path))
        elif isinstance(value, list):
            left += [(f"{path}[]", inner, True) for inner in reversed(value)]
        elif isinstance(value, dict):
            left += reversed(list(_members(value, path)))
        elif not isinstance(value, str) or value.strip():
            name = path.rpartition(".")[2].removesuffix("[]")
            words = value.rstrip("\n") if isinstance(value, str) else _json.to_text(value)
            half.said.append(words if name == "text" else f"{name}: {words}")


def _members(fields: dict[str, Json], path: str) -> Iterator[tuple[str, Json, bool]]:
    for key, inner in fields.items():
        at = f"{path}.{key}" if path else key
        if inner is None or key == "type" or at in ("id", "tool_use_id") or (key, inner) in _USUAL:
            continue
        yield at, inner, not (_UNREADABLE.fullmatch(key) or (key, str(fields.get("type"))) in _FILES)
