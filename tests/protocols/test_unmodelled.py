"""Nothing of an answer is lost: what was read of it is held, and comes back in its own protocol."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from dragoman._json import Raw
from dragoman.events import Event, Finish, Start, TextDelta, TextEnd, TextStart, fold, unfold
from dragoman.protocols import PROTOCOLS
from dragoman.protocols.openai_chat.response.usage import read_cost, read_usage
from dragoman.types import Cost, Native, Text, Thinking

NAME, CHAT = "anthropic-messages", "openai-chat"


def native(**fields: str) -> Native:
    return Native(NAME, {key: Raw(value.encode()) for key, value in fields.items()})


def test_a_reply_holds_what_the_end_told() -> None:
    said = [TextStart(0), TextDelta(0, "Hi"), TextEnd(0)]
    start, end = native(tier='"standard"', container="null"), native(container='{"id":"c"}')
    reply = fold([Start("m", native=start), *said, Finish("stop", native=end)])
    assert reply.native == native(tier='"standard"', container='{"id":"c"}')
    assert fold([Start("m"), *said, Finish("stop", native=end)]).native == end
    assert fold([Start("m", native=start), *said, Finish("stop")]).native == start
    assert fold(unfold(reply)) == reply


# ---------------------------------------------------------------- chat


def read(name: str, *pieces: bytes) -> list[Event]:
    decoder = PROTOCOLS[name].decoder(new_id=lambda: "0" * 24)
    return [event for piece in pieces for event in decoder.feed(piece)] + decoder.close()


def chunk(choice: dict[str, Any], **more: Any) -> bytes:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return b"data: " + json.dumps({**head, "choices": [{"index": 0, **choice}], **more}).encode() + b"\n\n"


def whole_chat(message: dict[str, Any], reason: str = "stop", **choice: Any) -> bytes:
    choices = [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason, **choice}]
    return json.dumps({"id": "chatcmpl-1", "model": "m", "choices": choices, "created": 1}).encode()


def written(name: str, events: list[Event]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A whole response, and the frames of a stream, in the same protocol."""
    protocol = PROTOCOLS[name]
    whole = protocol.render_response(fold(events), new_id=lambda: "0" * 24, model="m", created=1)
    stream = protocol.encoder(new_id=lambda: "0" * 24, model="m", created=1).encode(events)
    lines = [line.removeprefix(b"data: ") for line in stream.splitlines() if line not in (b"", b"data: [DONE]")]
    return json.loads(whole), [json.loads(line) for line in lines]


def odds(*tokens: str) -> dict[str, Any]:
    return {"content": [{"token": token, "logprob": -0.5, "bytes": None, "top_logprobs": []} for token in tokens]}


def test_what_a_choice_says_beside_its_message_comes_back() -> None:
    events = read(
        CHAT,
        chunk({"delta": {"role": "assistant", "content": "One"}, "logprobs": odds("One")}),
        chunk({"delta": {"content": " two"}, "logprobs": odds(" two"), "native_finish_reason": None}),
        chunk({"delta": {}, "finish_reason": "stop", "native_finish_reason": "STOP", "neverHeardOf": {"a": 1.5}}),
        b"data: [DONE]\n\n",
    )
    whole, frames = written(CHAT, events)
    last = frames[-1]["choices"][0]
    for choice in (whole["choices"][0], last):
        assert choice["logprobs"] == odds("One", " two")
        assert (choice["native_finish_reason"], choice["neverHeardOf"]) == ("STOP", {"a": 1.5})
    assert fold(events).text == "One two"
    assert not fold(events).deviations
    again = read(CHAT, json.dumps(whole).encode())
    lines = [b"data: " + json.dumps(frame).encode() + b"\n\n" for frame in frames]
    assert fold(again) == fold(read(CHAT, *lines, b"data: [DONE]\n\n"))


def test_what_a_message_says_beside_its_text_comes_back() -> None:
    ran = {"index": 0, "type": "search", "arguments": "{}"}
    message = {"content": "Hi", "executed_tools": [ran], "provider_metadata": {"x": {"cost": "0.1"}}}
    whole, frames = written(CHAT, read(CHAT, whole_chat(message)))
    for said in (whole["choices"][0]["message"], frames[-1]["choices"][0]["delta"]):
        assert said["executed_tools"] == [ran]
        assert said["provider_metadata"] == {"x": {"cost": "0.1"}}
    found = {**ran, "output": "y"}
    streamed = read(
        CHAT,
        chunk({"delta": {"executed_tools": [ran]}}),
        chunk({"delta": {"content": "Hi", "executed_tools": [found]}}),
        chunk({"delta": {}, "finish_reason": "stop"}),
    )
    assert written(CHAT, streamed)[0]["choices"][0]["message"]["executed_tools"] == [found]


def test_annotations_of_a_stream_come_back_whenever_they_came() -> None:
    first, second = ({"type": "url_citation", "url_citation": {"url": url}} for url in ("a", "b"))
    events = read(
        CHAT,
        chunk({"delta": {"annotations": [first]}}),
        chunk({"delta": {"content": "Hi", "annotations": [second]}}),
        chunk({"delta": {"content": "."}, "finish_reason": "stop"}),
    )
    assert written(CHAT, events)[0]["choices"][0]["message"]["annotations"] == [second, first]
    again = read(CHAT, *[b"data: " + json.dumps(frame).encode() + b"\n\n" for frame in written(CHAT, events)[1]])
    assert len(written(CHAT, again)[0]["choices"][0]["message"]["annotations"]) == 2


