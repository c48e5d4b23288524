"""Which call a result answers; what the small modules of requests promise."""

import pytest

from dragoman import _json
from dragoman.codec.json_fields import read_body, read_count, read_number, read_texts
from dragoman.codec.parts.history_call_ids import CallIds, made_id, parse_paired
from dragoman.codec.timestamps import parse_time, render_time
from dragoman.errors import WireError
from dragoman.events import Deviation
from for_each import for_each


def pairing() -> CallIds:
    calls = CallIds([])
    for number, (id, name) in enumerate([("", "a"), ("id2", "b"), ("", "a")]):
        calls.add_call(id, name, turn=1, number=number)
    return calls


def test_made_ids_have_the_form_of_all_others_and_never_collide():
    ids = {made_id(turn, number) for turn in range(200) for number in range(200)}
    assert len(ids) == 40_000
    assert {(len(id), id[:5], id[5:].isalnum()) for id in ids} == {(29, "call_", True)}


@pytest.mark.parametrize(("id", "name", "expected"), [
    ("id2", "", ("id2", "b")), ("", "b", ("id2", "b")), ("", "a", (made_id(1, 0), "a")), ("", "", (made_id(1, 0), "a")),
    ("unknown", "a", (made_id(1, 0), "a")), ("", "c", (made_id(1, 0), "a")),
])  # fmt: skip
def test_a_result_is_paired_by_id_then_name_then_place(id: str, name: str, expected: tuple[str, str]):
    assert pairing().add_result(id, name) == expected


def test_each_call_is_answered_once():
    calls = pairing()
    assert [calls.add_result("", "a")[0] for _ in range(2)] == [made_id(1, 0), made_id(1, 2)]
    assert calls.add_result("", "") == ("id2", "b")
    assert calls.add_result("", "") == ("", "")
    assert calls.add_result("id2", "") == ("id2", "b"), "a result may be sent again"


def test_fields_of_a_body():
    assert read_body(b'{"a":1.50,"b":null}') == {"a": _json.Raw(b"1.50")}
    assert set(read_body(b'{"a":"\xff"}')) == {"a"}
    with pytest.raises(WireError):
        read_body(b"[1]")


def test_numbers_and_texts():
    values = [_json.Raw(text) for text in (b"3", b'"3"', b"3.0", b"true", b'"x"', b"[]")]
    assert [read_count(value) for value in values] == [3, 3, 3, None, None, None]
    assert [read_number(value) for value in values] == [3.0, 3.0, 3.0, None, None, None]
    assert read_texts(_json.Raw(b'["a",1,"b"]')) == ("a", "b")
    assert read_texts(_json.Raw(b'"a"')) == ("a",)
    assert read_texts(None) == ()


@pytest.mark.parametrize(("text", "seconds"), [
    ("1970-01-01T00:01:00Z", 60), ("1970-01-01T00:01:00.999999999Z", 60), ("1970-01-01T02:01:00+02:00", 60),
    ("1970-01-01T00:01:00", 60), ("soon", None), ("", None), (60, None),
])  # fmt: skip
def test_times(text: object, seconds: int | None):
    assert parse_time(text) == seconds
    assert parse_time(render_time(1_750_000_000)) == 1_750_000_000


def test_a_result_of_a_call_that_nobody_made_is_told() -> None:
    deviations: list[Deviation] = []
    ids = CallIds(deviations)
    ids.add_call("id1", "a", turn=0, number=0)
    assert ids.add_result("id1", "a") == ("id1", "a")
    assert deviations == []
    ids.add_call("id2", "a", turn=1, number=0)
    assert ids.add_result("unknown", "a") == ("id2", "a")
    assert [(said.code, said.where) for said in deviations] == [("changed", "messages[].call_id")]


@for_each(("steps", "wanted"), [
    ("+a +b ? a", "b a"), ("+a +b ? ? a b", "- - a b"), ("+a +a ? a", "a a"), ("+a ? +a a", "a a"),
    ("+a x ? +b b", "a - b"), ("+a b +b b", "b b"), ("+a b +b a", "b a"), ("+a x", "a"), ("+a +b x a", "b a"),
    ("+a a +b ?", "a b"), ("+a +b ? b", "a b"), ("+a ? a", "- a"),
])  # fmt: skip
def test_a_call_that_a_result_names_is_left_to_it(steps: str, wanted: str) -> None:
    """Calls (`+`) and results by their ids; `?` has none."""

    def parse(ids: CallIds) -> list[str]:
        found = []
        for turn, step in enumerate(steps.split()):
            if step[0] == "+":
                ids.add_call(step[1:], "look", turn=turn, number=0)
            else:
                found.append(ids.add_result(step.strip("?"), "look")[0])
        return found

    known = {step[1:] for step in steps.split()} | {""}
    assert [id if id in known - {""} else "-" for id in parse_paired(parse, [])] == wanted.split()
