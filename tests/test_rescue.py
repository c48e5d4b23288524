"""Calls written as text: each family's cases however they are cut, and text that is none passing untouched."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.events import (
    Deviation,
    Event,
    Failure,
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
from dragoman.stages.rescue.families import FAMILIES
from dragoman.stages.rescue.stage import Rescue
from dragoman.types import ToolCall
from for_each import for_each
from grammar import check
from profiles import IS_SOAK, one
from rescue_cases import TOOLS, RescueCase, load_rescue_cases, outcome, play_text

CASES = load_rescue_cases()
IDS = [f"{case.family}/{case.name}" for case in CASES]
BY_NAME = {family.name: family for family in FAMILIES}
OPENERS = {opener for family in FAMILIES for opener in family.openers}
#: Cuts of one case: about as many in `make test`, all in `make soak`.
MOST = 10**6 if IS_SOAK else 3


def expected(case: RescueCase) -> tuple[list[tuple[str, object]], list[str], str]:
    return case.calls, case.failed, case.left.strip()


def test_every_family_has_cases_and_a_source():
    for family in FAMILIES:
        cases = [case for case in CASES if case.family == family.name]
        assert len([case for case in cases if case.calls or case.failed]) >= 4, family.name
        assert len(cases) >= 5, family.name
        assert family.where == "message" or any(case.failed or case.cut_at for case in cases), family.name
        assert family.source.startswith("https://"), family.name
    assert {case.family for case in CASES} <= set(BY_NAME)


@for_each("case", CASES, ids=IDS)
def test_whole(case: RescueCase):
    events = play_text([case.text])
    assert outcome(events) == expected(case)
    reason = "tool_use" if case.calls else "error" if case.failed else "stop"
    assert fold(events).stop_reason == reason
    rescued = [event.seen for event in events if isinstance(event, Deviation) and event.code == "rescued-call"]
    assert rescued == [case.family] * len(case.calls + case.failed)


@for_each("case", CASES, ids=IDS)
def test_character_by_character(case: RescueCase):
    assert outcome(play_text(list(case.text))) == expected(case)


@for_each("case", CASES, ids=IDS)
def test_every_cut_in_two(case: RescueCase):
    for cut in range(1, len(case.text), len(case.text) // MOST + 1):
        assert outcome(play_text([case.text[:cut], case.text[cut:]])) == expected(case), f"cut at {cut}"


@for_each("case", [case for case in CASES if case.cut_at], ids=lambda case: f"{case.family}/{case.name}")
def test_a_call_cut_in_its_arguments_fails_and_leaves_no_markup(case: RescueCase):
    text = case.text[: case.text.index(case.cut_at) + len(case.cut_at)]
    calls, failed, left = outcome(play_text(list(text)))
    assert calls == case.calls[: len(calls)]
    assert len(failed) == 1 and failed[0] == case.calls[len(calls)][0]
    assert case.left.strip().startswith(left)


@for_each("case", CASES, ids=IDS)
def test_a_text_that_ends_anywhere_gives_no_other_call(case: RescueCase):
    if BY_NAME[case.family].where == "message" and not case.calls:
        return  # what comes next is why it is no call
    for end in range(1, len(case.text), len(case.text) // MOST + 1):
        calls, failed, _ = outcome(play_text([case.text[:end]]))
        assert calls == case.calls[: len(calls)], f"ends at {end}"
        assert len(failed) <= len(case.failed) + 1, f"ends at {end}"


@for_each("case", CASES, ids=IDS)
def test_in_thinking(case: RescueCase):
    """A call in thinking is one when no answer follows, else it was thinking. One that only a whole message can be is
    none there; another family's call behind it is."""
    [size] = one((1, 5), case.text)[:1]
    cut = [case.text[at : at + size] for at in range(0, len(case.text), size)]
    reply = fold(play_text(cut, field="reasoning_content"))
    if BY_NAME[case.family].where == "message":
        others = tuple(family for family in FAMILIES if family.name != case.family)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("dragoman.tool_emulation.text_stages.FAMILIES", others)
            without = fold(play_text(cut, field="reasoning_content"))
        assert (reply.tool_calls, reply.thinking) == (without.tool_calls, without.thinking)
        assert reply.tool_calls or reply.thinking == case.text
    else:
        assert [call.name for call in reply.tool_calls] == [name for name, _ in case.calls]
        assert reply.thinking.split() == case.left.split()
    pieces = [case.text[at : at + 7] for at in range(0, len(case.text), 7)]
    answered = fold(play_text(pieces, field="reasoning_content", answer="Done."))
    assert (answered.thinking, answered.text, answered.tool_calls) == (case.text, "Done.", [])


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_no_family_is_idle(family, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        "dragoman.tool_emulation.text_stages.FAMILIES", tuple(other for other in FAMILIES if other is not family)
    )
    for case in CASES:
        if case.family != family.name or not (case.calls or case.failed):
            continue
        events = play_text([case.text])
        if not case.calls and outcome(events) == expected(case):  # another family of its marker tells that it failed
            rescued = [event.seen for event in events if isinstance(event, Deviation) and event.code == "rescued-call"]
            assert len(rescued) == len(case.failed) and family.name not in rescued, case.name
        else:
            assert outcome(events) != expected(case), case.name


