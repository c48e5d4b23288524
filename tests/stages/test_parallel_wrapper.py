"""A `parallel` call that nobody offered is split into the calls that it packs."""

from __future__ import annotations

import pytest

from dragoman.events import (
    Event,
    Finish,
    Reply,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallFailed,
    ToolCallStart,
    fold,
)
from dragoman.response_stages import ParallelWrapper
from dragoman.types import ToolCall
from grammar import check

OFFERED = ("find", "open_page")
TWO = (
    '{"tool_uses": [{"recipient_name": "functions.find", "parameters": {"n": 1.50}},'
    ' {"recipient_name": "open_page", "parameters": {"url": "x"}}]}'
)


def call(index: int, name: str, arguments: str, *, id: str = "call_1") -> list[Event]:
    pieces: list[Event] = [ToolCallDelta(index, text) for text in (arguments[:7], arguments[7:]) if text]
    return [ToolCallStart(index, id, name), *pieces, ToolCallEnd(index, ToolCall(id, name, arguments))]


def play(*events: Event, offered: tuple[str, ...] = OFFERED) -> Reply:
    every = [Start(), *events, Finish("tool_use")]
    stage, at_once = ParallelWrapper(offered), ParallelWrapper(offered)
    out = check([one for event in every for one in stage.feed([event])])
    assert at_once.feed(every) == out
    return fold(out)


@pytest.mark.parametrize("name", ["parallel", "multi_tool_use.parallel", " functions.parallel"])
def test_it_is_split(name: str):
    reply = play(*call(0, name, TWO))
    assert [(one.id, one.name, one.arguments) for one in reply.tool_calls] == [
        ("call_1_1", "find", '{"n": 1.50}'),
        ("call_1_2", "open_page", '{"url": "x"}'),
    ]
    assert [deviation.code for deviation in reply.deviations] == ["parallel-wrapper"]


@pytest.mark.parametrize(
    "arguments",
    [
        '{"tool_uses": []}',
        '{"tool_uses": [{"recipient_name": "delete", "parameters": {}}]}',
        '{"tool_uses": [{"recipient_name": "find", "parameters": {}}, {"recipient_name": "delete", "parameters": {}}]}',
        '{"tool_uses": [{"recipient_name": "find", "parameters": [1]}]}',
        '{"tool_uses": "find"}',
        "{}",
    ],
)
def test_what_does_not_name_offered_tools_passes_as_it_is(arguments: str):
    reply = play(*call(0, "parallel", arguments))
    assert [(one.id, one.name, one.arguments) for one in reply.tool_calls] == [("call_1", "parallel", arguments)]
    assert reply.deviations == ()


def test_an_offered_tool_of_that_name_is_left_alone():
    reply = play(*call(0, "parallel", TWO), offered=(*OFFERED, "parallel"))
    assert [one.arguments for one in reply.tool_calls] == [TWO]


def test_a_failed_one_fails():
    failed = ToolCallFailed(0, "call_1", "parallel", "cut", "cut")
    reply = play(ToolCallStart(0, "call_1", "parallel"), ToolCallDelta(0, TWO[:20]), failed)
    assert reply.failed_calls == (failed,)


def test_parts_around_keep_their_order():
    text: list[Event] = [TextStart(0), TextDelta(0, "I look."), TextEnd(0)]
    reply = play(*text, *call(1, "parallel", TWO), *call(2, "find", "{}", id="call_2"))
    assert [one.id for one in reply.tool_calls] == ["call_1_1", "call_1_2", "call_2"]
    assert reply.parts[0] == fold([Start(), *text, Finish("stop")]).parts[0]


def test_a_call_without_parameters_takes_none():
    reply = play(*call(0, "parallel", '{"tool_uses": [{"recipient_name": "find"}]}'))
    assert [one.arguments for one in reply.tool_calls] == ["{}"]


def test_other_calls_pass_untouched():
    stage = ParallelWrapper(OFFERED)
    events = call(0, "find", "{}")
    assert stage.feed(events) == events
