"""Damaged bodies of answers with two calls: members that moved, got another name or another type, frames that moved,
came twice or were joined, and frames that are cut.

No damage leaves a body that is as good as a whole one: what a call has is nowhere taken out without a trace, for a call
without arguments is one, and calls whose values were changed are told from no others.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

import wires
from two_calls import CALLS, OLLAMA_HEAD, TEXTS, WIRES, Path, value_at, wire_body
from wires import Frame

#: Members that hold what the model says for a call: nothing in them is damaged, where they are objects.
ARGUMENTS = ("args", "arguments", "input")
#: How servers and templates call members elsewhere.
ELSEWHERE = {
    "arguments": ("args", "parameters", "input", "params", "partial_json"), "args": ("arguments", "parameters"),
    "call_id": ("id", "tool_call_id"), "choices": ("choice", "candidates", "results"), "content": ("contents", "parts"),
    "content_block": ("block", "content"), "delta": ("arguments", "content", "chunk", "text"),
    "function": ("func", "tool", "function_call"), "functionCall": ("function_call", "call", "functionCalls"),
    "id": ("call_id", "tool_call_id"), "index": ("idx", "output_index"), "input": ("arguments", "args"),
    "item": ("output_item", "output", "data"), "item_id": ("id", "call_id"), "message": ("delta", "msg"),
    "name": ("function_name", "tool", "tool_name", "functionName"), "output_index": ("index",),
    "partialArgs": ("partial_args", "args"), "partial_json": ("text", "input_json", "arguments"),
    "tool_calls": ("tool_call", "toolCalls", "calls", "function_calls", "tools"), "type": ("kind", "event"),
}  # fmt: skip
SCALARS: tuple[Any, ...] = (True, 7, 2.5)


def members(value: object, path: Path = ()) -> Iterator[Path]:
    """The places of all members but those within arguments."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key)
            if not (key in ARGUMENTS and isinstance(inner, dict)):
                yield from members(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from members(inner, (*path, number))


def objects_in(value: object, path: Path = ()) -> Iterator[Path]:
    """The places of all objects but arguments and what stands in them."""
    if isinstance(value, dict):
        yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ()):
        if key not in ARGUMENTS:
            yield from objects_in(inner, (*path, key))


def a_copy(value: Any) -> Any:
    """A copy of JSON values, in a twentieth of the time of `copy.deepcopy`."""
    return msgspec.json.decode(msgspec.json.encode(value))


def changed(frame: Frame, path: Path, **members_of: Any) -> Frame:
    """A copy without the member at a path, and with others beside it."""
    copied = a_copy(frame)
    parent: Any = value_at(copied, path[:-1])
    del parent[path[-1]]
    parent.update(members_of)
    return copied


def moved(frame: Frame) -> Iterator[tuple[str, Frame]]:
    """Each member that says something, in an object around its own, or in one beside it."""
    for path in members(frame):
        own: Any = value_at(frame, path)
        if own in ("", {}, []):
            continue
        around = [path[:at] for at in range(len(path) - 2, -1, -1) if isinstance(value_at(frame, path[:at]), dict)]
        beside = [
            place
            for place in members(value_at(frame, path[:-1]), path[:-1])
            if place[: len(path)] != path and not set(place) & set(ARGUMENTS)
        ]
        for place in (*around[:3], *beside):
            other: Any = value_at(frame, place)
            if isinstance(other, dict) and path[-1] not in other:
                copied = changed(frame, path)
                target: Any = value_at(copied, place)
                target[path[-1]] = own
                yield f"{path} in {place}", copied


def renamed(frame: Frame) -> Iterator[tuple[str, Frame]]:
    """Each member under another name."""
    for path in members(frame):
        key = path[-1]
        if isinstance(key, str):
            camel = re.sub(r"_(\w)", lambda found: found[1].upper(), key)
            snake = re.sub(r"([A-Z])", lambda found: f"_{found[1].lower()}", key)
            words = (key.upper(), key.title(), camel, snake, f"{key}s", f"{key}_", f" {key}", *ELSEWHERE.get(key, ()))
            for word in dict.fromkeys(words):
                if word not in value_at(frame, path[:-1]):  # type: ignore[operator]
                    yield f"{path} as {word!r}", changed(frame, path, **{word: value_at(frame, path)})


