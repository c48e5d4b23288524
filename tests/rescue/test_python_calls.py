"""Calls written as Python, against Python's own reading of the same literals."""

from __future__ import annotations

import ast
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dragoman.events import ToolCallDelta, fold
from for_each import for_each
from rescue_cases import outcome, play_text

CHARACTERS = st.characters(exclude_categories=["Cs"])
LITERALS = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(CHARACTERS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(CHARACTERS), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


def call_of(value: Any) -> str:
    return f"<|python_start|>[search(query='q', filters={{'value': {value!r}}})]<|python_end|>"


@given(LITERALS, st.data())
def test_literals_mean_what_python_says(value: Any, data: st.DataObject):
    text = call_of(value)
    cut = data.draw(st.integers(1, len(text) - 1))
    (_, arguments), *others = outcome(play_text([text[:cut], text[cut:]]))[0]
    assert not others
    expected = {"query": "q", "filters": {"value": value}}
    assert json.dumps(arguments, sort_keys=True) == json.dumps(expected, sort_keys=True)


QUOTED = [
    r"'a\tb\n\\ \x41 \u00e9 \U0001F600 \101\0 \a\b\f\v'",
    r'"C:\\new\\table"',
    r"r'C:\new\d+'",
    "u'x'",
    "'one' \"two\"",
    r"'\N{EM DASH}\N{greek small letter pi}'",
    r"r'\N{EM DASH}'",
    '"""three\n\'quotes\' ""inside"""',
    "'''it's \"here\"'''",
    "'a\\\nb'",
    "''",
    '""""""',
    "(1, 2.5e3, -0x1F, 1_000)",
    "(1,)",
    "-007.5",
    "()",
    "[1, 2,]",
    "{'a': (True, None),}",
]


@for_each("quoted", QUOTED)
def test_forms_of_literals(quoted: str):
    text = f"<|python_start|>[search(query='q', filters={{'value': {quoted}}})]<|python_end|>"
    expected = json.loads(json.dumps({"query": "q", "filters": {"value": ast.literal_eval(quoted)}}))
    for pieces in ([text], list(text)):
        calls, failed, left = outcome(play_text(pieces))
        assert calls == [("search", expected)]
        assert (failed, left) == ([], "")


@for_each(
    "value",
    ["1 + 2", "now()", "os.environ['HOME']", "f'{x}'", "b'x'", "[x for x in y]", "float('inf')", "1e999", "nan", "-inf",
     "'a' + 'b'", "'a'.upper()", "(1)", "{1: 2}", "...", "'a' 'b'.x", "['a' 'b']", "{'a' 'b', 'c'}",
     "('a' 'b',)", r"'\N{NO SUCH NAME}'", r"'\N'", "'\\U00110000'", "lambda: 1", "*x",
     "[" * 70 + "]" * 70],
)  # fmt: skip
def test_what_is_no_literal_fails_alone(value: str):
    text = f"<|python_start|>[search(query='q', filters={value}), get_time(timezone='x')]<|python_end|> ok"
    for pieces in ([text], list(text)):
        assert outcome(play_text(pieces)) == ([("get_time", {"timezone": "x"})], ["search"], "ok")


@for_each(
    ("value", "expected"),
    [
        ("{'urgent', 'bug'}", ["urgent", "bug"]),
        ("{1, 2,}", [1, 2]),
        ("{'a'}", ["a"]),
        ("{'a', (1, {2})}", ["a", [1, [2]]]),
        ("{'a': {'b'}, 'c': {}}", {"a": ["b"], "c": {}}),
        ("{'a': 1,}", {"a": 1}),
        ("007", 7),
        ("-010", -10),
        ("00", 0),
    ],
)
def test_sets_are_lists_and_padded_numbers_decimal(value: str, expected: object):
    text = f"<|python_start|>[search(query='q', filters={{'value': {value}}})]<|python_end|>"
    for pieces in ([text], list(text)):
        assert outcome(play_text(pieces)) == ([("search", {"query": "q", "filters": {"value": expected}})], [], "")


@for_each(
    ("quoted", "expected"),
    [
        ("'sed -n '36,45p' /tmp/a.py'", "sed -n '36,45p' /tmp/a.py"),
        ("'echo 'hi''", "echo 'hi'"),
        ('"grep -c "x y" /tmp/log"', 'grep -c "x y" /tmp/log'),
        ("'it's 5 o'clock'", "it's 5 o'clock"),
    ],
)
@for_each("end", [")]<|tool_call_end|>", ")]"])
def test_quotes_of_its_own_kind_in_the_last_text(quoted: str, expected: str, end: str):
    for pieces in ([text := f"<|tool_call_start|>[search(query={quoted}{end}"], list(text)):
        assert outcome(play_text(pieces)) == ([("search", {"query": expected})], [], "")


@for_each(
    "arguments",
    [
        "query='say 'a', limit=3",
        "query='say 'a', limit='3'",
        "query='say 'a' and (b 'c') so'",
        "query='say 'a': b'",
        "query='a'in 'abc'",
        "query='x\\n'a' b'",
        "query='x 'a\\n' b'",
    ],
)
def test_a_text_that_may_end_at_several_quotes_is_refused(arguments: str):
    for pieces in ([text := f"<|tool_call_start|>[search({arguments})]<|tool_call_end|>"], list(text)):
        calls, failed, _ = outcome(play_text(pieces))
        assert (calls, failed) == ([], ["search"])


@for_each("quoted", ["'say 'a' b'", "'a'2", "'a' b"])
@for_each("other", ["write_file(path='p', content='c')", "search(query='v')", "list(), search(query='v')"])
def test_a_text_never_grows_over_another_call(quoted: str, other: str):
    meant = [("write_file", {"path": "p", "content": "c"}), ("search", {"query": "v"})]
    for joint in (", ", "\n", ",\n    "):
        for pieces in (
            [text := f"<|tool_call_start|>[search(query={quoted}){joint}{other}]<|tool_call_end|>"],
            list(text),
        ):
            calls, failed, _ = outcome(play_text(pieces))
            assert failed[:1] == ["search"] and all(call in meant for call in calls), text


def test_a_dict_alone_is_the_arguments():
    text = "<|python_start|>[get_weather({'city': 'x'}), get_weather({'city': 'x'}, 2), get_weather({})]<|python_end|>"
    calls, failed, _ = outcome(play_text([text]))
    assert (calls, failed) == ([("get_weather", {"city": "x"}), ("get_weather", {})], ["get_weather"])


def test_a_failure_says_why():
    reply = fold(play_text(["<|python_start|>[get_weather('Oslo'), search(query=x)]<|python_end|>"]))
    messages = [failed.message for failed in reply.failed_calls]
    assert "keyword" in messages[0] and "literal" in messages[1]
    assert all("Oslo" not in message for message in messages)


def test_a_string_leaves_while_it_comes():
    events = play_text(["<|python_start|>[write_file(path='p', content='", *["word "] * 50, "')]<|python_end|>"])
    assert len([event for event in events if type(event) is ToolCallDelta]) > 50


#: How the Python families write a call, and whether in a list.
WRITTEN = [
    ("<|python_start|>[%s]<|python_end|>", True),
    ("<|tool_call_start|>[%s]<|tool_call_end|>", True),
    ("<|python_tag|>%s<|eom_id|>", False),
    ("<function_calls>%s</function_calls>", False),
    ("[%s]", True),
    ("%s", False),
    ("```tool_code\nprint(%s)\n```", False),
]
GOES_ON = [
    " if False else None",
    ".strip()",
    "[0]",
    "(1)",
    " or None",
    " for _ in []",
    " + 1",
    " == 1",
    "\t and x",
    "|x",
]


@for_each("goes_on", GOES_ON)
@for_each(("written", "is_listed"), WRITTEN)
def test_a_call_that_is_part_of_an_expression_is_none(written: str, is_listed: bool, goes_on: str):
    call = "search(query='q')"
    texts = [written % (call + goes_on)]
    if is_listed:
        texts += [written % f"{call}\n{goes_on}", written % f"{call}{goes_on}, {call}"]
        if "<" in written:
            texts.append(written.replace("]", f"]{goes_on}") % call)
    for text in texts:
        for pieces in ([text], list(text)):
            assert outcome(play_text(pieces))[0] == []
