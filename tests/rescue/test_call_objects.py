"""Calls written as JSON objects in which something is not as it must be: nothing of them is dropped in silence."""

from __future__ import annotations

import json

from for_each import for_each
from rescue_cases import outcome, play_text

SECOND = {"name": "get_time", "arguments": {"timezone": "UTC"}}
TAGS = "<tool_call>%s</tool_call>"


@for_each("key", ["function", "tool", "tool_name", "tool_calls", "next", "metadata", "id", "type"])
@for_each("held", [SECOND, [SECOND], {"function": SECOND}], ids=["object", "list", "wrapped"])
@for_each("place", range(1, 3))
def test_a_call_that_holds_another_one_is_two_readings(key: str, held: object, place: int):
    members = [("name", "search"), ("arguments", {"query": "q"})]
    members.insert(place, (key, held))
    text = TAGS % json.dumps(dict(members))
    for pieces in ([text], list(text)):
        calls, failed, _ = outcome(play_text(pieces))
        assert (calls, failed) == ([], ["search"])


def test_what_holds_no_call_is_passed_over():
    text = TAGS % json.dumps({"name": "search", "metadata": {"name": "no tool", "a": [1]}, "arguments": {"query": "q"}})
    assert outcome(play_text([text]))[0] == [("search", {"query": "q"})]


@for_each(
    "text",
    [
        '{"name": "search", }',
        '{"name": "search" "id": "a"}',
        "{'name': 'search'}",
        '{name: "search"}',
        '{"function": {"name": "search", }}',
        '{"function": {"name": "search"}, }',
    ],
)
def test_no_arguments_of_an_object_that_is_no_json_are_none(text: str):
    for written in (TAGS % text, "<|python_tag|>" + text, text):
        for pieces in ([written], list(written)):
            assert outcome(play_text(pieces))[0] == []
