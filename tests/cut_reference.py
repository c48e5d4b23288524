"""What a stream had closed before a cut, read by a plain reader of its own: nothing here is shared with the decoders.

It looks at what stands on the wire alone: which objects were whole, which texts of arguments were closed, which names
were called. It knows no quirk: that a delivered call is one of the whole stream is the other half of the check.
"""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from cut_streams import Cuttable, Ending, parse_frame, split_frames

Call = tuple[str, str]


class Said(NamedTuple):
    """What was said up to a cut.

    `objects`: arguments that were sent as an object. `texts`: the texts of arguments of each call, joined. `text`: the
    words of the message. `bare`: how many calls said nothing but their name.
    """

    objects: list[Any]
    texts: list[str]
    text: str
    bare: int


def read_said(stream: Cuttable, wire: bytes) -> Said:
    """The frames of a stream, taken apart and put together by call."""
    objects: list[Any] = []
    texts: dict[str, str] = {}
    words: list[str] = []
    last = ""
    for frame in split_frames(stream._replace(wire=wire)):
        for item in _dicts(parse_frame(frame)):
            for key in ("args", "input", "arguments", "parameters"):
                value = item.get(key)
                objects += [value] if isinstance(value, dict) else []
            words += [item[key] for key in ("content", "text", "reasoning_content") if isinstance(item.get(key), str)]
            if item.get("type") == "content_block_delta":
                slot = f"block {item.get('index')}"
                texts[slot] = texts.get(slot, "") + str((item.get("delta") or {}).get("partial_json") or "")
            elif str(item.get("type")).endswith("arguments.delta"):
                slot = f"item {item.get('output_index', item.get('item_id', item.get('call_id')))}"
                texts[slot] = texts.get(slot, "") + str(item.get("delta") or "")
            elif isinstance(item.get("name"), str) or isinstance(item.get("arguments"), str):
                last = f"call {len(texts)}" if item.get("name") else last
                texts[last] = texts.get(last, "") + str(item.get("arguments") or "")
    return Said(
        objects, list(texts.values()), "".join(words), sum(text.strip() in ("", "null") for text in texts.values())
    )


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a value, the outer ones first."""
    waiting = [value]
    while waiting:
        value = waiting.pop(0)
        if isinstance(value, dict):
            yield value
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def closed_objects(text: str) -> list[Any]:
    """The JSON objects that stand whole in a text, each from its own opening brace."""
    decoder = json.JSONDecoder(strict=False)
    found = []
    place = text.find("{")
    while place >= 0:
        try:
            value, end = decoder.raw_decode(text, place)
        except ValueError:
            end = place + 1
        else:
            found.append(value)
        place = text.find("{", end)
    return found


def leaves(value: Any) -> Counter[str]:
    """The keys and values of an object as words, whatever their types: `5` and `"5"` are one."""
    found: Counter[str] = Counter()
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            found.update(str(key) for key in value)
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        else:
            inner = closed_objects(value) if isinstance(value, str) and value.lstrip().startswith("{") else []
            waiting += inner
            found.update([] if inner else [str(value).lower()])
    return found


def python_calls(text: str) -> list[tuple[str, Any]]:
    """The calls of a text that is nothing but Python calls with literal keywords, one a line or in one list."""
    try:
        body = ast.parse(text.strip()).body
        nodes = [statement.value for statement in body if isinstance(statement, ast.Expr)]
        if len(nodes) == 1 and isinstance(nodes[0], ast.List):
            nodes = nodes[0].elts
        calls = [node for node in nodes if isinstance(node, ast.Call) and not node.args]
        if len(calls) < max(len(nodes), len(body)):
            return []
        return [
            (ast.unparse(call.func), {str(word.arg): ast.literal_eval(word.value) for word in call.keywords})
            for call in calls
        ]
    except (SyntaxError, ValueError):
        return []


def is_subsequence(some: Sequence[object], of_all: Sequence[object]) -> bool:
    """Whether `some` are of `of_all`, in order: of parallel calls the second may be whole before the first."""
    rest = iter(of_all)
    return all(item in rest for item in some)


def illegitimate(calls: list[Call], of_whole: list[Call], stream: Cuttable, wire: bytes, ending: Ending) -> list[Call]:
    """The delivered calls that the stream had neither said nor closed before the cut.

    A call of the whole stream is said. Else its arguments must stand on the wire as a closed object, as often as they
    are delivered. Free text is closed by the end of a chat alone, as is a message of Python calls: what the whole
    stream says behind them has not come. A call without arguments may be one of which nothing but the name came, at
    an end that the wire calls good.
    """
    if is_subsequence(calls, of_whole):
        return []
    said = read_said(stream, wire)
    closed = [leaves(value) for value in said.objects]
    closed += [leaves(value) for text in said.texts for value in closed_objects(text)]
    # in words a call is an object around its arguments
    closed += [leaves(inner) for value in closed_objects(said.text) for inner in _dicts(value)]
    bare = said.bare if ending == "stop" else 0
    written = python_calls(said.text) if ending == "stop" else []
    rest = list(of_whole)
    wrong = []
    for call in calls:
        if call in rest:
            rest.remove(call)
            continue
        try:
            value = json.loads(call[1])
        except ValueError:
            value = None
        if value == {} and bare > 0:
            bare -= 1
        elif (call[0], value) in written:
            written.remove((call[0], value))
        elif value is not None and (words := leaves(value)) in closed:
            closed.remove(words)
        elif value is None and ending == "stop" and stream.protocol == "openai-chat":
            continue
        else:
            wrong.append(call)
    return wrong
