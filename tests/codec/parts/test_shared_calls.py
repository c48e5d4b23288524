"""New ids at an index that is in use, cumulative arguments, glued names: the pairs that contradict each other."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codec.parts.test_call_matching import NORTH, OSLO, PARIS, calls_of, piece, stream
from dragoman.codec.parts.argument_text import ArgumentText
from dragoman.events import Reply, fold
from dragoman.protocols.openai_chat.response.decode import Decoder
from grammar import check

NAME, CITY = "terminal", {"city": "Paris"}


def read(*chunks: list[dict[str, Any]], is_needy: bool = False, finish: str = "tool_calls") -> Reply:
    numbers = itertools.count()
    decoder = Decoder(
        new_id=lambda: f"{next(numbers):024d}", offered_names=frozenset({NAME}), takes_nothing=lambda _: not is_needy
    )
    return fold(check([*decoder.feed(stream(*chunks, finish=finish)), *decoder.close()]))


BOTH = [[piece(0, "a", NAME, "")], [piece(0, "b", NAME, "")]]


def test_a_new_id_before_any_argument_is_a_new_call_where_nothing_fits():
    assert calls_of(read(*BOTH)) == [("a", NAME, {}), ("b", NAME, {})]
    reply = read([piece(0, "a", NAME, "")], [piece(0, "b", NAME, PARIS)])
    assert calls_of(reply) == [("a", NAME, {}), ("b", NAME, CITY)]


def test_a_new_id_before_any_argument_goes_on_where_arguments_must_come():
    reply = read(
        [piece(0, "a", NAME, "")], [piece(0, "b", NAME, PARIS[:4])], [piece(0, "c", NAME, PARIS[4:])], is_needy=True
    )
    assert calls_of(reply) == [("a", NAME, CITY)]


@pytest.mark.parametrize("is_needy", [False, True])
@pytest.mark.parametrize("again", [..., NAME])
def test_ids_in_turns_are_two_calls(is_needy: bool, again: Any):
    deltas = [("a", PARIS[:5]), ("b", OSLO[:5]), ("a", PARIS[5:]), ("b", OSLO[5:])]
    reply = read(*BOTH, *([piece(0, id, again, text)] for id, text in deltas), is_needy=is_needy)
    assert calls_of(reply) == [("a", NAME, CITY), ("b", NAME, NORTH)]


def test_of_two_ids_the_one_without_arguments_fails():
    reply = read(*BOTH, [piece(0, "a", arguments=PARIS)], is_needy=True)
    assert calls_of(reply) == [("a", NAME, CITY)]
    assert [failed.kind for failed in reply.failed_calls] == ["lost"]
    assert calls_of(read(*BOTH, is_needy=True)) == []


def test_a_delta_that_names_none_of_two_calls_runs_neither():
    reply = read(*BOTH, [piece(0, "a", arguments=PARIS[:3])], [piece(0, arguments=PARIS[3:])], is_needy=True)
    assert calls_of(reply) == []
    assert {failed.kind for failed in reply.failed_calls} == {"lost"}


def test_the_id_of_a_third_call_at_the_index_is_its_own():
    third = [piece(0, "z", "ping", "")]
    deltas = ([piece(0, id, arguments=text)] for id, text in (("z", OSLO), ("b", PARIS)))
    reply = read(third, *BOTH, *deltas, is_needy=True)
    assert [call for call in calls_of(reply) if call[0] == "z"] == [("z", "ping", NORTH)]


def test_a_changing_id_is_no_call_when_the_answer_was_cut():
    reply = read([piece(0, "a", NAME, "")], [piece(0, "b", NAME, PARIS)], is_needy=True, finish="length")
    assert calls_of(reply) == []


def test_a_glued_name_is_as_many_calls_as_objects():
    reply = read([piece(0, "a", NAME * 3, PARIS + OSLO + PARIS)])
    assert calls_of(reply) == [("a", NAME, CITY), (None, NAME, NORTH), (None, NAME, CITY)]
    assert [call.name for call in read([piece(0, "a", NAME * 3, PARIS)]).tool_calls] == [NAME * 3]


@pytest.mark.parametrize("with_name", [False, True])
def test_cumulative_arguments_count_once(with_name: bool):
    ends = (1, 4, 9, len(PARIS))
    deltas = [[piece(0, "a", NAME if with_name else ..., PARIS[:end])] for end in ends]
    assert calls_of(read([piece(0, "a", NAME, "")], *deltas)) == [("a", NAME, CITY)]


def values() -> st.SearchStrategy[Any]:
    leaf = st.sampled_from(["", "{", '{"a":', "x}", None, 1])
    return st.recursive(leaf, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner))


@given(value=st.dictionaries(st.sampled_from("ab"), values(), min_size=1), data=st.data())
def test_pieces_and_cumulative_pieces_come_to_the_same(value: dict[str, Any], data: st.DataObject):
    text = json.dumps(value, separators=data.draw(st.sampled_from([(",", ":"), (", ", ": ")])))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(text) - 1), max_size=6)))
    in_turn = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    for pieces in (in_turn, [text[:end] for end in [*cuts, len(text)]]):
        taken = ArgumentText()
        left = "".join(taken.add(piece) for piece in pieces)
        settled = taken.settle(proven=True)
        assert (settled.text, left + settled.delta) == (text, text)


def test_two_readings_of_a_cut_text_are_none():
    taken = ArgumentText()
    for text in ('{"a":', '{"a":1}'):
        taken.add(text)
    assert taken.settle(proven=False).text is None
