"""Responses: thinking that comes as reasoning and as its summary counts once, and what either says alone is never lost.
A message whose end divides its texts otherwise than its deltas did is told once, too."""

from __future__ import annotations

import itertools
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dragoman import decode
from dragoman.protocols.openai_responses.response.item import Echo

START = {"type": "response.created", "response": {"id": "r", "object": "response", "model": "m", "output": []}}
END = {"type": "response.completed", "response": {"id": "r", "object": "response", "status": "completed", "output": []}}
PIECES = st.lists(st.sampled_from(["a", "b", "ab", "aba", " ", "bb"]), min_size=1, max_size=8)


def read(*rows: Any) -> Any:
    """The reply of a stream."""
    body = "".join(f"data: {json.dumps(row)}\n\n" for row in (START, *rows, END))
    return decode(body.encode(), "openai-responses")


def piece(kind: str, text: str) -> Any:
    """A delta of reasoning, or of its summary."""
    place = "summary_index" if "summary" in kind else "content_index"
    return {"type": f"response.{kind}.delta", "item_id": "rs", "output_index": 0, place: 0, "delta": text}


def mixed(one: list[Any], other: list[Any], order: list[bool]) -> list[Any]:
    """Both lists, each in its order."""
    one, other, rows = [*one], [*other], []
    for is_one in order:
        if (one if is_one else other) or not (one or other):
            rows += (one if is_one else other)[:1]
            del (one if is_one else other)[:1]
    return [*rows, *one, *other]


def divided(text: str, cuts: list[int]) -> list[str]:
    """A text in pieces."""
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[begin:end] for begin, end in itertools.pairwise(places)]


@given(PIECES, st.lists(st.integers(0, 40), max_size=6), st.lists(st.booleans(), max_size=24))
def test_what_is_said_twice_counts_once(pieces: list[str], cuts: list[int], order: list[bool]):
    text = "".join(pieces)
    added = {"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "rs"}}
    own = [piece("reasoning_text", one) for one in pieces]
    again = [piece("reasoning_summary_text", one) for one in divided(text, cuts)]
    summary, content = [{"type": "summary_text", "text": text}], [{"type": "reasoning_text", "text": text}]
    item = {"type": "reasoning", "id": "rs", "summary": summary, "content": content}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    for rows in (mixed(own, again, order), mixed(again, own, order)):
        assert read(added, *rows, done).thinking == text
        assert read(added, *rows).thinking == text


@given(PIECES, PIECES, st.lists(st.booleans(), max_size=16))
def test_what_only_one_says_is_told(one: list[str], other: list[str], order: list[bool]):
    echo, told = Echo(), {"summary": "", "reasoning": ""}
    rows = mixed([("summary", text) for text in one], [("reasoning", text) for text in other], order)
    for group, text in rows:
        for key, said in echo.take((group, 0), text):
            told[key[0]] += said
    rest, _ = echo.end()
    for key, said in rest:
        told[key[0]] += said
    first, last = (one, other) if rows[0][0] == "summary" else (other, one)
    again = "reasoning" if rows[0][0] == "summary" else "summary"
    assert told[rows[0][0]] == "".join(first)
    whole, base = "".join(last), "".join(first)
    if base.startswith(whole):
        assert told[again] in ("", whole)
    elif whole.startswith(base):
        assert told[again] in (whole[len(base) :], whole)
    else:
        assert told[again] == whole


@given(PIECES, st.lists(st.integers(0, 40), max_size=4), st.lists(st.integers(0, 2), min_size=8, max_size=8))
def test_a_message_divided_otherwise_is_told_once(pieces: list[str], cuts: list[int], places: list[int]):
    text = "".join(pieces)
    item = {"type": "message", "id": "m", "role": "assistant"}
    places = sorted(places)
    rows = [
        {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": place, "delta": one}
        for one, place in zip(pieces, places, strict=False)
    ]
    content = [{"type": "output_text", "text": one, "annotations": []} for one in divided(text, cuts)]
    added = {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}}
    done = {"type": "response.output_item.done", "output_index": 0, "item": {**item, "content": content}}
    assert read(added, *rows, done).text == text
