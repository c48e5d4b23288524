"""Parameters that stand at the wrong place of a call: it has all of them, or it fails. Nothing runs with fewer."""

from __future__ import annotations

import itertools
import random

from for_each import for_each
from profiles import IS_SOAK, some
from rescue_forms import FORMS, Form
from test_written_calls import delivered, exact, play

ARGUMENTS = {"command": "ls", "dry_run": True}
TAGGED = [form for form in FORMS if form.closes == "tag"]
ORDERS = 720 if IS_SOAK else 8


def parts_of(form: Form, name: str, arguments: dict[str, object]) -> list[str]:
    """What begins a call, its name, each of its parameters, what ends it, and what ends all calls."""
    one = form.write([(name, arguments)])
    ((body, closing),) = one.calls
    ((other, _),) = form.write([(name, {"other": 1})]).calls
    longer = [form.write([(name, {"other": 1, key: value})]).calls[0][0] for key, value in arguments.items()]
    parameters = [text.removeprefix(other) for text in longer]
    return [one.lead, body.removesuffix("".join(parameters)), *parameters, closing, one.tail]


@for_each("form", TAGGED, ids=lambda form: f"{form.family}: {form.name}")
@for_each(("name", "arguments"), [("get_time", {"zone": "Rome"}), ("run_command", ARGUMENTS)])
def test_parts_of_a_call_in_any_order(form: Form, name: str, arguments: dict[str, object]):
    parts = parts_of(form, name, arguments)
    orders = sorted(set(itertools.permutations(parts)))
    wanted = exact([(name, arguments)])
    assert exact(delivered(play("".join(parts), "stop", 1000))) == wanted
    for order in random.Random(4).sample(orders, min(ORDERS, len(orders))):
        for between in ("", "\n"):
            text = between.join(order)
            for size in (len(text), *some([1], text, 3)):
                reply = play(text, "stop", size)
                assert reply.error or exact(delivered(reply)) in ([], wanted), f"{text!r}: {delivered(reply)}"


@for_each("form", TAGGED, ids=lambda form: f"{form.family}: {form.name}")
def test_parameters_that_are_shown_are_none_of_a_call(form: Form):
    """In code, or quoted, before a call and behind it."""
    parameter = parts_of(form, "get_time", {"zone": "Rome"})[2].strip()
    call = form.write([("get_time", {"zone": "Oslo"})]).text()
    for before, behind in (("`", "`"), ("```\n", "\n```"), ('It is "', '", she said.')):
        shown = f"{before}{parameter}{behind}\n\n"
        for text in (shown + call, f"{call}\n\n{shown}"):
            for size in (len(text), *some([1], text, 3)):
                reply = play(text, "stop", size)
                assert delivered(reply) == [("get_time", {"zone": "Oslo"})], text


@for_each("form", TAGGED, ids=lambda form: f"{form.family}: {form.name}")
def test_parameters_of_a_tool_that_was_not_offered_are_of_no_other_call(form: Form):
    if form.name == "parameter for function":
        return  # the name of a tool that was not offered is a parameter's there
    call = ("get_time", {"zone": "Oslo"})
    for name in ("nope", "lift_gate"):
        one = form.write([(name, {"zone": "Rome", "hour": "one"})]).text()
        text = one + form.write([call]).text()
        for size in (len(text), *some((1, 5), text, 3)):
            reply = play(text, "stop", size)
            assert delivered(reply) == [call], text
            assert reply.text.strip() == one.strip()


@for_each("form", TAGGED, ids=lambda form: f"{form.family}: {form.name}")
def test_a_parameter_behind_a_tool_that_was_not_offered_is_not_its_own(form: Form):
    """That call has its end: what comes then is of the one that follows."""
    lead, begin, parameter, closing, tail = parts_of(form, "get_time", {"zone": "Rome"})
    for name, arguments in (("nope", {}), ("nope", {"zone": "Oslo"}), ("lift_gate", {"zone": "Oslo"})):
        foreign = form.write([(name, arguments)]).text()
        for between in ("", "\n", " "):
            text = between.join((foreign, parameter, lead, begin, closing, tail))
            for size in (len(text), *some((1, 5), text, 3)):
                reply = play(text, "stop", size)
                assert reply.error or delivered(reply) == [], f"{text!r}: {delivered(reply)}"


