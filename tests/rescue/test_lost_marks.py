"""Values whose brackets, keys or blanks are not what a form writes: refused, or read in one way in every form."""

from __future__ import annotations

from typing import Any

from dragoman import _json
from dragoman.types import Tool
from profiles import some
from rescue_forms import FORMS, dumps
from test_written_calls import delivered, play_with

TEXT, NULL = {"type": "string"}, {"type": "null"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "texts": {"type": "array", "items": TEXT},
        "numbers": {"type": "array", "items": {"type": "integer"}},
        "listed": {"type": ["string", "null"]},
        "chosen": {"anyOf": [TEXT, NULL]},
        "free": {},
    },
}
TAGGED = [form for form in FORMS if form.closes == "tag" and form.where != "message"]
OBJECTS = [
    form for form in FORMS if dumps("b") in form.write([("put", {"free": "b"})]).text() and form.closes == "body"
]
HEADS = [form for form in FORMS if form.family in ("qwen-xml", "seed-oss")]


def ran(text: str) -> list[Any]:
    tools = (Tool("put", "", _json.raw(SCHEMA)),)
    seen = [delivered(play_with(tools, text, "stop", size)) for size in (len(text), *some([1], text, 1))]
    assert seen.count(seen[0]) == len(seen), text
    return seen[0]


def test_a_list_without_its_brackets_is_none() -> None:
    for form in TAGGED:
        for key in ("texts", "numbers"):
            text = form.write([("put", {key: "VALUE"})]).text()
            for value in ('"a", "b"', '"a", "b"]', '["a", "b"', ",[]", ', "a"', '"a",', "[1, 2", "1, 2,"):
                assert ran(text.replace("VALUE", value)) == [], (form.family, key, value)


def test_null_is_read_in_one_way() -> None:
    for form in TAGGED:
        for value in ("null", " null", "null ", "\tnull "):
            seen = [ran(form.write([("put", {key: value})]).text()) for key in ("listed", "chosen")]
            typed = form.name == "typed" or "string=" in form.write([("put", {"free": "b"})]).text()
            assert [list(call[1].values()) for calls in seen for call in calls] == [[value if typed else None]] * 2, (
                form.family,
                value,
            )


def test_braces_around_a_text_are_no_list_where_anything_may_stand() -> None:
    for form in OBJECTS:
        for free in ('{"b"}', '{"b", "c"}'):
            text = form.write([("put", {"free": "VALUE"})]).text()
            assert ran(text.replace(dumps("VALUE"), free)) == [], (form.family, free)


def test_a_colon_behind_an_empty_text_begins_no_text() -> None:
    for form in OBJECTS:
        text = form.write([("put", {"listed": "VALUE"})]).text()
        for value in ('"":"x"', '"" : "x\\\\y"', '"": 5, "free": "z"'):
            assert ran(text.replace(dumps("VALUE"), value)) == [], (form.family, value)


def test_a_bracket_of_a_head_may_be_doubled() -> None:
    for form in HEADS:
        for value in ("x", "> x", "\n>\n"):
            calls = [("put", {"listed": value, "free": "y"})]
            text = form.write(calls).text()
            for head in ("<function=put>", "<parameter=put>", "<parameter=listed>"):
                assert ran(text.replace(f"{head}\n", f"{head}>\n")) == calls, (head, value)


def test_no_item_of_a_list_grows_over_the_next_one() -> None:
    for form in (*OBJECTS, *TAGGED):
        text = form.write([("put", {"texts": ["a", "b", "c"]})]).text()
        for place in (at for at, mark in enumerate(text) if mark == ","):
            seen = ran(text[:place] + "," + text[place:])
            assert seen in ([], [("put", {"texts": ["a", "b", "c"]})]), (form.family, seen)


def test_no_text_holds_the_next_argument_where_tokens_are_lost() -> None:
    for form in FORMS:
        if form.family in ("gemma", "gemma-bare") and form.never:
            quote, text = form.never[0], form.write([("put", {"listed": "a", "free": "b"})]).text()
            for lost in (f"{quote},free:{quote}", f"{quote[1:]},free:{quote[:-1]}"):
                damaged = text.replace(f"{quote},free:{quote}", lost.replace(quote, ""))
                assert ran(damaged) == [], damaged


def test_a_call_without_arguments_in_a_sentence_is_text() -> None:
    for form in TAGGED:
        written = form.write([("put", {})]).text().strip()
        if "\n" not in written and not form.family.startswith("minimax-m3"):
            for text in (f"Write {written} to put it.", f"Take {written}, or do not."):
                assert ran(text) == [], text
            for text in (f"I put it: {written}", f"I put it.\n{written}\nThen I wait."):
                assert ran(text) == [("put", {})], text


def test_a_call_without_arguments_right_behind_another_one_is_not_in_a_sentence() -> None:
    for form in TAGGED:
        written = form.write([("put", {"free": "b"}), ("put", {})]).text()
        if not form.family.startswith("minimax-m3"):
            for text in (written, f"I put it:\n{written}"):
                assert ran(f"{text};") == ran(text), text
