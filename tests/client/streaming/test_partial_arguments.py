"""The live view of arguments that are still coming."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.client.streaming.partial_arguments import PartialArguments
from growth import calls_made

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(), JSON)


def read(*pieces: str) -> PartialArguments:
    partial = PartialArguments()
    for piece in pieces:
        partial.feed(piece)
    return partial


@given(OBJECTS, st.booleans(), st.sampled_from([None, 2]))
def test_the_whole_text_gives_the_whole_object_however_it_is_cut(value, ascii_only, indent):
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert read(text).values() == value
    assert read(*text).values() == value


@given(OBJECTS, st.data())
def test_every_prefix_is_an_object_that_only_grows(value, data):
    text = json.dumps(value)
    cut = data.draw(st.integers(0, len(text)))
    seen = read(*text[:cut]).values().to_dict()
    assert set(seen) <= set(value)
    for key in list(seen)[:-1]:
        assert seen[key] == value[key]


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("", {}),
        ("{", {}),
        ('{"a', {}),
        ('{"a":', {}),
        ('{"a": "x', {"a": "x"}),
        ('{"a": "x\\', {"a": "x"}),
        ('{"a": "\\ud83d', {"a": ""}),
        ('{"a": "\\ud83d\\ude00', {"a": "\N{GRINNING FACE}"}),
        ('{"a": "\\ud83d!', {"a": "\ufffd!"}),
        ('{"a": 12', {}),
        ('{"a": 12,', {"a": 12}),
        ('{"a": [1, {"b": "c', {"a": [1, {"b": "c"}]}),
        ('{"a": [', {"a": []}),
        ('{"a": tru', {}),
        ('{"a": true}', {"a": True}),
    ],
)
def test_what_is_seen_of_a_prefix(text, seen):
    assert read(text).values() == seen
    assert read(*text).values() == seen


@given(st.text(alphabet='{}[]",:\\u0d8a1e-+. tf\n'))
def test_no_text_makes_it_fail(text):
    view = read(*text).values()
    assert isinstance(view.to_dict(), dict)


def test_the_view_is_live_and_read_only():
    partial = PartialArguments()
    view = partial.values()
    partial.feed('{"path": "a.p')
    assert view["path"] == "a.p"
    partial.feed('y", "lines": [1')
    assert view["path"] == "a.py"
    assert list(view) == ["path", "lines"]
    with pytest.raises(TypeError):
        view["path"] = "b"


def test_a_look_at_every_delta_costs_what_the_delta_costs():
    def read_and_look(deltas: int) -> None:
        partial = PartialArguments()
        partial.feed('{"items":[')
        for number in range(1000, 1000 + deltas):
            partial.feed('{"n":%d,"t":"abc"},' % number)
            len(partial.values()["items"])

    assert calls_made(lambda: read_and_look(2_000)) <= 1.01 * 4 * calls_made(lambda: read_and_look(500))
