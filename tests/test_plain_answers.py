"""A usual whole answer is read at once, as its protocol's decoder reads it; any other is left to the decoder."""

from __future__ import annotations

import gzip
import itertools
import json
import re
from typing import Any

import msgspec

from cases import counter
from dragoman._json import Raw
from dragoman.bounds import USUAL_BOUNDS
from dragoman.events import Event, Failure
from dragoman.pipe import Reader, WholeReader
from dragoman.protocol import NOTHING_EXPECTED, Stage
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, is_usual, stages_for, stay_as_they_are
from dragoman.types import Tool
from for_each import for_each
from test_equal_ways import check_read_at_once, cut
from test_keys_told_twice import doubled, members, other_than
from two_calls import value_at
from wire_bases import WHOLE

CHAT = "openai-chat"
CALL = {"id": "call_1", "type": "function", "function": {"name": "note", "arguments": '{"a": 1}'}}
TOOL = Tool("note", schema=Raw(b'{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}'))


def answer(*calls: Any, text: str | None = None, reason: str = "tool_calls", **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, "tool_calls": list(calls), "refusal": None, "annotations": []}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **more}


def call(id: str, arguments: str, name: str = "note") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


DETAILS = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12, "cost": 0.5,
           "prompt_tokens_details": {"cached_tokens": 2, "audio_tokens": 0}}  # fmt: skip
#: Answers, and whether they are read at once.
ANSWERS: dict[str, tuple[dict[str, Any], bool]] = {
    "a call": (answer(CALL), True),
    "a text and a call": (answer(CALL, text="Hé."), True),
    "two calls": (answer(CALL, call("call_2", '{"a": 1}')), True),
    "two calls of one id": (answer(CALL, CALL), False),
    "ids of other letters": (answer(call("\u00e9\u2028", '{"a": 1}'), call(" \ufeff", '{"a": 2}')), True),
    "counts in full, and a tier": (answer(CALL, usage=DETAILS, service_tier="default", system_fingerprint="f"), True),
    "a tier in escapes": (answer(CALL, service_tier="h\u00e9"), True),
    "a tier that is an object": (answer(CALL, service_tier={"a": 1}), False),
    "counts that are no counts": (answer(CALL, usage={"prompt_tokens": -1, "completion_tokens": "7"}), True),
    "null for the counts": (answer(CALL, usage=None, service_tier=None), True),
    "no time, no model": (answer(CALL) | {"created": -1, "model": "", "id": ""}, True),
    "a call without arguments": (answer(call("call_1", "{}")), False),
    "arguments with a key twice": (answer(call("call_1", '{"a": 1, "a": 2}')), False),
    "arguments that go on": (answer(call("call_1", '{"a": 1} {"a": 1}')), False),
    "another tool": (answer(call("call_1", '{"a": 1}', "noted")), False),
    "a tool with blanks": (answer(call("call_1", '{"a": 1}', " note")), False),
    "a call, and the end of a text": (answer(CALL, reason="stop"), False),
    "no call": (answer(), False),
    "a text, and the end of calls": (answer(text="Hi"), False),
    "a text alone": (answer(text="Hi", reason="stop"), True),
    "an error beside it": (answer(CALL, error={"message": "no"}), False),
}  # fmt: skip


NOTE = {"type": "tool_use", "id": "t", "name": "note", "input": {"a": 1}}
OTHER_NOTE = NOTE | {"id": "t2"}
SAID = {"type": "text", "text": "Hé."}


def message(*blocks: Any, reason: str = "tool_use", **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 5, "output_tokens": 7}
    head = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": list(blocks)}
    return head | {"stop_reason": reason, "stop_sequence": None, "usage": usage} | more


def item(id: str = "f", **more: Any) -> dict[str, Any]:
    fields = {"type": "function_call", "id": id, "call_id": f"c_{id}", "name": "note", "arguments": '{"a": 1}'}
    return fields | {"status": "completed"} | more


WORDS = {"type": "message", "id": "w", "role": "assistant", "status": "completed",
         "content": [{"type": "output_text", "text": "Hi", "annotations": []}]}  # fmt: skip


def response(*items: Any, **more: Any) -> dict[str, Any]:
    head = {"id": "r", "object": "response", "created_at": 1, "status": "completed", "model": "m"}
    usage = {"input_tokens": 5, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 2, "audio_tokens": 1}}
    return head | {"output": list(items), "usage": usage, "tools": [{"a": 1}], "metadata": {"b": [1.5]}} | more


