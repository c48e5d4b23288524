"""Names with residue of their families' markup: exact after cleaning, or left alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import _json
from dragoman.events import Event, Finish, Start, ToolCallDelta, ToolCallEnd, ToolCallStart, fold
from dragoman.response_stages import Policy, stages_for
from dragoman.stages.tool_names import ToolNames, clean_name
from dragoman.types import Tool, ToolCall
from grammar import check

OFFERED = ("cut_rope", "functions_cut_rope_0x")


@pytest.mark.parametrize(
    "name",
    [
        "cut_rope</arg_value>", "cut_rope\n</arg_value>\n", "functions_cut_rope_0", "functions_cut_rope_17",
        "cut_rope<|message|>", "<|message|>cut_rope", "<|channel|>cut_rope<|message|>", "functions.cut_rope:0",
        "functions.cut_rope</arg_value>",
    ],
)  # fmt: skip
def test_residue_is_cleaned(name: str):
    assert clean_name(name, OFFERED) == "cut_rope"


@pytest.mark.parametrize("name", ["cut_rop</arg_value>", "functions_cut_rope", "cut_rope_0", "cutrope", "cut_rope</x>"])
def test_nothing_fuzzy(name: str):
    assert clean_name(name, OFFERED) is None


WORDS = ("commentary", "analysis", "final", "json", "code", "<|channel|>", "<|constrain|>", "<|message|>", " ", "\n")
#: What may be arguments of a call, or another name.
TOLD = ('{"a":1}', "{", "a=1", "(a)", "cut_tree", "to=functions.cut_tree", "<arg_key>a", "1", "'", "[", "x", "é")


@given(
    before=st.lists(st.sampled_from(WORDS), max_size=4),
    told=st.sampled_from(TOLD),
    behind=st.lists(st.sampled_from((*WORDS, *TOLD)), max_size=3),
    joint=st.sampled_from((" ", "\n", "<|channel|>", "<|message|>", "<|constrain|>json ")),
)
def test_what_may_be_arguments_behind_a_name_is_no_residue(before: list[str], told: str, behind: list[str], joint: str):
    """It was cleaned away, and the call run without arguments."""
    assert clean_name("".join(("cut_rope", joint, *before, told, *behind)), ("cut_rope",)) is None


@given(st.lists(st.sampled_from(WORDS), max_size=6), st.sampled_from((" ", "<|channel|>", "<|message|>")))
def test_words_and_tokens_of_harmony_behind_a_name_are_residue(words: list[str], joint: str):
    assert clean_name(f"cut_rope{joint}{' '.join(words)}", ("cut_rope",)) == "cut_rope"


def run(name: str, arguments: str = "{}") -> list[Event]:
    call = ToolCall("c1", name, arguments)
    events = [
        Start(),
        ToolCallStart(0, "c1", name),
        ToolCallDelta(0, arguments),
        ToolCallEnd(0, call),
        Finish("tool_use"),
    ]
    return check(ToolNames(OFFERED).feed(events))


def test_arguments_in_the_name_are_read():
    tagged = (
        "cut_rope<arg_key>where</arg_key><arg_value>a < b</arg_value>\n<arg_key>n</arg_key> <arg_value>3</arg_value>"
    )
    calls = fold(run(tagged)).tool_calls
    assert [(call.name, call.values()) for call in calls] == [("cut_rope", {"where": "a < b", "n": "3"})]


def test_other_arguments_beside_those_in_the_name_are_refused():
    reply = fold(run("cut_rope<arg_key>where</arg_key><arg_value>a</arg_value>", '{"where":"b"}'))
    assert reply.tool_calls == []
    assert [failed.name for failed in reply.failed_calls] == ["cut_rope"]


def test_no_later_stage_mends_a_call_whose_name_holds_other_arguments():
    tool = Tool("cut_rope", "", _json.raw({"type": "object"}))
    events = [
        Start(),
        ToolCallStart(0, "c1", name := "cut_rope<arg_key>where</arg_key><arg_value>a</arg_value>"),
        ToolCallEnd(0, ToolCall("c1", name, '{"where":"b"}')),
        Finish("tool_use"),
    ]
    for stage in stages_for((tool,), Policy(), new_id=lambda: "0"):
        events = stage.feed(events)
    assert fold(events).tool_calls == []


@pytest.mark.parametrize(
    "name",
    [
        "cut_rope<arg_key>where</arg_key><arg_value>a",
        "cut_rope<arg_key>where</arg_key><arg_value>a</arg_value> and more",
        "cut_rope<arg_key>a</arg_key><arg_value>1</arg_value><arg_key>a</arg_key><arg_value>2</arg_value>",
        "cut_rope<arg_key>a<arg_key>b</arg_key><arg_value>1</arg_value>",
        "cut<arg_key>a</arg_key><arg_value>1</arg_value>",
    ],
)
def test_arguments_that_are_not_whole_stay_in_the_name(name: str):
    events = run(name)
    assert [event.name for event in events if type(event) is ToolCallStart] == [name]


def test_a_long_name_takes_linear_time():
    run("cut_rope" + "<arg_key>a</arg_key><arg_value>1</arg_value>" * 20_000 + "<arg_key>")
