"""Policy 11: a delta holds only what the wire said or what closes it; a call's failure is never the model's words.

Over generated streams of all protocols and calls written as text in every family, cut anywhere: what was told of a
call at any moment is the beginning of what the model had written of one by then; text that is told stands in the
answer, in its order; a failed call is told in each protocol's place for errors, and leaves no word in the text.
"""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import counter
from dragoman.events import (
    Event,
    Failure,
    Finish,
    Reply,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallFailed,
    ToolCallStart,
    fold,
)
from dragoman.pipe import Reader
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, nothing_fits, stages_for
from grammar import check, check_sequential
from profiles import IS_SOAK
from rescue_forms import FORMS, Form
from test_wire_safety import GOOD_ENDS, NAMES, STREAMS, Stream, tools
from test_written_calls import TOOLS, some_calls


def told_calls(events: list[Event]) -> list[tuple[str, str]]:
    """The name and the argument text so far of each call that was told, in order."""
    starts = {event.index: event.name for event in events if type(event) is ToolCallStart}
    told = dict.fromkeys(starts, "")
    for event in events:
        if type(event) is ToolCallDelta:
            told[event.index] += event.text
    return [(starts[index], text) for index, text in told.items()]


def told_text(events: list[Event]) -> list[str]:
    return [event.text for event in events if type(event) is TextDelta or type(event) is ThinkingDelta]


# ---------------------------------------------------------------- structured calls


def is_asked(name: str, told: str, stream: Stream, sent: int, *, is_over: bool) -> bool:
    """Whether one of the model's calls of this name begins so, as far as its pieces were sent; at the end an object
    may have been closed that is empty, or told in another notation."""
    for number, call in enumerate(stream.calls):
        pieces = max([0, *(frame.pieces for frame in stream.frames[:sent] if frame.call == number)])
        text = "".join(call.pieces[:pieces])
        if call.name != name:
            continue
        if text.startswith(told) or (is_over and not pieces and told == "{}"):
            return True
        if pieces == len(call.pieces) and json.loads(text) == loose(told):
            return True
        if pieces == len(call.pieces) and is_beginning(told, call.arguments()):
            return True
    return False