def retyped(frame: Frame) -> Iterator[tuple[str, Frame]]:
    """Each member in another form, or something of another type in its place."""
    for path in members(frame):
        own = value_at(frame, path)
        if own in ("", {}, []):
            continue
        is_value = path[-1] in ("stringValue", "numberValue")  # which a scalar may be
        others: list[Any] = [other for other in SCALARS if type(other) is not type(own) and not is_value]
        if isinstance(own, dict | list) and path[-1] not in ARGUMENTS:
            others += [json.dumps(own), [own], [[own]], {"x": own}]
        elif isinstance(own, str):
            others += [[own], [{"text": own}]] if path[-1] in (*ARGUMENTS, "delta", "partial_json") else [[own]]
        elif isinstance(own, int):
            others += [[own]]
        for other in others:
            yield f"{path} is {other!r}", changed(frame, path, **{str(path[-1]): other})


#: What stands in no place of an object or a list, and says nothing by itself.
JUNK: Final[tuple[Any, ...]] = ("x", "stop", 7, True, 2.5, [None], [""], [7])


def broken(frame: Frame) -> Iterator[tuple[str, Frame]]:
    """Something else in place of each object and list; and beside, in each list."""
    for path in members(frame):
        own = value_at(frame, path)
        if not isinstance(own, dict | list) or not own or path[-1] in ARGUMENTS:
            continue
        for junk in JUNK:
            copied = a_copy(frame)
            parent: Any = value_at(copied, path[:-1])
            parent[path[-1]] = junk
            yield f"{junk!r} for {path}", copied
        for junk in (*JUNK, None, "", []) if isinstance(own, list) else ():
            for at in (0, len(own)):
                copied = a_copy(frame)
                entries: Any = value_at(copied, path)
                entries.insert(at, junk)
                yield f"{junk!r} in {path} at {at}", copied


def altered(frame: Frame) -> Iterator[tuple[str, Frame]]:
    """The frame as it is, at another index, of another call, with other arguments or none."""
    text = json.dumps(frame)
    yield "again", frame
    for key in ("index", "output_index"):
        for index in (-1, 0, 1, 5):
            told = re.sub(rf'"{key}": -?\d+', f'"{key}": {index}', text)
            if told != text:
                yield f"{key} {index}", json.loads(told)
    for one, other in ((r"\"a\"", r"\"z\""), ('"a"', '"z"'), ('"c0"', '"c9"'), ('"a"', '""')):
        if one in text:
            yield f"{one} as {other}", json.loads(text.replace(one, other))


def inserted(wire: str, frames: list[Frame]) -> Iterator[tuple[str, bytes]]:
    """Bodies in which a frame comes once more, as it is or altered: further on, at the end or behind it."""
    lines = [json.dumps(frame) for frame in frames]
    for number, frame in enumerate(frames):
        for how, other in altered(frame):
            line = json.dumps(other)
            for at in range(number, len(frames) + 1):
                yield f"{number} {how} at {at}", wire_body(wire, [*lines[:at], line, *lines[at:]])
            if wire.startswith("openai-chat"):
                yield f"{number} {how} behind the end", wire_body(wire, lines) + f"data: {line}\n\n".encode()


_CALL: Final = {"name": "ring", "arguments": '{"bell":"all"}'}
#: Arguments, and calls with some, under keys that wires have for them.
STRAYS: Final[tuple[tuple[str, Any], ...]] = (
    *((key, {"bell": "all"}) for key in ("arguments", "args", "input", "tool_input", "partialArgs", "kwargs")),
    *((key, '{"bell":"all"}') for key in ("arguments", "args", "partial_json", "arguments_json", "Arguments")),
    ("arguments", '{"bell":'), ("function", {"arguments": '{"bell":"all"}'}), ("function_call", _CALL),
    ("functionCall", {"name": "ring", "args": {"bell": "all"}}), ("tool_call", _CALL),
    ("tool_calls", [{"id": "c0", "type": "function", "function": _CALL}]), ("toolCalls", [{"function": _CALL}]),
    ("tool_calls", [{"index": 0, "function": {"arguments": '{"bell":"all"}'}}]),
    ("tool_use", {"input": {"bell": "all"}}), ("calls", [_CALL]), ("q", {"arguments": {"bell": "all"}}),
    ("q", [{"x": {"type": "tool_use", "input": {"b": 1}}}]),
    ("delta", {"partial_json": '{"bell":"all"}'}), ("content_block", {"type": "tool_use", "input": {"bell": "all"}}),
    ("item", {"type": "function_call", "call_id": "c0", **_CALL}), ("output", [{"type": "function_call", **_CALL}]),
    ("content", [{"type": "tool_use", "id": "c0", "name": "ring", "input": {"bell": "all"}}]),
    ("message", {"tool_calls": [{"function": _CALL}]}), ("parts", [{"functionCall": {"args": {"bell": "all"}}}]),
)  # fmt: skip