def test_what_an_entry_of_tool_calls_says_besides_comes_back() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}, "mark": [1]}
    whole, frames = written(CHAT, read(CHAT, whole_chat({"content": None, "tool_calls": [call]}, "tool_calls")))
    assert whole["choices"][0]["message"]["tool_calls"] == [call]
    calls = [entry for frame in frames for entry in frame["choices"][0]["delta"].get("tool_calls", ())]
    assert [entry["mark"] for entry in calls if "mark" in entry] == [[1]]


def test_what_only_the_end_says_of_a_response_comes_back() -> None:
    events = read(
        CHAT,
        chunk({"delta": {"content": "Hi"}}, provider="p"),
        chunk({"delta": {}, "finish_reason": "stop"}, provider="p", citations=["u"]),
        b'data: {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": '
        b'{"cached_tokens": 1, "audio_tokens": 7}, "cost_details": {"a": 0.5}}}\n\n',
    )
    reply = fold(events)
    assert reply.native is not None
    assert {key: bytes(value) for key, value in reply.native.fields.items() if key != "usage"} == {
        "provider": b'"p"',
        "citations": b'["u"]',
    }
    whole, frames = written(CHAT, events)
    assert whole["citations"] == frames[-2]["citations"] == ["u"]
    for usage in (whole["usage"], frames[-1]["usage"]):
        assert usage["prompt_tokens_details"] == {"cached_tokens": 1, "audio_tokens": 7}
        assert usage["cost_details"] == {"a": 0.5}


def test_a_refusal_ends_as_the_vendor_ends_it() -> None:
    events = read(CHAT, whole_chat({"content": None, "refusal": "No."}))
    assert fold(events).stop_reason == "content_filter"
    whole, frames = written(CHAT, events)
    assert (whole["choices"][0]["message"]["refusal"], whole["choices"][0]["finish_reason"]) == ("No.", "stop")
    assert frames[-1]["choices"][0]["finish_reason"] == "stop"
    filtered = read(CHAT, whole_chat({"content": "Half a"}, "content_filter"))
    assert written(CHAT, filtered)[0]["choices"][0]["finish_reason"] == "content_filter"


def test_entries_of_reasoning_details_are_numbered() -> None:
    parts = (Thinking("Hm", "s1"), Thinking("", redacted="d2"), Text("Hi"))
    reply = msgspec.structs.replace(fold([Start("m"), Finish("stop")]), parts=parts)
    whole, frames = written(CHAT, unfold(reply))
    assert [detail["index"] for detail in whole["choices"][0]["message"]["reasoning_details"]] == [0, 1]
    deltas = [frame["choices"][0]["delta"] for frame in frames]
    assert [detail["index"] for delta in deltas for detail in delta.get("reasoning_details", ())] == [0, 1]


def test_sound_of_nothing_is_no_part_and_all_fields_of_sound_come_back() -> None:
    assert fold(read(CHAT, whole_chat({"content": "4", "audio": {"data": "", "id": ""}}))).parts == (Text("4"),)
    sound = {"id": "audio_1", "data": "UklGRg==", "expires_at": 1700000000, "transcript": "Hi"}
    assert (
        written(CHAT, read(CHAT, whole_chat({"content": None, "audio": sound})))[0]["choices"][0]["message"]["audio"]
        == sound
    )


def test_ollamas_durations_and_odds_come_back() -> None:
    head = {"model": "m", "created_at": "2026-11-22T08:00:00Z"}
    lines = [
        {**head, "message": {"role": "assistant", "content": "One"}, "done": False, "logprobs": [{"token": "One"}]},
        {**head, "message": {"role": "assistant", "content": " two"}, "done": False, "logprobs": [{"token": " two"}]},
        {**head, "message": {"role": "assistant", "content": "", "mark": 1}, "done": True, "done_reason": "stop",
         "total_duration": 900, "load_duration": 7, "eval_count": 2, "prompt_eval_count": 3, "eval_duration": 80},
    ]  # fmt: skip
    events = read("ollama-chat", b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    whole, frames = written("ollama-chat", events)
    for line in (whole, frames[-1]):
        assert (line["total_duration"], line["load_duration"], line["eval_duration"]) == (900, 7, 80)
        assert line["prompt_eval_duration"] == 1
        assert line["logprobs"] == [{"token": "One"}, {"token": " two"}]
        assert line["message"]["mark"] == 1
    again = fold(read("ollama-chat", json.dumps(whole).encode()))
    streamed = fold(read("ollama-chat", b"".join(json.dumps(frame).encode() + b"\n" for frame in frames)))
    assert again == streamed


@pytest.mark.parametrize(
    ("usage", "input", "output"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 161}}, 171, 5),
        ({"prompt_tokens": 9, "completion_tokens": 10, "completion_tokens_details": {"reasoning_tokens": 96}}, 9, 106),
        ({"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 9}}, 9, 5),
    ],
)
def test_a_part_that_is_more_than_the_whole_stands_beside_it(usage: dict[str, Any], input: int, output: int) -> None:
    read = read_usage(usage)
    assert (read.input, read.output) == (input, output)


def test_ticks_are_a_cost() -> None:
    assert read_cost({"cost_in_usd_ticks": 1721250}) == Cost(Decimal("0.000172125"), "provider")
    assert read_cost({"cost_in_usd_ticks": True}) is None


def test_a_list_of_ollamas_takes_the_place_of_what_was_none() -> None:
    for before, kept in (("7", "[{}]"), ('"a"', "[{}]"), ("{}", "[{}]"), ("[1]", "[1,{}]")):
        lines = [f'{{"message":{{"content":"a","odd":{odd}}},"odd":{odd},"done":false}}' for odd in (before, "[{}]")]
        events = read("ollama-chat", "\n".join([*lines, '{"done":true}']).encode())
        whole, _ = written("ollama-chat", events)
        assert (whole["odd"], whole["message"]["odd"]) == (json.loads(kept), json.loads(kept))
