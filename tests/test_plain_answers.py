"""A usual whole answer is read at once, as its protocol's decoder reads it; any other is left to the decoder."""

from __future__ import annotations

import gzip
import itertools
import json
from typing import Any

from cases import counter
from dragoman._json import Raw
from dragoman.events import Event, Failure
from dragoman.pipe import Reader, WholeReader
from dragoman.protocol import Stage
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, stages_for, stay_as_they_are
from dragoman.types import Tool
from for_each import for_each
from test_equal_ways import check_read_at_once, cut
from test_keys_told_twice import doubled, members, other_than
from two_calls import value_at
from wire_bases import WHOLE

CHAT = "openai-chat"
BODIES = [value for protocol, value in WHOLE if protocol == CHAT]
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


@for_each("name", ANSWERS)
def test_an_answer_is_read_at_once_as_the_decoder_reads_it(name: str):
    value, is_plain = ANSWERS[name]
    for text in (json.dumps(value), json.dumps(value, indent=1), json.dumps(value).replace('"role"', '"r\\u006fle"')):
        assert (check_read_at_once(CHAT, text.encode()) is not None) is is_plain, text


@for_each("body", range(len(BODIES)))
def test_no_key_told_twice_is_read_at_once(body: int):
    whole, tried = BODIES[body], 0
    for path in members(whole, ()):
        for is_last in (True, False):
            told = doubled(whole, path, other_than(value_at(whole, path)), is_last=is_last, joint=": ").encode()
            assert check_read_at_once(CHAT, told) is None, told
            tried += 1
    assert tried > 20


@for_each("arguments", ['{"a": 1}', '{"a": "1"}', '{"b": 1}', '{"a": 1.0}', '{"a": 1, "b": 2}', '{"a": null}'])
def test_what_stays_as_it_is_the_stages_leave(arguments: str):
    events = check_read_at_once(CHAT, json.dumps(answer(call("call_1", arguments))).encode())
    assert events is not None
    left = events
    for stage in stages_for((TOOL,), Policy(sequential=True), new_id=counter()):
        left = stage.feed(left)
    assert left == events or not stay_as_they_are(events, {"note": TOOL})
    assert stay_as_they_are(events, {"note": TOOL}) is (arguments in ('{"a": 1}', '{"a": 1, "b": 2}'))


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
