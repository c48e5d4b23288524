"""A damaged body tells its calls as they were, or the answer fails: none runs with what another one was told, or
without what it was.

`tests/damage.py` says which damage this is. Each run of the suite tries a part of its bodies.
"""

from __future__ import annotations

import json

import msgspec
import pytest

from bare_calls import BARE, BEHIND
from cases import counter
from conversations import reply
from damage import BASES, bodies, strayed
from dragoman.events import fold
from dragoman.protocols import PROTOCOLS
from dragoman.types import Opaque, Text, ToolCall
from for_each import for_each
from profiles import MORE_IN_SOAK
from two_calls import CALLS, made, read, wire_body

#: What each whole answer says that may pass.
SAID = (Text("Both."), *(ToolCall(f"call_{at}", name, json.dumps(told)) for at, (name, told) in enumerate(CALLS)))
#: One body of so many is tried; by `make soak` all are.
EVERY = [6, *(pytest.param(1, marks=mark) for mark in MORE_IN_SOAK)]


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("wire", BASES)
def test_a_damaged_body_delivers_no_call_that_was_not_made(wire: str, every: int) -> None:
    tried = refused = 0
    for number, (how, body) in enumerate(bodies(wire, BASES[wire])):
        if number % every:
            continue
        told = read(wire, [body])
        calls = made(told)
        if told.error is None:
            assert all(call in CALLS for call in calls), (how, calls)
            assert len(calls) <= len(CALLS), (how, calls)
            missing = [call[0] for call in CALLS if call not in calls]
            # a frame that is cut may have lost all that tells a call
            assert how.startswith("cut") or not any(name.encode() in body for name in missing), (how, calls)
        tried += 1
        refused += told.error is not None
    assert tried > 30 and 0 < refused < tried


@pytest.mark.parametrize("every", [3, *EVERY[1:]])
@pytest.mark.parametrize("wire", BARE | BEHIND)
def test_a_call_with_arguments_elsewhere_does_not_run_without(wire: str, every: int) -> None:
    tried = 0
    for number, (how, frames) in enumerate(strayed((BARE | BEHIND)[wire]())):
        if number % every:
            continue
        told = read(wire, [wire_body(wire, [json.dumps(frame) for frame in frames])])
        assert told.error is not None or made(told) == [("ring", {"bell": "all"})], (how, made(told))
        tried += 1
    assert tried > 15


@for_each("id", ["c0", None])
def test_arguments_in_the_start_of_a_message_are_those_of_its_call(id: str | None) -> None:
    frames = BARE["anthropic-messages, at once"]()
    block = {"type": "tool_use", "id": id, "name": "ring", "input": {"bell": "all"}}
    frames[0]["message"]["content"] = [block]
    told = read("anthropic-messages", [wire_body("anthropic-messages", [json.dumps(frame) for frame in frames])])
    assert told.error is not None and not made(told)


@for_each("number", [4, 5])
def test_a_name_that_is_a_number_is_none(number: int) -> None:
    frames = BARE["openai-responses"]()
    item = frames[number]["item"] if number == 4 else frames[number]["response"]["output"][0]
    item["name"] = 5
    assert read("openai-responses", [wire_body("", [json.dumps(frame) for frame in frames])]).error is not None


@for_each("name", [5, True, ["ring"], {"x": "ring"}])
def test_the_end_of_arguments_that_names_no_tool_by_text_fails_its_call(name: object) -> None:
    frames = BARE["openai-responses"]()
    done = next(frame for frame in frames if frame["type"].endswith("arguments.done"))
    done["name"] = name
    assert read("openai-responses", [wire_body("", [json.dumps(frame) for frame in frames])]).error is not None


def test_another_id_at_the_end_of_an_item_is_told() -> None:
    for told in ("c0", "c9"):
        frames = json.loads(json.dumps(BASES["openai-responses"]))
        done = next(frame for frame in frames if frame["type"].endswith("output_item.done"))
        done["item"]["call_id"] = told
        read_back = read("openai-responses", [wire_body("", [json.dumps(frame) for frame in frames])])
        assert ("changing-id" in [one.code for one in read_back.deviations]) is (told == "c9")


@for_each("content", [True, 7, "Hi", [{"type": "text", "text": 7}], [{"type": "text", "text": True}]])
def test_texts_of_messages_in_another_form_are_told(content: object) -> None:
    message = {"id": "m", "type": "message", "role": "assistant", "content": content, "stop_reason": "end_turn"}
    told = read("anthropic-messages", [json.dumps(message).encode()])
    assert told.text in ("Hi", "7", "true")
    assert "wrong-type" in [one.code for one in told.deviations]


#: Items of tools that xAI runs itself are told as custom calls.
RUN_BY_XAI = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "xs_call_1", "name": "x_keyword_search"}


@for_each("is_stream", [False, True])
@for_each("is_offered", [False, True])
def test_a_tool_that_the_provider_runs_is_no_call_of_the_client(is_offered: bool, is_stream: bool) -> None:
    item = {**RUN_BY_XAI, "input": '{"query": "q"}', "status": "completed"}
    message = {"type": "message", "id": "i1", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}
    final = {"id": "r", "object": "response", "status": "completed", "output": [item, message]}
    place = {"output_index": 0, "item_id": "ctc_1"}
    events = [
        {"type": "response.created", "response": {**final, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "input": ""}},
        {"type": "response.custom_tool_call_input.delta", **place, "delta": item["input"]},
        {"type": "response.custom_tool_call_input.done", **place, "input": item["input"]},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": final},
    ]
    lines = [json.dumps(event) for event in events] if is_stream else [json.dumps(final)]
    names = frozenset({item["name"]} if is_offered else {"ring"})
    decoder = PROTOCOLS["openai-responses"].decoder(new_id=counter(), offered_names=names)
    body = wire_body("openai-responses" if is_stream else "openai-responses, whole", lines)
    told = fold([*decoder.feed(body), *decoder.close()])
    assert [call.arguments for call in told.tool_calls] == ([item["input"]] if is_offered else [])
    assert told.error is None and told.text == "Hi" and told.stop_reason == ("tool_use" if is_offered else "stop")
    assert is_offered or any(b"x_keyword_search" in bytes(part.raw) for part in told.parts if type(part) is Opaque)


@for_each("arguments", [{}, {"bell": "a"}])
@for_each(("name", "is_told"), [("ring", True), ("toll", False)])
def test_a_part_that_names_another_tool_than_its_call_runs_none(arguments: object, name: str, is_told: bool) -> None:
    part = {"functionCall": {"name": "ring", "args": arguments}, "name": name}
    line = json.dumps({"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]})
    told = read("gemini-generate", [wire_body("gemini-generate", [line])])
    assert (made(told) == [("ring", arguments)]) is is_told is (told.error is None)


@for_each("protocol", PROTOCOLS)
def test_a_damaged_whole_answer_passes_only_where_its_calls_are_read(protocol: str) -> None:
    found = PROTOCOLS[protocol]  # type: ignore[index]
    answered = msgspec.structs.replace(reply("text-call"), parts=SAID[1:] if protocol == "gemini-generate" else SAID)
    body = found.render_response(answered, new_id=counter(), model="m", created=1_750_000_000)
    body = body.replace(b',"cache_write_tokens":0', b"")  # it is not in every answer
    passed = 0
    for how, damaged in bodies(f"{protocol}, whole", [json.loads(body)]):
        if found.check_whole(damaged) is not None:
            told = read(protocol, [damaged])
            assert (made(told), told.error) == (CALLS, None), how
            passed += 1
    assert passed > 10
