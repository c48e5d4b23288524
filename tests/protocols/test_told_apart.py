"""What only events of their own tell of a text in Responses: it comes back with its text, or is named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answer_fates import passed
from dragoman import decode
from dragoman.events import fold
from dragoman.protocols.openai_responses.wire import NAME
from vendor_streams import wire

_TEXTS = st.lists(st.sampled_from(["Noah ", "built ", "an ", "ark. "]), min_size=1, max_size=5)
_RESPONSE = {"id": "resp_1", "object": "response", "model": "m", "status": "completed", "output": []}


def _annotation(number: int) -> dict[str, Any]:
    return {
        "type": "url_citation",
        "url": f"https://x.test/mark{number}",
        "title": "X",
        "start_index": 0,
        "end_index": 4,
    }


def _told(name: str, place: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{name}", "output_index": 0, **place, **fields}


@st.composite
def _answers(draw: st.DrawFn) -> tuple[list[dict[str, Any]], int, int]:
    """A message of some texts whose citations and odds come anywhere among its events; how many of each there are."""
    item = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    events: list[dict[str, Any]] = [_told("output_item.added", {}, item={**item, "status": "in_progress"})]
    cited = tokens = 0
    content: list[dict[str, Any]] = []
    for index, pieces in enumerate(draw(st.lists(_TEXTS, min_size=1, max_size=3))):
        at = {"content_index": index, **({"item_id": "msg_1"} if draw(st.booleans()) else {})}
        mine: list[dict[str, Any]] = []
        odds: list[dict[str, Any]] = []
        for piece in [*pieces, ""]:
            if draw(st.booleans()):
                cited += 1
                mine.append(_annotation(cited))
                events.append(_told("output_text.annotation.added", at, annotation=mine[-1], annotation_index=0))
            if piece:
                odds.append({"token": piece, "logprob": -0.25 - len(events), "top_logprobs": []})
                events.append(_told("output_text.delta", at, delta=piece, logprobs=odds[-1:]))
        tokens += len(pieces)
        text, repeats = "".join(pieces), draw(st.booleans())
        part = {"type": "output_text", "text": text, "annotations": mine, "logprobs": odds}
        content.append(part if repeats else {"type": "output_text", "text": text})
        for step in draw(st.sampled_from([(), ("text",), ("part",), ("text", "part")])):
            if step == "text":
                events.append(_told("output_text.done", at, text=text, logprobs=odds if repeats else []))
            else:
                events.append(_told("content_part.done", at, part=content[-1]))
    if draw(st.booleans()):
        events.append(_told("output_item.done", {}, item={**item, "content": content, "status": "completed"}))
    return [*events, {"type": "response.completed", "response": _RESPONSE}], cited, tokens


@given(_answers())
def test_every_citation_and_all_odds_come_back_once(answer: tuple[list[dict[str, Any]], int, int]) -> None:
    events, cited, tokens = answer
    _, out, _ = passed(wire(events), NAME, NAME)
    rows = [json.loads(line[6:]) for line in out.splitlines() if line.startswith("data: {")]
    parts = [part for item in rows[-1]["response"]["output"] for part in item["content"]]
    urls = [each["url"] for part in parts for each in part["annotations"]]
    assert urls == [_annotation(number)["url"] for number in range(1, cited + 1)]
    assert sum(len(part["logprobs"]) for part in parts) == tokens
    assert "".join(each["token"] for part in parts for each in part["logprobs"]) == "".join(
        part["text"] for part in parts
    )


@pytest.mark.parametrize("end", [b"", b"data: [DONE]\n\n"])
def test_rounded_odds_and_the_marker_of_open_responses_are_no_deviations(end: bytes) -> None:
    odds = [{"token": "Noah", "logprob": -0.06243133544921875, "bytes": [78]}, {"token": "!", "logprob": 2.2888e-05}]
    rounded = [{**odds[0], "logprob": -0.062431}, {**odds[1], "logprob": 0.000023}]
    item = {"id": "msg_1", "type": "message", "role": "assistant"}
    at = {"content_index": 0, "item_id": "msg_1"}
    content = [{"type": "output_text", "text": "Noah!", "annotations": [], "logprobs": rounded}]
    done = {**item, "content": content, "status": "completed"}
    events = [
        {"type": "response.created", "response": {**_RESPONSE, "status": "in_progress"}},
        _told("output_item.added", {}, item={**item, "content": [], "status": "in_progress"}),
        _told("output_text.delta", at, delta="Noah", logprobs=odds[:1]),
        _told("output_text.delta", at, delta="!", logprobs=odds[1:]),
        _told("output_item.done", {}, item=done),
        {"type": "response.completed", "response": {**_RESPONSE, "output": [done]}},
    ]
    reply = decode(wire(events) + end, NAME)
    assert (reply.deviations, reply.text) == ((), "Noah!")
    content[0]["logprobs"] = [{**odds[0], "token": "Ark"}]
    assert {found.code for found in decode(wire(events), NAME).deviations} == {"final-differs"}


def test_a_call_that_is_told_twice_as_incomplete_is_no_deviation() -> None:
    item = {"id": "fc_1", "type": "function_call", "call_id": "c1", "name": "ring", "arguments": '{"bell": 1'}
    cut = {**item, "status": "incomplete"}
    last = {**_RESPONSE, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": [cut]}
    events = [
        {"type": "response.created", "response": {**_RESPONSE, "status": "in_progress"}},
        _told("output_item.added", {}, item={**item, "arguments": "", "status": "in_progress"}),
        _told("function_call_arguments.delta", {"item_id": "fc_1"}, delta=item["arguments"]),
        _told("function_call_arguments.done", {"item_id": "fc_1"}, arguments=item["arguments"]),
        _told("output_item.done", {}, item=cut),
        {"type": "response.incomplete", "response": last},
    ]
    reply = decode(wire(events), NAME)
    assert (reply.deviations, reply.stop_reason, len(reply.failed_calls)) == ((), "length", 1)


@given(_answers(), st.sampled_from(["openai-chat", "anthropic-messages", "gemini-generate", "ollama-chat"]))
def test_across_every_citation_is_written_or_named(answer: tuple[list[dict[str, Any]], int, int], target: str) -> None:
    events, cited, _ = answer
    _, out, lost = passed(wire(events), NAME, target)
    named = any("annotations" in said.where or "citation" in said.where for said in lost)
    assert named or all(_annotation(number)["url"] in out for number in range(1, cited + 1))


@pytest.mark.parametrize("index", [0, 1, 7])
def test_a_citation_without_its_text_is_named(index: int) -> None:
    item = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    added = _told("output_text.annotation.added", {"content_index": index}, annotation=_annotation(1))
    told = [_told("output_item.added", {}, item=item), added]
    late = [*told[:1], _told("output_text.delta", {}, delta="hi"), _told("output_item.done", {}, item=item), added]
    for events in (told, late):
        came, _, _ = passed(wire([*events, {"type": "response.completed", "response": _RESPONSE}]), NAME, NAME)
        wheres = {said.where for said in fold(came).deviations}
        assert f"output[0].content[{index}].annotations" in wheres


@pytest.mark.parametrize("name", ["reasoning_summary_part", "reasoning_part"])
def test_thinking_that_only_its_whole_part_tells_is_read(name: str) -> None:
    item = {"id": "rs_1", "type": "reasoning", "summary": []}
    kind = "summary_text" if "summary" in name else "reasoning_text"
    told = [
        _told("output_item.added", {}, item=item),
        _told(f"{name}.added", {"item_id": "rs_1"}, part={"type": kind, "text": ""}),
        _told(f"{name}.done", {"item_id": "rs_1"}, part={"type": kind, "text": "Hm."}),
    ]
    for completed in ([], [_told("output_item.done", {}, item=item)]):
        events = [*told, *completed, {"type": "response.completed", "response": _RESPONSE}]
        came, _, _ = passed(wire(events), NAME, NAME)
        assert fold(came).thinking == "Hm."
