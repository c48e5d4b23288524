"""Every event type of the vendors' own streams, written in the same protocol: what it says comes back, and where its
item is one that only the provider knows, it comes back while it happens."""

from __future__ import annotations

import json
from typing import Any, get_args

import openai.types.responses as responses

from answer_fates import passed
from dragoman.codec.framing.body import write_event
from dragoman.events import Deviation, Failure, NativeEvent, fold
from dragoman.protocols import PROTOCOLS
from for_each import for_each
from vendor_answers import LEAST
from vendor_streams import TEXT
from vendor_streams import wire as events_of
from vendor_types import Walk

RESPONSES = "openai-responses"
#: Fields that say where an event belongs: they are given new values.
_PLACES = {"sequence_number", "output_index", "item_id", "content_index", "summary_index", "annotation_index"}
_HEAD = {**LEAST[RESPONSES], "status": "in_progress", "output": []}
_KINDS = {
    "code_interpreter_call": {"code": "x", "container_id": "c", "outputs": []}, "compaction": {},
    "file_search_call": {"queries": []}, "shell_call": {"call_id": "c1", "action": {"commands": []}},
    "shell_call_output": {"call_id": "c1", "output": []}, "web_search_call": {"action": {"type": "search"}},
    "image_generation_call": {"result": ""}, "mcp_call": {"name": "n", "arguments": "", "server_label": "s"},
    "mcp_list_tools": {"server_label": "s", "tools": []},
}  # fmt: skip


def union(hint: Any) -> list[Any]:
    found = get_args(hint)
    return list(get_args(found[0]) or found)


def type_of(kind: Any) -> str:
    return str(get_args(kind.model_fields["type"].annotation)[0])


def item_of(kind: str) -> str:
    """The type of the item that an event tells of; "" for text, thinking, calls and audio."""
    name = kind.removeprefix("response.").split(".")[0]
    return next((item for item in sorted(_KINDS, key=len, reverse=True) if name.startswith(item)), "")


def wire(*events: dict[str, Any]) -> bytes:
    numbered = [{"sequence_number": number, **event} for number, event in enumerate(events)]
    return b"".join(write_event(json.dumps(event).encode(), event["type"]) for event in numbered)


def of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]


def hosted() -> list[Any]:
    return [kind for kind in union(responses.ResponseStreamEvent) if item_of(type_of(kind))]


def stream_of(kind: str, event: dict[str, Any]) -> bytes:
    """A stream in which a message stands before the item, and the item is announced and done."""
    item = {"type": item_of(kind), "id": "it_1", **_KINDS[item_of(kind)]}
    told = {**event, "output_index": 1} | ({"item_id": "it_1"} if "item_id" in event else {})
    return wire(
        {"type": "response.created", "response": _HEAD},
        {"type": "response.output_item.added", "output_index": 0, "item": {**LEAST[RESPONSES]["output"][0]}},
        {"type": "response.output_item.done", "output_index": 0, "item": {**LEAST[RESPONSES]["output"][0]}},
        {"type": "response.output_item.added", "output_index": 1, "item": {**item, "status": "in_progress"}},
        told,
        {"type": "response.output_item.done", "output_index": 1, "item": {**item, "status": "completed"}},
        {"type": "response.completed",
         "response": {**LEAST[RESPONSES], "output": [LEAST[RESPONSES]["output"][0], {**item, "status": "completed"}]}},
    )  # fmt: skip


@for_each("kind", hosted(), ids=type_of)
def test_an_event_of_a_hosted_item_is_written_live(kind: Any) -> None:
    name, walk = type_of(kind), Walk()
    least = walk._least_of(kind, "")
    events = [least]
    for field, (hint, _) in walk.fields(kind).items():
        if field not in _PLACES | {"type"}:
            events += [{**least, field: found.value} for found in walk.walk(hint, field)]
    for event in events:
        came, text, _ = passed(stream_of(name, event), RESPONSES, RESPONSES)
        assert not [each for each in came if type(each) is Failure or type(each) is Deviation]
        out = of(text)
        assert [each["sequence_number"] for each in out] == list(range(len(out)))
        kinds = [each["type"] for each in out]
        assert kinds.count("response.output_item.added") == kinds.count("response.output_item.done") == 2
        (told,) = [each for each in out if each["type"] == name]
        kept = {key: value for key, value in event.items() if key not in _PLACES}
        assert {key: value for key, value in told.items() if key not in _PLACES} == kept
        assert told["output_index"] == 1
        added, done = (kinds.index(f"response.output_item.{step}", 4) for step in ("added", "done"))
        assert added < kinds.index(name) < done
        assert [each["type"] for each in out[-1]["response"]["output"]] == ["message", item_of(name)]