def loose(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None


def is_beginning(told: str, value: object) -> bool:
    """Whether a text is the beginning of a value, written as objects of the wire are."""
    forms = (json.dumps(value, ensure_ascii=is_ascii, separators=separators)
             for is_ascii in (True, False) for separators in (None, (",", ":")))  # fmt: skip
    return any(form.startswith(told) for form in forms)


def judge(protocol: str, stream: Stream, end: str, sent: int, *, sequential: bool) -> list[Event]:
    """Check what is told frame by frame; gives all of it."""
    offered = tools(is_needy=True)
    decoder = PROTOCOLS[protocol].decoder(
        new_id=counter(), offered_names=frozenset(NAMES), takes_nothing=nothing_fits(offered)
    )
    policy = Policy(arguments="live", sequential=sequential)
    reader = Reader(decoder, stages_for(offered, policy, new_id=counter()))
    events: list[Event] = []
    for number, frame in enumerate(stream.frames[:sent], 1):
        events += reader.feed(frame.data)
        for name, told in told_calls(events):
            assert is_asked(name, told, stream, number, is_over=False), (name, told, number)
    if end == "reset":
        events += reader.fail(Failure("connection", "reset"))
    else:
        events += reader.feed(stream.ends[end]) + reader.close()
    for name, told in told_calls(events):
        assert is_asked(name, told, stream, sent, is_over=end in GOOD_ENDS), (name, told, end)
    assert "".join(told_text(events)) == ""
    return events


def judge_written(events: list[Event]) -> None:
    """The same in the stream of every protocol: what failed is told there, and not in the model's words."""
    reply = fold(events)
    for client in PROTOCOLS.values():
        wire = client.encoder(new_id=counter(), model="m", created=1).encode(events)
        back = read_back(client.name, wire)
        assert (back.text, back.thinking) == (reply.text, reply.thinking), client.name
        # behind an error nothing shows that no more was to come of a call without arguments
        assert sure(back) == sure(reply), client.name
        if any(type(event) is ToolCallFailed for event in events) and reply.stop_reason == "error":
            assert back.stop_reason == "error" and back.error is not None and back.error.message, client.name


def sure(reply: Reply) -> list[str]:
    """The arguments of its calls, in whatever order they were whole."""
    return sorted(call.arguments for call in reply.tool_calls if call.arguments != "{}")


def read_back(protocol: str, wire: bytes) -> Reply:
    decoder = PROTOCOLS[protocol].decoder(new_id=counter(), offered_names=frozenset(NAMES))
    return fold([*decoder.feed(wire), *decoder.close()])


@pytest.mark.parametrize("protocol", STREAMS)
@settings(max_examples=400 if IS_SOAK else 12)
@given(data=st.data())
def test_a_delta_holds_what_the_wire_said(protocol: str, data: st.DataObject):
    stream = data.draw(STREAMS[protocol])
    end = data.draw(st.sampled_from([*stream.ends, "reset"]))
    sent = data.draw(st.integers(0, len(stream.frames)))
    check(judge(protocol, stream, end, sent, sequential=False))
    judge_written(check_sequential(judge(protocol, stream, end, sent, sequential=True)))


# ---------------------------------------------------------------- calls written as text


def play(text: str, end: str, size: int) -> list[list[Event]]:
    """What is told of each piece of a text, and at the end."""
    stages = stages_for(TOOLS, Policy(arguments="live"), new_id=counter())
    pieces = [TextDelta(0, text[start : start + size]) for start in range(0, len(text), size)]
    last: Event = Failure("connection", "reset") if end == "reset" else Finish(end)  # type: ignore[arg-type]
    found: list[list[Event]] = []
    for event in [Start(), TextStart(0), *pieces, TextEnd(0), last]:
        events = [event]
        for stage in stages:
            events = stage.feed(events)
        found.append(events)
    return found


def is_in_order(told: list[str], text: str) -> bool:
    """Whether each of these texts stands in another one, behind the one before."""
    place = 0
    for piece in told:
        place = text.find(piece, place) + len(piece)
        if place < len(piece):
            return False
    return True


def judge_text(form: Form, dice: Random) -> None:
    calls = some_calls(dice, form, is_plain=dice.random() < 0.5)
    lead = "" if form.where == "message" else dice.choice(["", "Let me see.\n", "I look <b>here</b>.\n\n"])
    text = lead + form.write(calls).text()
    whole = told_calls([event for events in play(text, "stop", len(text)) for event in events])
    cut, size, end = dice.randint(0, len(text)), dice.choice([1, 3, 7, 100]), dice.choice(["stop", "length", "reset"])
    *live, at_end, last = play(text[:cut], end, size)
    so_far = told_calls([event for events in live for event in events])
    for (name, told), (wanted, full) in zip(so_far, whole, strict=False):  # a refused call is told in part
        assert name == wanted and (full.startswith(told) or told.startswith(full)), (text[:cut], told, full)
    events = check([*(event for events in live for event in events), *at_end, *last])
    assert is_in_order(told_text(events), text[:cut]), (text[:cut], told_text(events))
    for (name, told), (same, more) in zip(so_far, told_calls(events), strict=False):
        assert name == same and more.startswith(told), (text[:cut], told, more)
    failed = [event for event in events if type(event) is ToolCallFailed]
    assert not [event for event in failed if event.message in fold(events).text]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.family}: {form.name}")
@settings(max_examples=50 if IS_SOAK else 3)
@given(dice=st.randoms(use_true_random=False))
def test_a_delta_of_a_written_call_holds_what_was_written(form: Form, dice: Random):
    judge_text(form, dice)