def called(**more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": "note", "args": {"a": 1}} | more}


def candidate(*parts: Any, usage: Any = None, **more: Any) -> dict[str, Any]:
    content = {"parts": list(parts), "role": "model"}
    counts = {"usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 7} if usage is None else usage}
    return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0} | more]} | counts


def function(arguments: Any = None, index: int | None = None, **more: Any) -> dict[str, Any]:
    place = {} if index is None else {"index": index}
    return {"function": {"name": "note", "arguments": arguments or {"a": 1}} | place} | more


def line(*calls: Any, content: str = "", **more: Any) -> dict[str, Any]:
    said = {"role": "assistant", "content": content} | ({"tool_calls": list(calls)} if calls else {})
    head = {"model": "m", "created_at": "2026-11-22T08:00:00Z", "message": said, "done": True, "done_reason": "stop"}
    return head | {"prompt_eval_count": 5, "total_duration": 12} | more


DETAIL = [{"modality": "TEXT", "tokenCount": 5}]
#: The same for the other protocols.
OTHERS: dict[tuple[str, str], tuple[dict[str, Any], bool]] = {
    ("anthropic-messages", name): told for name, told in {
        "a call": (message(NOTE), True),
        "a text and two calls": (message(SAID, NOTE, OTHER_NOTE), True),
        "a text behind a call": (message(NOTE, SAID), False),
        "two texts": (message(SAID, SAID, reason="end_turn"), False),
        "two calls of one id": (message(NOTE, NOTE), False),
        "a text alone": (message(SAID | {"citations": None}, reason="end_turn"), True),
        "a call, and the end of a text": (message(NOTE, reason="end_turn"), False),
        "a text, and the end of calls": (message(SAID), False),
        "nothing": (message(reason="end_turn"), False),
        "a call without arguments": (message(NOTE | {"input": {}}), False),
        "another tool": (message(NOTE | {"name": "noted"}), False),
        "counts in full": (message(NOTE, usage={"input_tokens": 1, "cache_read_input_tokens": 2, "output_tokens": 3,
            "service_tier": "x", "output_tokens_details": {"thinking_tokens": 1, "b": 2}}), True),
        "no counts": (message(NOTE, usage={}), True),
        "counts that are none": (message(NOTE, usage={"input_tokens": -1}), False),
        "counts as texts": (message(NOTE, usage={"input_tokens": "1"}), False),
        "an error beside it": (message(NOTE, error={"message": "no"}), False),
        "no id, no model": (message(NOTE, id="", model=""), True),
    }.items()
} | {
    ("openai-responses", name): told for name, told in {
        "a call": (response(item()), True),
        "a text and two calls": (response(WORDS, item(), item("g")), True),
        "a text behind a call": (response(item(), WORDS), False),
        "two items of one id": (response(item(), item(call_id="d")), False),
        "two calls of one id": (response(item(), item("g", call_id="c_f")), False),
        "a text alone": (response(WORDS, text={"format": {"type": "text"}}, temperature=1), True),
        "nothing": (response(), False),
        "a call that is cut": (response(item(arguments='{"a": 1')), False),
        "a key twice": (response(item(arguments='{"a": 1, "a": 2}')), False),
        "another tool": (response(item(name="noted")), False),
        "a namespace": (response(item(namespace="n")), False),
        "a cost": (response(item(), usage={"input_tokens": 1, "cost": 0.5}), False),
        "counts that are none": (response(item(), usage={"input_tokens": -1}), False),
        "null for the counts": (response(item(), usage=None), True),
        "no time, no model": (response(item(), created_at="x", model=None, id=""), True),
        "an error": (response(item(), error={"message": "no"}), False),
        "a call that is not complete": (response(item(status="incomplete")), False),
    }.items()
} | {
    ("gemini-generate", name): told for name, told in {
        "a call": (candidate(called()), True),
        "a text and two calls": (candidate({"text": "Hi"}, called(), called()), True),
        "a text behind a call": (candidate(called(), {"text": "Hi"}), False),
        "a text alone": (candidate({"text": "Hi"}), True),
        "a thought": (candidate({"text": "Hm", "thought": True}, {"text": "Hi"}), False),
        "a signature": (candidate(called() | {"thoughtSignature": "s"}), True),
        "a text with a signature": (candidate({"text": "Hi", "thoughtSignature": "s"}), False),
        "ids": (candidate(called(id="a"), called(id="b")), True),
        "one of two with an id": (candidate(called(), called(id="call_000000000000000000000000")), False),
        "two calls of one id": (candidate(called(id="a"), called(id="a")), False),
        "no arguments": (candidate(called(args={})), False),
        "another tool": (candidate(called(name="noted")), False),
        "a text and a call in one": (candidate({"text": "Hi", **called()}), False),
        "another reason": (candidate(called(), finishReason="MAX_TOKENS"), False),
        "no counts": (candidate(called(), usage={}), True),
        "counts that are none": (candidate(called(), usage={"promptTokenCount": -1, "totalTokenCount": "x"}), True),
        "details": (candidate(called(), usage={"promptTokenCount": 5, "promptTokensDetails": DETAIL}), True),
        "tools' counts": (candidate(called(), usage={"toolUsePromptTokenCount": 5}), False),
        "ratings": (candidate(called(), safetyRatings=[]), False),
    }.items()
} | {
    ("ollama-chat", name): told for name, told in {
        "a call": (line(function()), True),
        "a text, a thought and two calls": (line(function(), function(), content="Hi"), True),
        "a text alone": (line(content="Hi"), True),
        "nothing": (line(), False),
        "ids and types": (line(function(id="a", type="function"), function(id="b")), True),
        "a type": (line(function(type="function")), True),
        "one of two with an id": (line(function(), function(id="call_000000000000000000000000")), False),
        "two calls of one id": (line(function(id="a"), function(id="a")), False),
        "indices": (line(function(index=0), function(index=1)), True),
        "an index of all": (line(function(index=0), function(index=0)), True),
        "an index that leaves one out": (line(function(index=1)), False),
        "an index behind a call without": (line(function(), function(index=1)), False),
        "another tool": (line({"function": {"name": "noted", "arguments": {"a": 1}}}), False),
        "arguments as a text": (line(function('{"a": 1}')), False),
        "no arguments": (line({"function": {"name": "note", "arguments": {}}}), False),
        "no time": (line(function(), created_at="x"), False),
        "a duration that is none": (line(function(), load_duration=-1), False),
        "not done": (line(function(), done=False), False),
        "another reason": (line(function(), done_reason="length"), False),
    }.items()
} | {(CHAT, name): told for name, told in ANSWERS.items()}  # fmt: skip


