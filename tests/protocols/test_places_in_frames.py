"""The text of a value as its frame has it, for OpenAI Responses: each list and object is read once, and one that is not
where it should be raises nothing."""

from __future__ import annotations

import json
from typing import Any

from dragoman.events import Event, Failure, PartEvent, ToolCallEnd, ToolCallStart
from dragoman.protocols.openai_responses.wire import Place
from dragoman.types import Opaque
from for_each import for_each
from growth import json_bytes_of
from places import reader_of

#: Output items whose text is taken from their frame, and the part of them that repeats.
ITEMS = (
    '{"type":"function_call","call_id":"c%d","name":"f","arguments":{"a":1.50}}',
    '{"type":"tool_use","id":"c%d","name":"f","input":{"a":1.50}}',
    '{"type":"unheard_of","id":"c%d"}',
)


def whole(output: list[Any]) -> bytes:
    return json.dumps({"id": "r", "object": "response", "status": "completed", "output": output}).encode()


def answer(data: bytes) -> list[Event]:
    reader = reader_of("openai-responses")
    return [*reader.feed(data), *reader.close()]


@for_each("item", ITEMS)
@for_each("is_content", [False, True])
def test_a_list_is_read_once_for_all_that_stands_in_it(item: str, is_content: bool) -> None:
    def read(count: int) -> float:
        items = [json.loads(item.replace("%d", str(number))) for number in range(count)]
        data = whole([{"type": "message", "id": "m", "content": items}] if is_content else items)
        return json_bytes_of(lambda: answer(data))[0] / len(data)

    assert read(400) < 1.5 * read(50)


@for_each("key", ["content", "reasoning_content", "text", "summary"])
@for_each("kind", ["reasoning", "message", "function_call"])
@for_each("value", [{"type": "odd", "x": 1}, [{"type": "odd", "x": 1}], [[]], [None, 1], "odd", 1])
def test_parts_under_any_key_end_in_an_answer(key: str, kind: str, value: object) -> None:
    events = answer(whole([{"type": kind, "id": "i", key: value}]))
    assert not any(isinstance(event, Failure) and event.kind == "internal" for event in events)


def test_numbers_keep_their_form() -> None:
    data = whole([{"type": "message", "id": "m", "content": [{"type": "odd", "x": 1}]}]).replace(
        b'"x": 1', b'"x": 1.50'
    )
    parts = [event.part for event in answer(data) if isinstance(event, PartEvent)]
    assert [bytes(part.raw) for part in parts if isinstance(part, Opaque)] == [b'{"type":"odd","x":1.50}']


def test_a_place_gives_the_text_or_a_fallback() -> None:
    place = Place(b'{"a": [{"b": 1.0}, "x"], "c": 1}')
    assert bytes(place.text({})) == place.frame
    assert bytes(place.inner("a", 0, "b").text(None)) == b"1.0"
    assert place.inner("a", 1).frame is place.frame
    for path in (("z",), ("a", 7), ("a", "b"), ("c", 0), ("c", "d"), ("a", 1, "x"), (0,)):
        assert bytes(place.inner(*path).text({"y": 2})) == b'{"y":2}'
    assert bytes(Place(b"no JSON").inner("a", "b").text(None)) == b"null"


def test_calls_of_one_list_keep_their_own_arguments() -> None:
    items = [json.loads(ITEMS[0].replace("%d", str(number)).replace("1.50", f"{number}")) for number in range(9)]
    events = answer(whole(items))
    assert [event.id for event in events if isinstance(event, ToolCallStart)] == [f"c{number}" for number in range(9)]
    ends = [json.loads(event.call.arguments) for event in events if isinstance(event, ToolCallEnd)]
    assert ends == [{"a": str(number)} for number in range(9)]