# ------------------------------------------------------------ text that is no call


def text_events(pieces: list[str]) -> list[Event]:
    return [Start(), TextStart(0), *(TextDelta(0, piece) for piece in pieces), TextEnd(0), Finish("stop")]


@given(st.lists(st.text(st.characters(exclude_characters="<[{`|]~", exclude_categories=["Cs"]), min_size=1)))
def test_text_without_a_marker_passes_as_the_same_events(pieces: list[str]):
    pieces = [f"The {piece}." for piece in pieces]
    events = text_events(pieces)
    stage = Rescue(TOOLS, FAMILIES, new_id=lambda: "a" * 24, most_values=1 << 16)
    passed = [out for event in events for out in stage.feed([event])]
    assert len(passed) == len(events)
    assert all(one is other for one, other in zip(passed, events, strict=True))


PARTS = sorted(OPENERS | {"<", "[", "{", "`", "```\n", "\n", " ", "a", "get_weather", "(", '"', ":", "}", ">", "|"})


BEGUN = sorted(OPENERS, key=len, reverse=True)
OPENER = "|".join(map(re.escape, BEGUN))
#: What may wait: a call, or the beginning of an opener.
BEGINNINGS = {one[:end] for one in BEGUN for end in range(len(one))}


def told(events: list[Event]) -> re.Pattern[str]:
    """What text these events may have come of: what they say, and a call where they tell of one."""
    pattern = ""
    refused = {event.index for event in events if isinstance(event, ToolCallFailed) and event.kind == "refused"}
    for event in events:
        if isinstance(event, TextDelta):
            pattern += re.escape(event.text)
        elif isinstance(event, ToolCallStart):
            more = f"(?:(?!{OPENER}).)*?" if event.index in refused else ".*?"
            pattern += f"(?:{OPENER}).*?{re.escape(event.name)}{more}"
    return re.compile(pattern, re.DOTALL)


def may_wait(text: str) -> bool:
    return text in BEGINNINGS or text.startswith(tuple(BEGUN))


@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=12), st.data())
def test_no_text_is_lost_and_only_what_may_become_a_call_waits(parts: list[str], data: st.DataObject):
    """No text but that of calls that failed; what stands behind one stays."""
    text = "Well, " + "".join(parts)
    size = data.draw(st.integers(1, 8))
    stage = Rescue(TOOLS, FAMILIES, new_id=lambda: "a" * 24, most_values=1 << 16)
    found = stage.feed([Start(), TextStart(0)])
    for start in range(0, len(text), size):
        found += stage.feed([TextDelta(0, text[start : start + size])])
        fed, said = text[: start + size], told(found)
        assert any(may_wait(fed[at:]) and said.fullmatch(fed, 0, at) for at in range(len(fed) + 1))
    found += stage.feed([TextEnd(0), Finish("stop")])
    assert told(found).fullmatch(text)
    begun, failed = ([event for event in found if isinstance(event, kind)] for kind in (ToolCallStart, ToolCallFailed))
    assert [call.index for call in begun] == [call.index for call in failed]


# ------------------------------------------------------------ calls without their closing marker

BODIES = {
    "JSON": '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}',
    "half a marker": '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_',
    "a list": '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Oslo"}}]',
    "Python": '<|tool_call_start|>[get_weather(city="Oslo")',
    "the whole message": '{"name": "get_weather", "arguments": {"city": "Oslo"}}',
}
TAGS = {
    "a parameter": "<tool_call><function=get_weather><parameter=city>Oslo</parameter>",
    "half a marker": '<invoke name="get_weather"><parameter name="city">Oslo</parameter></inv',
    "prose behind": "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Oslo</arg_value> So.",
}