def strayed(frames: list[Frame]) -> Iterator[tuple[str, list[Frame]]]:
    """A call that takes no parameters, with arguments that are not where a wire has them: in any object of any frame
    from the call on. `frames`: of a body with one such call."""
    first = next(number for number, frame in enumerate(frames) if '"ring"' in json.dumps(frame))
    for number in range(first, len(frames)):
        for path in objects_in(frames[number]):
            if set(path) & {"usage"}:
                continue
            for key, value in STRAYS:
                copied = a_copy(frames)
                target: Any = value_at(copied[number], path)
                is_own = "parts" in path[-2:-1] and key in ("functionCall", "tool_call")  # a further call of Gemini's
                if not target.get(key) and not is_own:
                    target[key] = value
                    yield f"{key} {json.dumps(value)} in {number} {path}", copied


def joined(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Each frame and the next in one: as a list, the one in the other, one behind the other."""
    for at in range(len(lines) - 1):
        one, other = lines[at : at + 2]
        for how, text in (
            ("list", f"[{one}, {other}]"), ("one", f"{one}{other}"), ("lines", f"{one}\ndata: {other}"),
            ("line", f"{one} data: {other}"), ("commas", f"{one},{other}"),
        ):  # fmt: skip
            yield f"{how} {at}", [*lines[:at], text, *lines[at + 2 :]]


def cut(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Each frame cut, without its beginning, and with a hole."""
    for at, line in enumerate(lines):
        step = max(1, len(line) // 24)
        for place in range(step, len(line), step):
            for how, text in (
                ("cut", line[:place]), ("beheaded", line[place:]), ("torn", line[:place] + line[place + 9 :]),
            ):  # fmt: skip
                if not _is_as_good(text, line):
                    yield f"{how} {at} at {place}", [*lines[:at], text, *lines[at + 1 :]]


def _is_as_good(text: str, line: str) -> bool:
    """Whether a damaged frame is one with other values."""
    try:
        damaged = json.loads(text)
    except ValueError:
        return False
    return set(members(damaged)) <= set(members(json.loads(line)))


def bodies(wire: str, frames: list[Frame]) -> Iterator[tuple[str, bytes]]:
    """All of them, each with what was done."""
    lines = [json.dumps(frame) for frame in frames]
    for number, frame in enumerate(frames):
        for damage in (moved, renamed, retyped, broken):
            for how, other in damage(frame):
                damaged = [*lines[:number], json.dumps(other), *lines[number + 1 :]]
                yield f"{damage.__name__} {number}: {how}", wire_body(wire, damaged)
    for damage_of_lines in (cut,) if wire.endswith("whole") else (cut, joined):
        for how, damaged in damage_of_lines(lines):
            yield f"{damage_of_lines.__name__} {how}", wire_body(wire, damaged)


# ---------------------------------------------------------------- further ways to tell the same two calls


def _called(at: int, index: int | None, *, arguments: str = "") -> Frame:
    return _placed(wires.chat_call(CALLS[at][0], arguments, at), index)


def _placed(call: Frame, index: int | None) -> Frame:
    """The call or piece at another index, or without one."""
    rest = {key: value for key, value in call.items() if key != "index"}
    return rest if index is None else {"index": index, **rest}


def _chat_in_pieces(*indices: int | None, size: int) -> list[Frame]:
    """Two calls, each begun and then told in pieces. `indices`: theirs."""
    pieces: list[Frame] = []
    for at, index in enumerate(indices):
        cut = [TEXTS[at][start : start + size] for start in range(0, len(TEXTS[at]), size)]
        pieces += [_called(at, index), *(_placed(wires.chat_piece(text), index) for text in cut)]
    return wires.chat_stream(*pieces)


BASES: dict[str, list[Frame]] = {
    **{wire: make()[0] for wire, make in WIRES.items()},
    "openai-chat, all at index 0": _chat_in_pieces(0, 0, size=12),
    "openai-chat, without an index": _chat_in_pieces(None, None, size=12),
    "openai-chat, in one piece": _chat_in_pieces(0, 1, size=99),
    "openai-chat, whole ones at index 0": wires.chat_stream(*(_called(at, 0, arguments=TEXTS[at]) for at in (0, 1))),
    "openai-chat, flat": wires.chat_stream(
        *(
            {"index": at, "id": f"c{at}", "type": "function", "name": name, "arguments": TEXTS[at]}
            for at, (name, _) in enumerate(CALLS)
        )
    ),
    "ollama-chat, as texts": [
        {**line, **OLLAMA_HEAD}
        for line in wires.ollama_stream(*(wires.ollama_call(name, TEXTS[at]) for at, (name, _) in enumerate(CALLS)))
    ],
    "anthropic-messages, at once": wires.messages_stream(
        *itertools.chain.from_iterable(
            wires.block_of(wires.tool_use(*call, at), at=at) for at, call in enumerate(CALLS)
        )
    ),
}