@for_each("form", TAGGED, ids=lambda form: f"{form.family}: {form.name}")
def test_words_that_name_no_tool_do_not_take_a_parameter(form: Form):
    """Behind the marker of all calls, and however the text is cut."""
    lead, begin, parameter, closing, tail = parts_of(form, "get_time", {"zone": "Rome"})
    for words in ("so it is ", "ll>so it is ", "so\n\nit is\n"):
        text = "".join((lead, words, parameter, begin, closing, tail))
        for size in (len(text), *some((1, 3, 7, 20), text, 3)):
            reply = play(text, "stop", size)
            assert reply.error or delivered(reply) == [], f"{size}: {text!r}: {delivered(reply)}"


@for_each(
    "text",
    [
        "<tool_call><parameter=zone>Rome</parameter><function=get_time></tool_call>",
        "<tool_call> call <parameter=zone>Rome</parameter><function=get_time></function></tool_call>",
        "<tool_call>\n\n<parameter=zone>Rome</parameter>\n\nSo:\n\n<function=get_time>\n</function>\n</tool_call>",
        (
            '<｜tool_call_begin｜>function<｜tool_sep｜><steptml:parameter name="zone">Rome</steptml:parameter>'
            '<steptml:invoke name="get_time"></steptml:invoke><｜tool_call_end｜>'
        ),
        "<tool_call>get_time</tool_call> and <arg_key>zone</arg_key>",
    ],
)
def test_words_between(text: str):
    for size in (1, 3, len(text)):
        reply = play(text, "stop", size)
        assert delivered(reply) == [] and reply.failed_calls


def qwen(*lines: str) -> str:
    return "\n".join(("<tool_call>", "<function=run_command>", *lines, "</function>", "</tool_call>"))


UNCLOSED = {
    "two": (
        ("<parameter=command>", "ls", "<parameter=dry_run>", "true", "</parameter>"),
        {"command": "ls", "dry_run": True},
    ),
    "three": (
        ("<parameter=timeout>", "5", "<parameter=dry_run>", "true", "<parameter=command>", "ls", "", "</parameter>"),
        {"timeout": 5, "dry_run": True, "command": "ls\n"},
    ),
    "an empty line": (
        ("<parameter=command>", "ls", "", "<parameter=dry_run>", "true", "</parameter>"),
        {"command": "ls\n", "dry_run": True},
    ),
    "not on a line": (("<parameter=command>", "ls <parameter=dry_run>", "true", "</parameter>"), None),
    "not of the schema": (("<parameter=command>", "ls", "<parameter=x>", "true", "</parameter>"), None),
    "given before": (
        ("<parameter=timeout>", "5", "<parameter=command>", "ls", "<parameter=timeout>", "6", "</parameter>"),
        None,
    ),
    "a tag without its end": (("<parameter=command>", "ls", "<parameter=dry_run", "true", "</parameter>"), None),
    "a tool's name": (("<parameter=command>", "ls", "<parameter=get_time>", "</parameter>"), None),
    "the last one": (
        ("<parameter=command>", "ls", "<parameter=dry_run>", "true"), {"command": "ls", "dry_run": True},
    ),
    "closed by its name": (
        ("<parameter=command>", "ls", "</command>", "<parameter=dry_run>", "true", "</parameter>"), None,
    ),
    "the only one": (("<parameter=command>", "ls", "pwd", ""), {"command": "ls\npwd\n"}),
    "the last one, with a quotation mark": (("<parameter=command>", 'echo "', "</b>"), None),
    "the last one, not on a line": (("<parameter=command>", "ls</function>"), None),
    "quoted, with its ends": (
        ("<parameter=command>", "ls", "<parameter=dry_run>", "true", "</parameter>", "x", "</parameter>"), None,
    ),
}  # fmt: skip


@for_each("case", UNCLOSED)
def test_a_parameter_that_is_not_closed_before_the_next(case: str):
    """Qwen3-Coder's slip: read where the next one begins its line, is one of the tool's, and was not given before."""
    lines, wanted = UNCLOSED[case]
    text = qwen(*lines)
    for size in (1, 3, len(text)):
        reply = play(text, "stop", size)
        assert delivered(reply) == ([("run_command", wanted)] if wanted else []), case
        assert bool(reply.error or reply.failed_calls) is (wanted is None)
    closed = text.rindex("</function>") + len("</function>")
    for cut in some(range(closed), text, 1):
        for end in ("stop", "length", "reset"):
            assert delivered(play(text[:cut], end, 1000)) == [], text[:cut]


@for_each("between", [' {"command": "ls"} get_time', " and then get_time", "[1] x"])
def test_the_id_of_a_mistral_call_is_one_word(between: str):
    """What else stands before the arguments may be another call, or its arguments."""
    text = f'[TOOL_CALLS]run_command[CALL_ID]x{between}[ARGS]{{"command": "pwd"}}'
    for size in (1, 7, len(text)):
        assert delivered(play(text, "stop", size)) == []
