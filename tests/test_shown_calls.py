"""What shows how a call is written, in a list of tools or with something else in place of a value, is never run; and a
value that looks like it is one where the tool takes it."""

from __future__ import annotations

from typing import Any

from dragoman import _json
from dragoman.types import Tool
from for_each import for_each
from profiles import IS_SOAK, some
from rescue_forms import FORMS, Form
from test_damaged_marks import TOOLS
from test_written_calls import delivered, exact, play_with

LIVE = [form for form in FORMS if form.where == "anywhere"]
IDS = [f"{form.family}: {form.name}" for form in LIVE]
TAGGED = [form for form in LIVE if form.closes == "tag"]
TEXT: dict[str, Any] = {"type": "string", "description": "Where the file is."}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": TEXT,
        "text": TEXT,
        "tags": {"type": "array", "items": TEXT},
        "options": {"type": "object", "properties": {"owner": TEXT, "mode": {"type": "integer"}}},
        "any": {"type": "object"},
    },
}


def ran(schema: dict[str, Any], form: Form, arguments: dict[str, Any]) -> list[str]:
    text = form.write([("put", arguments)]).text()
    seen = [
        delivered(play_with((Tool("put", "", _json.raw(schema)),), text, "stop", size))
        for size in (len(text), *some([5], text, 3))
    ]
    assert seen[0] == seen[-1], text
    return exact(seen[0])


@for_each("bullet", ["- ", "* ", "1. ", "2) ", "  - "])
@for_each("form", LIVE, ids=IDS)
def test_an_item_that_explains_a_tool_is_no_call(form: Form, bullet: str) -> None:
    values = ("the zone, e.g. Rome", "zone", "IANA name (optional)", "string", "<zone>")
    for value in values if IS_SOAK else values[len(form.name + bullet) % 2 :: 2]:
        written = [
            form.write([(name, {key: value.replace("zone", key)})]).text().strip("; \n")
            for name, key in (("get_time", "zone"), ("find_files", "pattern"))
        ]
        text = "My tools:\n" + "".join(f"{bullet}{item}\n" for item in written)
        for size in (len(text), *some([5], text, 3)):
            assert delivered(play_with(TOOLS, text, "stop", size)) == [], text


@for_each("form", LIVE, ids=IDS)
def test_an_item_with_a_value_is_a_call(form: Form) -> None:
    calls = [("get_time", {"zone": "Rome"}), ("find_files", {"pattern": "*.py", "limit": 5})]
    for call in calls:
        text = f"I do this:\n1. {form.write([call]).text().rstrip()}\n"
        assert exact(delivered(play_with(TOOLS, text, "stop", len(text)))) == exact([call]), text


@for_each("form", TAGGED, ids=lambda form: f"{form.family}: {form.name}")
def test_an_item_that_names_a_tool_is_text(form: Form) -> None:
    items = [form.write([(name, {})]).text().replace("\n", "") for name in ("get_time", "ping")]
    text = "My tools:\n" + "".join(f"- {item}\n" for item in items)
    if form.family in ("solar-open2", "minimax-m3", "step3", "kimi-k3", "muse-glimmer"):
        return  # names end with their lines, or a wrapper's tokens stand around them
    for size in (len(text), 5):
        reply = play_with(TOOLS, text, "stop", size)
        assert (delivered(reply), reply.failed_calls, reply.text) == ([], (), text)
    alone = form.write([("ping", {})]).text()
    assert delivered(play_with(TOOLS, f"I look.\n{alone}", "stop", 5)) == [("ping", {})]


@for_each("tag", ['<function name="get_time"/>', '<invoke name="get_time"/>'])
def test_an_element_in_a_sentence_is_text(tag: str) -> None:
    for text in (f"Take {tag}, or {tag.replace('get_time', 'ping')}.", f"- {tag}: the time"):
        for size in (len(text), 3):
            reply = play_with(TOOLS, text, "stop", size)
            assert (delivered(reply), reply.failed_calls, reply.text) == ([], (), text)
    assert delivered(play_with(TOOLS, f"I look.\n{tag}", "stop", 3)) == [("get_time", {})]


SHOWN: list[dict[str, Any]] = [
    {"path": "...", "text": "..."}, {"path": "/path/to/file", "text": "<text>"}, {"path": "<path>", "tags": ["..."]},
    {"path": "{path}", "options": {"owner": "{owner}", "mode": 1}}, {"path": "a", "text": "Where the file is."},
    {"path": "a", "options": {"type": "object", "properties": {"owner": {"type": "string"}}}},
    {"path": "a", "text": {"type": "string"}},
]  # fmt: skip
VALUES: list[dict[str, Any]] = [
    {"path": "...", "text": "…"}, {"path": "a", "any": {"text": "..."}}, {"path": "a.py", "text": "..."},
    {"path": "a.jinja", "text": "{{text}}"}, {"path": "a.html", "text": "<text>"}, {"path": "a", "tags": ["b", "..."]},
    {"path": "a.j2", "options": {"owner": "{owner}", "mode": 1}},
    {"path": "a", "any": {"type": "string", "description": "A name."}}, {"path": "a", "text": "<path>"},
    {"path": "a", "any": {"type": "object", "properties": {"a": {"type": "string"}}}}, {"path": "a", "text": "a..."},
]  # fmt: skip


@for_each("form", LIVE, ids=IDS)
def test_a_place_behind_values_makes_no_call(form: Form) -> None:
    for arguments in SHOWN:
        if form.closes == "body" or not isinstance(arguments.get("text"), dict):  # between tags it is a text
            assert ran(SCHEMA, form, arguments) == [], arguments


@for_each("form", LIVE, ids=IDS)
def test_a_value_where_the_tool_takes_it_makes_one(form: Form) -> None:
    for arguments in VALUES:
        assert ran(SCHEMA, form, arguments) == exact([("put", arguments)]), arguments


FREE: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"type": "object"}, {"type": "string", "description": "A name."}),
    ({"type": "object"}, {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
    ({"type": "object", "properties": {}}, {"type": "array", "items": {"type": "string"}}),
    ({"type": "object", "properties": {"title": TEXT}, "additionalProperties": True}, {"title": "A", "type": "string"}),
]  # fmt: skip


@for_each("form", [form for form in LIVE if form.closes == "body"], ids=lambda form: form.family)
def test_a_schema_is_what_free_arguments_may_be(form: Form) -> None:
    for schema, arguments in FREE:
        assert ran(schema, form, arguments) == exact([("put", arguments)]), (schema, arguments)
    for schema, arguments in (
        ({"type": "object", "properties": {}}, {"type": "object", "properties": {}}),
        ({"type": "object"}, {"type": "object"}),
        (SCHEMA | {"additionalProperties": True}, {"type": "object", "properties": {"path": TEXT}}),
    ):
        assert ran(schema, form, arguments) == [], (schema, arguments)
