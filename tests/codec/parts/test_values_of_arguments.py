"""Arguments of very many values fail their call before one of them is read, however they come."""

from __future__ import annotations

import itertools
from typing import get_args

from cases import counter
from dragoman._json import Raw
from dragoman.bounds import USUAL_BOUNDS
from dragoman.events import Event, Finish, Start, TextDelta, TextEnd, TextStart, ToolCallEnd, ToolCallFailed
from dragoman.protocol import ToolMode
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, stages_for
from dragoman.types import Tool
from for_each import for_each
from places import called, pieces, reader_of

MOST = USUAL_BOUNDS.argument_values
#: Form of a call in a text, and the arguments' place in it.
IN_TEXT = ('<tool_call>{"name":"f","arguments":%s}</tool_call>', "[TOOL_CALLS]f[ARGS]%s", '{"name":"f","arguments":%s}')


def arguments(values: int) -> str:
    """An object of so many values, its own and its list's included."""
    return '{"b":[%s]}' % ",".join(["1"] * (values - 2))


def read(protocol: str, made: list[list[Event]], most: int = MOST) -> list[Event]:
    encoder, reader = PROTOCOLS[protocol].encoder(new_id=counter(), model="m", created=1), reader_of(protocol, most)
    return [*(event for events in made for event in reader.feed(encoder.encode(events))), *reader.close()]


def said(text: str) -> list[list[Event]]:
    middle: list[list[Event]] = [[TextDelta(0, piece)] for piece in pieces(text, 1 << 16)]
    return [[Start("r", "m", 1), TextStart(0)], *middle, [TextEnd(0), Finish("stop")]]


@for_each("protocol", PROTOCOLS)
def test_a_call_has_as_many_values_as_are_allowed_and_no_more(protocol: str) -> None:
    for size in (1 << 14, 1 << 20):
        taken = read(protocol, called(arguments(MOST), size))
        assert any(type(event) is ToolCallEnd for event in taken)
        refused = read(protocol, called(arguments(MOST + 1), size))
        [failed] = [event for event in refused if type(event) in (ToolCallEnd, ToolCallFailed)]
        assert isinstance(failed, ToolCallFailed) and failed.kind == "refused"
        assert f"(setting server.limits.argument_values), got {MOST + 1} or more" in failed.message


@for_each("way", get_args(ToolMode))
def test_the_setting_counts_for_calls_in_a_text(way: ToolMode) -> None:
    """However the tools were asked for."""
    form = '{"tool_calls":[%s]}' % IN_TEXT[2] if way == "schema" else IN_TEXT[0]
    for most, kind in ((100, ToolCallEnd), (99, ToolCallFailed)):
        policy = Policy(way=way, argument_values=most)
        events = [*itertools.chain(*said(form % arguments(100)))]
        for stage in stages_for((Tool("f", None, Raw(b'{"type":"object"}')),), policy, new_id=counter()):
            events = stage.feed(events)
        [call] = [event for event in events if type(event) in (ToolCallEnd, ToolCallFailed)]
        assert type(call) is kind, (way, most, call)
        assert kind is ToolCallEnd or f"at most {most} JSON values" in call.message


@for_each("form", IN_TEXT)
def test_the_same_of_a_call_in_a_text(form: str) -> None:
    most = 4_096
    assert any(type(event) is ToolCallEnd for event in read("openai-chat", said(form % arguments(most - 5)), most))
    refused = read("openai-chat", said(form % arguments(most + 5)), most)
    assert not any(type(event) is ToolCallEnd for event in refused)
    assert any(type(event) is ToolCallFailed and "argument_values" in event.message for event in refused)