@for_each("protocol, name", OTHERS)
def test_an_answer_is_read_at_once_as_the_decoder_reads_it(protocol: str, name: str):
    value, is_plain = OTHERS[protocol, name]
    written = json.dumps(value)
    escaped = re.sub(r'(?<!\\)"(\w)(\w*":)', lambda key: f'"\\u{ord(key[1]):04x}{key[2]}', written)
    assert json.loads(escaped) == value
    for text in (written, json.dumps(value, indent=1), written.replace('"role"', '"r\\u006fle"'), escaped):
        assert (check_read_at_once(protocol, text.encode()) is not None) is is_plain, text


CALLING = [(protocol, value) for (protocol, name), (value, _) in OTHERS.items() if name == "a call"]


@for_each("protocol, whole", [*WHOLE, *CALLING])
def test_no_key_told_twice_is_read_at_once(protocol: str, whole: dict[str, Any]):
    tried = 0
    for path in members(whole, ()):
        for is_last in (True, False):
            told = doubled(whole, path, other_than(value_at(whole, path)), is_last=is_last, joint=": ").encode()
            assert check_read_at_once(protocol, told) is None, told
            tried += 1
    assert tried > 15


def test_ids_that_come_twice_are_told_apart_as_by_the_decoder() -> None:
    value = json.dumps(OTHERS["gemini-generate", "a text and two calls"][0]).encode()
    protocol = PROTOCOLS["gemini-generate"]
    assert protocol.read_whole is not None
    decoder = protocol.decoder(new_id=lambda: "1", offered_names=frozenset({"note"}))
    read = protocol.read_whole(value, offered_names={"note"}, bounds=USUAL_BOUNDS, new_id=lambda: "1")
    assert read == [*decoder.feed(value), *decoder.close()]


@for_each("protocol", PROTOCOLS)
def test_arguments_of_too_many_values_are_left_to_the_decoder(protocol: str):
    """They are refused there, though they are shorter than arguments may be."""
    read = PROTOCOLS[protocol].read_whole
    assert read is not None
    bounds = msgspec.structs.replace(USUAL_BOUNDS, argument_values=4)
    body = json.dumps(OTHERS[protocol, "a call"][0]).encode()
    assert read(body, offered_names={"note"}, bounds=USUAL_BOUNDS, new_id=counter()) is not None
    assert read(body, offered_names={"note"}, bounds=bounds, new_id=counter()) is None


