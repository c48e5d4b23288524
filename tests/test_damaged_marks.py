"""A call whose marks or keys are damaged, or which closes too early, in every form: what is delivered is what was
meant, or nothing is.

One character is missing, comes twice or has changed places with the next, or what closes the call stands somewhere in
it. Values stay as they are: what is damaged beside one may be a mark of its own.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from dragoman import _json
from dragoman.types import Tool
from for_each import for_each
from profiles import IS_SOAK, some
from rescue_forms import FORMS, Calls, Form, Written
from test_written_calls import delivered, exact, play_with

TEXT, NUMBER, SWITCH = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
OPTIONS = {"type": "object", "properties": {"mode": NUMBER, "owner": TEXT}}
#: Tools whose arguments are required, optional alone, and none.
SCHEMAS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "run_command": ({"command": TEXT, "dry_run": SWITCH, "timeout": NUMBER}, ("command",)),
    "write_file": (
        {"path": TEXT, "content": TEXT, "options": OPTIONS, "tags": {"type": "array", "items": TEXT}},
        ("path", "content"),
    ),
    "get_time": ({"zone": TEXT}, ()),
    "find_files": ({"pattern": TEXT, "limit": NUMBER, "deep": SWITCH}, ()),
    "ping": ({}, ()),
    "add": ({"x": NUMBER, "y": NUMBER}, ("x", "y")),
}
TOOLS = tuple(
    Tool(name, "", _json.raw({"type": "object", "properties": properties, "required": list(required)}))
    for name, (properties, required) in SCHEMAS.items()
)
MEANT: Calls = [
    ("run_command", {"command": "alpha", "timeout": 77}),
    ("write_file", {"path": "alpha", "content": "omega", "options": {"mode": 88, "owner": "delta"}, "tags": ["sigma"]}),
    ("get_time", {"zone": "Rome"}),
    ("find_files", {"pattern": "alpha", "limit": 77, "deep": True}),
    ("find_files", {"limit": 77}),
    ("ping", {}),
    ("add", {"x": 77, "y": 88}),
]
VALUES = ("alpha", "omega", "delta", "sigma", "Rome", "77", "88", "True", "true")
#: A tool with an argument more, which the calls before a tool's answer lack.
FINDING = {"type": "object", "properties": {**SCHEMAS["find_files"][0], "zone": TEXT}}
#: Places in each call of each form; all of them in `make soak`.
SAMPLE = 10_000 if IS_SOAK else 1


def places(text: str) -> list[int]:
    """Places of marks and keys: none in a value, or right beside one."""
    starts = [(at, value) for value in VALUES for at in range(len(text)) if text.startswith(value, at)]
    beside = {place for at, value in starts for place in range(at - 2, at + len(value) + 2)}
    return [place for place in range(len(text)) if place not in beside]


def damaged(written: Written, place: int) -> Iterator[str]:
    """All that is done at a place."""
    text = written.text()
    yield text[:place] + text[place + 1 :]
    yield text[:place] + text[place] + text[place:]
    yield text[:place] + text[place : place + 2][::-1] + text[place + 2 :]
    ends = [closing.strip() for _, closing in written.calls if closing.strip()]
    for before in ("", "}", "}}", ")", "{}") if place > len(written.lead) else ():
        yield from (text[:place] + before + end + text[place:] for end in ("", *ends))


@for_each("form", FORMS, ids=lambda form: f"{form.family}: {form.name}")
def test_what_is_delivered_is_what_was_meant(form: Form) -> None:
    draw = random.Random(form.family + form.name)
    for call in MEANT:
        written = form.write([call])
        where = places(written.text())
        found = (text for place in draw.sample(where, min(SAMPLE, len(where))) for text in damaged(written, place))
        for text in some(found, written.text(), 1):
            seen = exact(delivered(play_with(TOOLS, text, "stop", len(text))))
            assert seen in ([], exact([call])), f"{text!r}: {seen}"


OPTIONAL = ("get_time", {"zone": "Rome"})


@for_each("form", FORMS, ids=lambda form: f"{form.family}: {form.name}")
def test_an_empty_call_before_an_object_with_its_arguments_fails(form: Form) -> None:
    if form.where == "message":
        return
    empty = form.write([("get_time", {})]).text()
    for joint in ("", " ", "\n", ", "):
        for rest in ('{"zone": "Rome"}', '"zone": "Rome"}'):
            text = f"{empty.rstrip()}{joint}{rest}"
            for size in (len(text), *some([1], text, 3)):
                assert delivered(play_with(TOOLS, text, "stop", size)) == [], text


@for_each("form", FORMS, ids=lambda form: f"{form.family}: {form.name}")
def test_words_behind_an_empty_call_leave_it(form: Form) -> None:
    if form.where == "message":
        return
    text = form.write([("get_time", {})]).text()
    for words in ("Done.", "zonal: no.", "It took no zone: none was needed.", "[Here](x) it is.", "<b>Done</b>"):
        for size in (1000, *some([1], text + words, 3)):
            assert delivered(play_with(TOOLS, f"{text.rstrip()}\n{words}", "stop", size)) == [("get_time", {})], words


#: What a server that does not stop in time lets through behind a call.
ANSWERS = [
    '<tool_response>\n{"zone": "Rome"}\n</tool_response>', "<function_results>\nzone=1)\n</function_results>",
    '<|im_end|>\n<|im_start|>user\n{"zone": "Rome"}', '<|observation|>\n{"zone": "Rome"}',
]  # fmt: skip
#: Words that name an argument, behind a closing tag.
NAMING = (
    "zone: it's set :)", "zone: none ;-)", "zone: first\n1) one\n2) two", "zone: see `f(x})`", "zone: [x](y) :)",
    '<input name="zone">', '<a name="zone">x</a>', "zone: <b>x</b>, </i>", "zone: C:) drive", "zone=x :)",
    "zone: Rome (Italy)", "zone = [none]</s>", "[zone: any](x), {zone}", "zone: <b>Rome</b>",
)  # fmt: skip


@for_each("form", FORMS, ids=lambda form: f"{form.family}: {form.name}")
def test_a_tools_answer_behind_a_call_leaves_it(form: Form) -> None:
    if form.where == "message":
        return
    call = ("find_files", {"pattern": "alpha", "limit": 77})
    tools = (*TOOLS[:3], Tool("find_files", "", _json.raw(FINDING)))
    text = form.write([call]).text().rstrip()
    for answer in (*ANSWERS, *(NAMING if text.endswith(">") else ())):
        for size in (len(text) + len(answer) + 1, *some([1], text + answer, 3)):
            assert delivered(play_with(tools, f"{text}\n{answer}", "stop", size)) == [call], answer


@for_each(
    "arguments",
    [
        {"type": "object", "properties": {"zone": {"type": "string"}}},
        {"zone": "..."}, {"zone": "…"}, {"zone": "<zone>"}, {"zone": "{zone}"},
    ],
)  # fmt: skip
def test_what_shows_how_a_call_is_written_is_none(arguments: dict[str, Any]) -> None:
    for form in FORMS:
        text = form.write([("get_time", arguments)]).text()
        assert delivered(play_with(TOOLS, text, "stop", len(text))) == [], text


@for_each("value", ["string", "<b>zone</b>", "a...", "<zone> is wet", "{}", "> zone", "</zone>"])
def test_a_value_that_looks_like_it_is_one(value: str) -> None:
    text = "<tool_call>" + json.dumps({"name": "get_time", "arguments": {"zone": value}}) + "</tool_call>"
    assert delivered(play_with(TOOLS, text, "stop", len(text))) == [("get_time", {"zone": value})]


@for_each(
    "value", ["ag_value>a", "rg_value>a", "<arg_valu>a", "a</arg_valu", "a</rg_value>", "a</arg_val", "a</agr_value>"]
)
def test_a_value_with_a_piece_of_its_tags_is_none(value: str) -> None:
    text = f"<tool_call>get_time<arg_key>zone</arg_key><arg_value>{value}</arg_value></tool_call>"
    assert delivered(play_with(TOOLS, text, "stop", len(text))) == []


@for_each("value", ["<value>a</value>", "<args_value>a</args_value>", "a > b", "a</b>", "</", "x </a>"])
def test_tags_of_a_value_are_its_own(value: str) -> None:
    text = f"<tool_call>get_time<arg_key>zone</arg_key><arg_value>{value}</arg_value></tool_call>"
    assert delivered(play_with(TOOLS, text, "stop", len(text))) == [("get_time", {"zone": value})]


@for_each("value", ['type="text">', 'class="a">b</a>', 'name="x">', 'href="/a">b\n', "    ...\n", " ..."])
def test_a_piece_of_html_or_code_is_a_value(value: str) -> None:
    call = ("get_time", {"zone": value})
    for form in FORMS:
        if form.closes == "tag" and not form.trims and not any(bad in value for bad in form.never):
            text = form.write([call]).text()
            assert delivered(play_with(TOOLS, text, "stop", len(text))) == [call], text


def test_a_schema_is_a_value_where_any_object_is() -> None:
    tool = Tool("save", "", _json.raw({"type": "object", "properties": {"schema": {"type": "object"}}}))
    call = ("save", {"schema": {"type": "object", "properties": {"zone": {"type": "string"}}}})
    for form in FORMS:
        if form.family != "minimax-m3":  # it tells no types
            text = form.write([call]).text()
            assert delivered(play_with((tool,), text, "stop", len(text))) == [call], text


@for_each(
    "more",
    [
        {"anyOf": [{"required": ["path"]}, {"properties": {"paths": TEXT}, "required": ["paths"]}]},
        {"allOf": [{"$ref": "#/$defs/More"}]},
        {"if": {"required": ["path"]}, "then": {}, "else": {"properties": {"paths": TEXT}}},
        {"patternProperties": {"^p": TEXT}},
    ],
    ids=["anyOf", "allOf", "else", "patternProperties"],
)
def test_keys_that_a_part_of_the_schema_declares_are_known(more: dict[str, Any]) -> None:
    schema = {
        "type": "object",
        "$defs": {"More": {"properties": {"paths": TEXT}}},
        "properties": {"path": TEXT},
        **more,
    }
    for form in FORMS:
        calls: Calls = [("search", {"paths": "src"})]
        text = form.write(calls).text()
        told = play_with((Tool("search", "", _json.raw(schema)),), text, "stop", len(text))
        assert exact(delivered(told)) == exact(calls), form


@for_each(
    "value",
    [
        "<[CDATA[<b>x</b>]]>", "![CDATA[x]]>", "<!CDATA[<b>x</b>]]", "><![CDATA[<b>x</b>]]>", "<![CDAT[<b>x</b>]]>",
        "x]]>",
    ],
)  # fmt: skip
def test_a_value_with_a_piece_of_its_sections_marks_is_none(value: str) -> None:
    text = f'<function name="get_time"><param name="zone">{value}</param></function>'
    for size in (len(text), 1):
        assert delivered(play_with(TOOLS, text, "stop", size)) == []


@for_each("kind", ["striing", "sting", "text", "str"])
def test_a_type_that_nobody_knows_is_damaged(kind: str) -> None:
    for form in FORMS:
        written = form.write([("get_time", {"zone": "5"})]).text()
        text = written.replace("arg_type>string<", f"arg_type>{kind}<").replace('type="string"', f'type="{kind}"')
        if text != written:
            assert delivered(play_with(TOOLS, text, "stop", len(text))) == [], text


@for_each("value", ['type="string">x', 'string="true">', "<para>x</para", "<", "</", "a <"])
def test_the_rest_of_another_familys_tag_is_a_value(value: str) -> None:
    call = ("get_time", {"zone": value})
    for form in FORMS:
        if form.family in ("qwen-xml", "seed-oss", "glm", "hunyuan", "longcat"):
            text = form.write([call]).text()
            assert delivered(play_with(TOOLS, text, "stop", len(text))) == [call], text


@for_each("text", ["''alpha'", '""alpha"', "'a 'b c'", "'a' b' c' d'"])
def test_an_odd_quotation_mark_in_a_text_of_python_has_two_readings(text: str) -> None:
    written = f"<|python_start|>[get_time(zone={text})]<|python_end|>"
    for size in (len(written), 1):
        assert delivered(play_with(TOOLS, written, "stop", size)) == [], written


#: A call whose brackets closed early, with the token of a turn in the rest of its value, and a turn.
TURNS = ("<|start|>user", "<|im_start|>user b", "<|start_header_id|>user ", "<start_of_turn>users")


@for_each("form", [form for form in FORMS if form.where == "anywhere"], ids=lambda form: form.family)
def test_a_turns_token_in_a_value_ends_no_look(form: Form) -> None:
    text = form.write([("run_command", {"command": "alpha", "timeout": 77})]).text()
    early = form.write([("run_command", {"command": "alpha"})]).calls[0][0]
    if form.closes == "body" and '", "timeout' in text:
        for turn in TURNS:
            written = early + turn + text[text.index('", "timeout') :]
            for size in (len(written), 5):
                reply = play_with(TOOLS, written, "stop", size)
                assert reply.error is not None or delivered(reply) == [], written


def test_the_rest_of_a_call_in_parentheses_is_no_word() -> None:
    for rest in ('zone: "Rome")', 'zone: ["Rome"])', 'zone:"Rome", deep: {"a": 1})'):
        text = f"<|tool_call>call:get_time()<tool_call|> {rest}<tool_call|>"
        for size in (len(text), 1):
            assert delivered(play_with(TOOLS, text, "stop", size)) == [], text
