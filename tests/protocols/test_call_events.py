"""Usual events of Responses about calls, which are read at once: as every other event is read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from damage import a_copy
from dragoman._json import Malformed
from dragoman.events import Event, Failure, ToolCallEnd, ToolCallFailed
from dragoman.protocols import PROTOCOLS
from dragoman.protocols.openai_responses.response import call_events
from dragoman.protocols.openai_responses.response import decode as decoder

ARGUMENTS = '{"path":"a"}'
VALUES = ("", "x", "{}", ARGUMENTS, '{"path":"b"}', "function_call", "mcp_call", "message", "completed", "incomplete",
          0, 1, 7, None, True, 1.5, {}, {"path": "a"}, [], [1])  # fmt: skip
KEYS = ("arguments", "input", "parameters", "name", "tool", "content", "call_id", "item_id", "id", "namespace", "error",
        "item", "output", "response", "delta", "text", "type", "status", "caller", "sequence_number")  # fmt: skip


def call(index: int, arguments: str, *, has_deltas: bool) -> list[dict[str, Any]]:
    item = {"id": f"fc_{index}", "type": "function_call", "status": "in_progress", "call_id": f"call_{index}",
            "name": "note", "arguments": ""}  # fmt: skip
    place = {"item_id": f"fc_{index}", "output_index": index}
    head = "response.function_call_arguments"
    deltas = [{"type": f"{head}.delta", "sequence_number": 1, **place, "delta": arguments}] if has_deltas else []
    return [
        {"type": "response.output_item.added", "sequence_number": 1, "output_index": index, "item": item},
        *deltas,
        {"type": f"{head}.done", "sequence_number": 2, **place, "arguments": arguments, "name": "note"},
        {"type": "response.output_item.done", "sequence_number": 3, "output_index": index,
         "item": {**item, "status": "completed", "arguments": arguments}},
    ]  # fmt: skip


def written(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def changed(event: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The event with one member otherwise, gone, or told twice, in each of its objects; before it the member's key."""
    for place in ((), ("item",)) if "item" in event else ((),):
        told = event["item"] if place else event
        for key in dict.fromkeys((*told, *KEYS)):
            for value in VALUES:
                odd = a_copy(event)
                (odd["item"] if place else odd)[key] = value
                yield key, written(odd)
                own = written(told)
                yield key, written(event).replace(own, f'{own[:-1]},"{key}":{written(value)}}}')
            if key in told:
                odd = a_copy(event)
                del (odd["item"] if place else odd)[key]
                yield key, written(odd)


def read(frames: list[str], *, names: bool, offered: Iterable[str] = ("note",)) -> list[Event]:
    numbers = iter(range(1000))
    made = PROTOCOLS["openai-responses"].decoder(
        new_id=lambda: f"{next(numbers):024}", offered_names=frozenset(offered)
    )
    events: list[Event] = []
    for frame in frames:
        kind = json.loads(frame).get("type") if names else None
        name = f"event: {kind}\n" if isinstance(kind, str) else ""
        events += made.feed(f"{name}data: {frame}\n\n".encode())
    return events + made.close()


@pytest.mark.parametrize("arguments", [ARGUMENTS, "{}"])
@pytest.mark.parametrize("has_deltas", [True, False])
@pytest.mark.parametrize("is_begun", [True, False])
@pytest.mark.parametrize("step", [pytest.param(83, id="some"), pytest.param(1, marks=pytest.mark.soak, id="all")])
def test_a_usual_event_is_read_as_any_other(
    step: int, arguments: str, has_deltas: bool, is_begun: bool, monkeypatch: pytest.MonkeyPatch
):
    response = {"id": "resp_1", "object": "response", "status": "in_progress", "model": "m", "output": []}
    begin = [{"type": "response.created", "sequence_number": 0, "response": response}] if is_begun else []
    calls = [*call(0, arguments, has_deltas=has_deltas), *call(1, ARGUMENTS, has_deltas=True)]
    output = [event["item"] for event in calls if event["type"] == "response.output_item.done"]
    end = {"type": "response.completed", "response": {**response, "status": "completed", "output": output}}
    frames = [written(event) for event in (*begin, *calls, end)]
    usual = 0
    for place, event in enumerate(calls, start=len(begin)):
        if event["type"].endswith("delta"):
            continue
        for number, (key, odd) in enumerate([("", written(event)), *changed(event)]):
            telling = key in ("type", "item_id", "content") and (number + place) % min(step, 3) == 0
            if number % step and not telling:
                continue
            usual += type(call_events.read_call_event(odd.encode())) is not Malformed
            told = [*frames[:place], odd, *frames[place + 1 :]]
            quick = read(told, names=number % 2 == 0)
            with monkeypatch.context() as patch:
                patch.setattr(decoder, "read_call_event", lambda data: Malformed("not read at once"))
                assert quick == read(told, names=number % 2 == 0), odd
    assert usual > 10


@pytest.mark.parametrize("is_shared", [False, True])
def test_what_tells_a_call_again_may_leave_out_its_namespace(is_shared: bool):
    """The whole arguments have none; a later item without one is refused if a function outside has the name."""
    events = call(0, ARGUMENTS, has_deltas=True)
    for event in (events[0], events[-1]):
        event["item"]["namespace"] = "a"
    own, bare = events[-1]["item"], {key: value for key, value in events[-1]["item"].items() if key != "namespace"}
    for item, again in ((own, own), (bare, own), (own, bare), (bare, bare)):
        end = {"type": "response.completed", "response": {"status": "completed", "output": [again]}}
        told = [*events[:-1], {**events[-1], "item": item}, end]
        offered = ("a__note", "b__note", *(["note"] if is_shared else []))
        seen = read([written(event) for event in told], names=True, offered=offered)
        ended = [(event.call.name, event.call.arguments) for event in seen if type(event) is ToolCallEnd]
        if is_shared and bare in (item, again):
            assert any(type(event) in (ToolCallFailed, Failure) for event in seen), (item, again)
        else:
            assert ended == [("a__note", ARGUMENTS)], (item, again)
            assert not any(type(event) in (ToolCallFailed, Failure) for event in seen), (item, again)