@for_each("arguments", ['{"a": 1}', '{"a": "1"}', '{"b": 1}', '{"a": 1.0}', '{"a": 1, "b": 2}', '{"a": null}'])
def test_what_stays_as_it_is_the_stages_leave(arguments: str):
    events = check_read_at_once(CHAT, json.dumps(answer(call("call_1", arguments))).encode())
    assert events is not None
    left = events
    for stage in stages_for((TOOL,), Policy(sequential=True), new_id=counter()):
        left = stage.feed(left)
    assert left == events or not stay_as_they_are(events, {"note": TOOL})
    assert stay_as_they_are(events, {"note": TOOL}) is (arguments in ('{"a": 1}', '{"a": 1, "b": 2}'))


@for_each("protocol, value", CALLING)
def test_what_is_noted_of_a_call_changes_no_stage(protocol: str, value: dict[str, Any]):
    events = check_read_at_once(protocol, json.dumps(value).encode())
    assert events is not None
    assert stay_as_they_are(events, {"note": TOOL})
    left = events
    for stage in stages_for((TOOL,), Policy(), new_id=counter()):
        left = stage.feed(left)
    assert left == events
    assert not is_usual(Policy(strict="notes"), NOTHING_EXPECTED)


WHOLE_CALL = json.dumps(answer(CALL)).encode()
STREAM = b'data: {"id": "c", "choices": [{"index": 0, "delta": {"content": "Hi"}}]}\n\n'
#: Bodies, some of them no whole answer at all.
CAME = {
    "a whole answer": WHOLE_CALL, "over lines": json.dumps(answer(CALL), indent=1).encode() + b"\n",
    "a text": json.dumps(answer(text="<think>a</think>b", reason="stop")).encode(),
    "a call in a text": json.dumps(
        answer(text='<tool_call>{"name": "note", "arguments": {"a": 1}}</tool_call>', reason="stop")
    ).encode(),
    "arguments that are mended": json.dumps(answer(call("call_1", '{"a": "1"}'))).encode(),
    "a stream": STREAM + b"data: [DONE]\n\n", "lines": STREAM[6:-1] * 2, "nothing": b"", "no JSON": b"<html>",
    "with a marker behind it": WHOLE_CALL + b"\n\ndata: [DONE]\n\n", "packed": gzip.compress(WHOLE_CALL),
    "cut": WHOLE_CALL[:-9], "behind blanks": b"\n " + WHOLE_CALL, "a byte order mark": b"\xef\xbb\xbf" + WHOLE_CALL,
    "twice": WHOLE_CALL * 2, "in a list": b"[" + WHOLE_CALL + b"]", "one brace": b"{",
}  # fmt: skip


@for_each("most", [1 << 18, 40])
@for_each("came", CAME)
def test_a_body_is_read_as_by_the_usual_reader(came: str, most: int):
    for size, is_broken in itertools.product((1, 7, 1 << 20), (False, True)):
        pieces = cut(CAME[came], size)
        usual, whole = (
            read(reader(), pieces, is_broken=is_broken),
            read(reader_of_whole(most), pieces, is_broken=is_broken),
        )
        assert whole == usual, (size, is_broken)


def reader() -> Reader:
    new_id = counter()
    decoder = PROTOCOLS[CHAT].decoder(new_id=new_id, offered_names=frozenset({"note"}))
    return Reader(decoder, stages_for((TOOL,), Policy(), new_id=new_id))


def reader_of_whole(most: int) -> WholeReader:
    def read_at_once(data: bytes) -> tuple[list[Event], list[Stage]] | None:
        events = check_read_at_once(CHAT, data)
        if events is None:
            return None
        is_left = stay_as_they_are(events, {"note": TOOL})
        return events, [] if is_left else stages_for((TOOL,), Policy(), new_id=counter())

    return WholeReader(read_at_once, reader, most)


def read(by: Reader | WholeReader, pieces: list[bytes], *, is_broken: bool) -> tuple[list[Event], bool]:
    events = [event for piece in pieces for event in by.feed(piece)]
    events += by.fail(Failure("connection", "it broke")) if is_broken else by.close()
    return events, by.ended


def test_a_call_more_than_is_usual_is_left_to_the_decoder() -> None:
    many = [call(f"call_{number}", '{"a": 1}') for number in range(40)]
    assert check_read_at_once(CHAT, json.dumps(answer(*many)).encode()) is None