def ended(text: str, end: Event) -> Reply:
    stage = Rescue(TOOLS, FAMILIES, new_id=iter("abcdef").__next__, most_values=1 << 16)
    events = [Start(), TextStart(0), *(TextDelta(0, mark) for mark in text), TextEnd(0), end]
    return fold(check([out for event in events for out in stage.feed([event])]))


@for_each("body", BODIES)
def test_a_body_without_its_marker_counts_only_where_the_answer_ended_by_itself(body: str):
    for reason in ("stop", "tool_use"):
        reply = ended(BODIES[body], Finish(reason))
        assert [call.arguments for call in reply.tool_calls] == ['{"city": "Oslo"}'] and not reply.text
    for end in (Finish("length"), Finish("content_filter"), Finish("other"), Failure("connection", "reset")):
        reply = ended(BODIES[body], end)
        assert reply.tool_calls == []
        if body == "the whole message":
            assert reply.text == BODIES[body]
        else:
            assert [failed.kind for failed in reply.failed_calls] == ["lost"] and not reply.text


@for_each("tags", TAGS)
def test_tags_without_their_closing_tag_are_no_call_whatever_the_end(tags: str):
    for end in (Finish("stop"), Finish("tool_use"), Finish("length"), Failure("connection", "reset")):
        reply = ended(TAGS[tags], end)
        assert reply.tool_calls == [] and [failed.name for failed in reply.failed_calls] == ["get_weather"]


def test_what_stands_behind_a_body_shows_that_it_was_not_cut():
    for behind in (" Done.", "\nDone.", '\n<tool_call>{"name": "get_time", "arguments": {"timez', "</tool_call>"):
        assert [call.name for call in ended(BODIES["JSON"] + behind, Finish("length")).tool_calls] == ["get_weather"]


# ------------------------------------------------------------ beside structured calls


def structured(index: int, call: ToolCall) -> list[Event]:
    return [
        ToolCallStart(index, call.id, call.name),
        ToolCallDelta(index, call.arguments),
        ToolCallEnd(index, call),
    ]


def written(index: int, call: str) -> list[Event]:
    return [TextStart(index), *(TextDelta(index, mark) for mark in call), TextEnd(index)]


SAME = ToolCall("call_1", "get_weather", '{"city":"Oslo"}')
OTHER = ToolCall("call_2", "get_weather", '{"city": "Rome"}')
IN_TEXT = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'
#: Two that are open at the same time.
AT_ONCE = [event for pair in zip(structured(1, OTHER), structured(2, SAME), strict=True) for event in pair]


@for_each(
    ("parts", "cities", "written_twice"),
    [
        ([written(0, IN_TEXT), structured(1, SAME)], ["Oslo"], 1),
        ([structured(0, SAME), written(1, IN_TEXT)], ["Oslo"], 1),
        ([written(0, IN_TEXT), structured(1, OTHER)], ["Oslo", "Rome"], 0),
        ([structured(0, OTHER), written(1, IN_TEXT)], ["Rome", "Oslo"], 0),
        ([structured(0, SAME), written(1, IN_TEXT), written(2, IN_TEXT)], ["Oslo", "Oslo"], 1),
        ([written(0, IN_TEXT + IN_TEXT)], ["Oslo", "Oslo"], 0),
        ([written(0, IN_TEXT), AT_ONCE], ["Oslo", "Rome"], 1),
    ],
)
def test_a_call_both_written_and_structured_is_one(parts: list[list[Event]], cities: list[str], written_twice: int):
    stage = Rescue(TOOLS, FAMILIES, new_id=iter("abcdef").__next__, most_values=1 << 16)
    events = [Start(), *(event for part in parts for event in part), Finish("tool_use")]
    found = check([out for event in events for out in stage.feed([event])])
    reply = fold(found)
    assert [call.values()["city"] for call in reply.tool_calls] == cities
    repeated = [deviation for deviation in reply.deviations if deviation.code == "duplicate-call"]
    assert len(repeated) == written_twice


def test_calls_of_functionary_behind_one_whose_marker_was_the_prompts():
    """As a whole message all of them count."""
    text = 'get_weather\n{"city": "Oslo"}>>>set_alarm\n{"hour": 7}>>>get_time\n{}'
    for pieces in ([text], list(text)):
        calls, failed, left = outcome(play_text(pieces))
        assert [name for name, _ in calls] == ["get_weather", "set_alarm", "get_time"]
        assert (failed, left) == ([], "")
