"""The automaton itself: it accepts what the grammar allows and refuses what it does not."""

from __future__ import annotations

import pytest

from dragoman.events import (
    EVERY_KIND,
    Deviation,
    Event,
    Failure,
    Finish,
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
from dragoman.events.reply import _TAKES
from dragoman.types import ToolCall
from grammar import check, check_sequential

CALL = [ToolCallStart(1, "call_1", "f"), ToolCallDelta(1, "{}"), ToolCallEnd(1, ToolCall("call_1", "f", "{}"))]


def test_interleaved_parts_are_a_decoders_right_and_no_encoders():
    events = [Start(), TextStart(0), CALL[0], TextDelta(0, "a"), *CALL[1:], TextEnd(0), Finish("tool_use")]
    assert check(events) == events
    with pytest.raises(AssertionError, match="part opened in part"):
        check_sequential(events)


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ([Start()], "no terminal event"),
        ([Start(), Finish("stop"), Finish("stop")], "after the terminal event"),
        ([TextStart(0), Finish("stop")], "before Start"),
        ([Start(), TextStart(0), Finish("stop")], "open parts"),
        ([Start(), TextDelta(0, "a"), Finish("stop")], "part not open"),
        ([Start(), TextStart(0), TextDelta(0, ""), TextEnd(0), Finish("stop")], "empty delta"),
        ([Start(), *CALL, TextStart(1), TextEnd(1), Finish("stop")], "index used again"),
        ([Start(), CALL[0], CALL[2], Finish("tool_use")], "are not the arguments"),
        ([Start(), ToolCallFailed(0, "", "f", "cut", "cut"), Finish("other")], "was not open"),
        ([Deviation("no-such-code"), Start(), Finish("stop")], "undeclared deviation"),
    ],
)
def test_what_breaks_the_grammar_is_refused(events, problem):
    with pytest.raises(AssertionError, match=problem):
        check(events)


def test_a_failure_needs_no_start_and_leaves_parts_open():
    assert check([Failure("wire", "nothing came")])
    assert check([Start(), TextStart(0), TextDelta(0, "a"), Failure("connection", "cut")])


CALL_BEGUN = [Start(), ToolCallStart(0, "c", "ring"), ToolCallDelta(0, '{"bell": "a"}')]


@pytest.mark.parametrize("end", [Finish("stop"), Finish("length"), Finish("tool_use"), Failure("wire", "broken")])
def test_a_call_that_never_ended_is_a_failed_one_in_the_sum(end: Event):
    """Events that a user gathered: a stage of their own may have lost the call's end."""
    reply = fold([*CALL_BEGUN, end])
    assert reply.tool_calls == []
    assert [(call.id, call.kind, call.arguments) for call in reply.failed_calls] == [("c", "cut", '{"bell": "a"}')]
    assert reply.error is not None and (reply.stop_reason == "error") == (end != Finish("length"))
    whole = ToolCallEnd(0, ToolCall("c", "ring", '{"bell": "a"}'))
    assert fold([*CALL_BEGUN, whole, end]).failed_calls == ()
    failed = ToolCallFailed(0, "c", "ring", "cut", "cut")
    assert fold([*CALL_BEGUN, failed, end]).failed_calls == (failed,)


def test_a_call_that_is_open_is_none_while_the_answer_goes_on():
    assert fold(CALL_BEGUN).failed_calls == ()


def test_the_sum_takes_every_kind_of_event():
    assert {*_TAKES, TextDelta, ToolCallDelta} == EVERY_KIND
