"""A call whose brackets close too early, with more arguments behind them: it fails, and nothing else is run.

Each form whose arguments close themselves is broken in every way of its own: after each of its brackets the rest may go
on with a comma, without one, on a line of its own, or with a brace of its own. Words behind a call are none of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from for_each import for_each
from profiles import some
from rescue_forms import FORMS, Calls, Form, Written
from test_joined_calls import outcome
from test_written_calls import exact, play

CALL = ("run_command", {"command": "ls", "timeout": 5})
CLOSED = [form for form in FORMS if form.closes == "body"]
IDS = [f"{form.family}: {form.name}" for form in CLOSED]
#: How what is behind an early end goes on.
JOINTS = (", ", ",", " ", "", ",\n", "\n", "{", ", {", "\n{", "; ", "</b>, ")


def early_ends(written: Written) -> Iterator[str]:
    """A call's text, closed before its second argument by the first, the first two, … of its brackets."""
    ((body, closing),) = written.calls
    value, key = body.index("ls") + 2, body.index("timeout")
    comma = body.index(",", value)
    end = body[body.index("5", key) + 1 :]
    for size in range(1, len(end) + 1):
        for joint in JOINTS:
            rest = body[comma + 1 :].lstrip()
            yield written.lead + body[:comma] + end[:size] + joint + rest + closing + written.tail


def assert_one_outcome(text: str, allowed: tuple[Calls, ...]) -> None:
    whole = outcome(play(text, "stop", len(text)))
    assert exact(whole[0]) in [exact(calls) for calls in allowed], f"{text!r}: {whole}"
    for size in some((1, 7), text, 4):
        assert outcome(play(text, "stop", size)) == whole, f"in deltas of {size}: {text!r}"


@for_each("form", CLOSED, ids=IDS)
def test_a_call_that_closes_too_early_is_not_run(form: Form):
    for text in early_ends(form.write([CALL])):
        assert_one_outcome(text, ([], [CALL]))


@for_each("form", CLOSED, ids=IDS)
def test_a_good_call_before_it_is_run(form: Form):
    if form.most == 1:
        return
    good = ("get_time", {"zone": "a"})
    first = form.write([good, CALL])
    for text in early_ends(Written(first.lead + "".join(first.calls[0]), first.calls[1:], first.tail)):
        assert_one_outcome(text, ([], [good], [good, CALL]))


@for_each(
    "text",
    [
        '<tool_call>{"name": "get_time"}, "arguments": {"zone": "a"}}</tool_call>',
        '<tool_call>{"name": "get_time"}{"arguments": {"zone": "a"}}</tool_call>',
        '<tool_call>{"name": "get_time"} {"zone": "a"}</tool_call>',
        '<tool_call>{"name": "get_time"}\n"arguments": {"zone": "a"}}</tool_call>',
        '<tool_call>{"name": "run_command", "arguments": {"command": "ls "}} -a"}}</tool_call>',
        '[TOOL_CALLS]run_command[ARGS]{"command": "ls "}done"}',
        '<tool_call>{"name": "run_command", "arguments": {"command": "ls"}}\ntimeout: 5}</tool_call>',
        '<tool_call>{"name": "run_command", "arguments": {"command": "ls "}} done"}}',
        '[TOOL_CALLS]run_command[ARGS]{"command": "ls "} done}',
        '[TOOL_CALLS]run_command[ARGS]{"command": "ls"} timeout 5}',
        '[TOOL_CALLS]run_command[ARGS]{"command": "ls"} and timeout: 5',
    ],
)
def test_a_call_object_that_closes_too_early_is_not_run(text: str):
    assert_one_outcome(text, ([],))
    assert play(text, "stop", 1).failed_calls


@for_each("form", [form for form in CLOSED if form.where != "message"], ids=lambda form: form.family)
def test_words_on_a_line_of_their_own_are_none_of_it(form: Form):
    written = form.write([CALL])
    texts = [written.text()]
    if form.name != "Python" or form.family == "olmo":  # a list of Python is no statement before its bracket
        texts.append(written.lead + written.calls[0][0])
    for words in ("It is done.", "Note: it is done.", "- one\n- two", "[Here](x) it is.", "5 files.", "timeout"):
        for text in texts:
            assert_one_outcome(f"{text}\n{words}", ([CALL],))


@for_each("form", [form for form in CLOSED if form.where != "message"], ids=lambda form: form.family)
def test_words_up_to_the_end_of_its_line_are_none_of_it(form: Form):
    text = form.write([CALL]).text()
    for words in ("Done.", "I'll wait", "It is done, and I wait (5 s).\nThen: go on.", "word " * 100):
        assert_one_outcome(f"{text} {words}", ([CALL],))


@for_each("behind", ["", " ", "\n"])
@for_each("end", [")]<|python_end|>", ")<|python_end|>", ", dry_run=True)]<|python_end|>"])
def test_a_missing_comma_of_python_does_not_join_arguments(behind: str, end: str):
    for value in ("'5'", "5", '"5"'):
        assert_one_outcome(f"<|python_start|>[run_command(command='ls'{behind}timeout={value}{end}", ([],))


@for_each(
    "text",
    [
        '<tool_call>[{"name": "run_command", "arguments": {"command": "ls"}}, {"name": "other", "arguments": {}}]',
        "<|python_start|>[run_command(command='ls'), other(a=1)]<|python_end|>",
    ],
)
def test_a_call_of_another_tool_behind_it_leaves_it(text: str):
    assert_one_outcome(text, ([("run_command", {"command": "ls"})],))


@for_each("arguments", ['{"a": 1}, "b": {"c": "z"}', '{"a": 1} "b": {"c": "z"}', '{}"a": 1, "b": {"c": "z"}'])
def test_a_brace_too_many_may_be_any_of_them(arguments: str):
    """Where an object ends before the last value does, its brace may be the one: what follows was meant to be in it."""
    written = f'"arguments": {{"path": "a", "content": "x", "options": {arguments}}}'
    for lead, end in (("<tool_call>", "</tool_call>"), ("", "")):
        assert_one_outcome(f'{lead}{{"name": "write_file", {written}}}}}{end}', ([],))
    call = ("write_file", {"path": "a", "content": "x", "options": {"a": 1}})
    text = json.dumps({"name": call[0], "arguments": call[1]})
    assert_one_outcome(f"<tool_call>{text}}}</tool_call>", ([call],))


@for_each("arguments", ['command:<|"|>ls<|"|>,timeout:5dry_run:true', 'command:}<|"|>ls<|"|>', "command:ls'"])
def test_values_of_gemma_without_quotation_marks_are_one_each(arguments: str):
    assert_one_outcome(f"<|tool_call>call:run_command{{{arguments}}}<tool_call|>", ([],))
