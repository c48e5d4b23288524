"""A stop reason is a deviation where it is wrong: not where the call was there, only written as text or badly."""

from __future__ import annotations

import json

import pytest

from codec.parts.test_call_matching import chunk, piece, stream
from dragoman.decoding import decode

TOOLS = [{"name": "ring", "parameters": {"type": "object", "properties": {"bell": {"type": "integer"}}}}]
IN_TEXT = '<tool_call>{"name": "ring", "arguments": {"bell": 1}}</tool_call>'


def words(text: str, finish: str) -> bytes:
    return chunk({"role": "assistant", "content": text}) + chunk({}, finish) + b"data: [DONE]\n\n"


def called(arguments: str, finish: str) -> bytes:
    return stream([piece(0, "a", "ring", arguments)], finish=finish)


@pytest.mark.parametrize(
    ("wire", "calls", "is_wrong"),
    [
        (words(IN_TEXT, "tool_calls"), 1, False),
        (words(IN_TEXT, "stop"), 1, False),
        (words("no call", "tool_calls"), 0, True),
        (called("{bell: 1}", "tool_calls"), 1, False),
        (called("{bell: 1}", "stop"), 1, True),
        (called('{"bell": 1}', "stop"), 1, True),
        (called('{"bell": ', "tool_calls"), 0, False),
    ],
)
def test_a_stop_reason_that_is_right_is_no_deviation(wire: bytes, calls: int, is_wrong: bool):
    reply = decode(wire, "openai-chat", tools=TOOLS)
    assert [call.values() for call in reply.tool_calls] == [{"bell": 1}] * calls
    assert any(deviation.where == "stop reason" for deviation in reply.deviations) is is_wrong
    assert json.dumps(reply.stop_reason) == ('"tool_use"' if calls else '"stop"' if is_wrong else '"error"')