@for_each("target", [name for name in PROTOCOLS if name != RESPONSES])
def test_what_a_hosted_item_does_meanwhile_breaks_no_other_protocol(target: str) -> None:
    data = stream_of("response.web_search_call.searching", {"type": "response.web_search_call.searching"})
    _, text, lost = passed(data, RESPONSES, target)
    assert "hello" in text
    assert ("parts[1]", "web_search_call") in [(each.where, each.seen) for each in lost]


def test_items_stand_by_their_places_however_they_interleave() -> None:
    search = {"type": "web_search_call", "id": "ws_1", "action": {"type": "search"}}
    message = {"type": "message", "id": "m1", "role": "assistant", "content": []}
    text = {"item_id": "m1", "output_index": 1, "content_index": 0}
    data = wire(
        {"type": "response.created", "response": _HEAD},
        {"type": "response.output_item.added", "output_index": 0, "item": search},
        {"type": "response.output_item.added", "output_index": 1, "item": message},
        {"type": "response.output_text.delta", **text, "delta": "hel"},
        {"type": "response.web_search_call.searching", "output_index": 0, "item_id": "ws_1"},
        {"type": "response.output_text.delta", **text, "delta": "lo"},
        {"type": "response.output_item.done", "output_index": 1, "item": LEAST[RESPONSES]["output"][0]},
        {"type": "response.output_item.done", "output_index": 0, "item": search},
        {"type": "response.completed",
         "response": {**LEAST[RESPONSES], "output": [search, LEAST[RESPONSES]["output"][0]]}},
    )  # fmt: skip
    _, written, _ = passed(data, RESPONSES, RESPONSES)
    out = of(written)
    assert [each["type"] for each in out[-1]["response"]["output"]] == ["web_search_call", "message"]
    (told,) = [each for each in out if each["type"] == "response.web_search_call.searching"]
    assert told["output_index"] == 0
    again = fold(passed(written.encode(), RESPONSES, RESPONSES)[0])
    assert (again.text, again.deviations, len(again.parts)) == ("hello", (), 2)


def test_an_event_of_an_item_that_was_never_announced_is_not_written() -> None:
    data = wire(
        {"type": "response.created", "response": _HEAD},
        {"type": "response.web_search_call.searching", "output_index": 7, "item_id": "ws_1"},
        {"type": "response.completed", "response": LEAST[RESPONSES]},
    )
    came, text, _ = passed(data, RESPONSES, RESPONSES)
    assert "searching" not in text
    assert not any(type(each) is NativeEvent for each in came)


@for_each("name", ["response.audio.delta", "response.steer.accepted", "response.steer.failed"])
def test_an_event_of_no_item_is_written_or_named(name: str) -> None:
    data = wire(
        {"type": "response.created", "response": _HEAD},
        {"type": name, "delta": "mark7"},
        {"type": "response.completed", "response": LEAST[RESPONSES]},
    )
    for target in PROTOCOLS:
        _, text, lost = passed(data, RESPONSES, target)
        assert ("mark7" in text) == (target == RESPONSES)
        named = [each.where for each in lost if each.where.startswith("events")]
        assert named == ([] if target == RESPONSES else [f"events.{name}"])


def test_a_message_starts_with_the_counts_that_its_start_told() -> None:
    usage = {"input_tokens": 12, "cache_read_input_tokens": 30, "output_tokens": 1, "service_tier": "standard"}
    start = {**LEAST["anthropic-messages"], "content": [], "stop_reason": None, "usage": usage}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}
    data = events_of([{"type": "message_start", "message": start}, end, {"type": "message_stop"}])
    out = of(passed(data, "anthropic-messages", "anthropic-messages")[1])
    assert out[0]["message"]["usage"] == usage
    assert out[-2]["usage"] == {**usage, "output_tokens": 9}


def test_a_system_message_of_a_stream_is_no_deviation() -> None:
    start = {**LEAST["anthropic-messages"], "content": [], "stop_reason": None}
    news = {"type": "system.message", "message": "mark7"}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}
    shown = [{"type": "message_start", "message": start}, news, *TEXT, end, {"type": "message_stop"}]
    data = events_of(shown)
    for target in PROTOCOLS:
        came, text, lost = passed(data, "anthropic-messages", target)
        assert [each for each in came if type(each) is Deviation] == []
        assert ("mark7" in text) == (target == "anthropic-messages")
        assert "events.system.message" in [each.where for each in lost] or target == "anthropic-messages"
