"""Pieces that say again what came: of a text, which may be a refrain, and of arguments, each once more. White space
before a call leaves with it, wherever a stream was cut."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import wires
from dragoman import decode
from dragoman.codec.parts.argument_text import ArgumentText
from for_each import for_each
from found_answers import LS, MISTRAL, READ, TOOLS, hermes, qwen
from found_streams import LONG, chunk, sse
from test_written_calls import play_with

ARGUMENTS = '{"command": "ls \\"src\\"", "list": [1, {"a": [true, null]}], "timeout": 5}'
#: A text of which more comes than is kept to be compared.
ALIKE = "".join(f"{number}. Row, row your boat, gently down the stream of verse {number}.\n" for number in range(1, 6))


def cut(text: str, places: list[int]) -> list[str]:
    ends = sorted({place % len(text) for place in places} | {0, len(text)})
    return [text[start:end] for start, end in itertools.pairwise(ends)]


def said(pieces: list[str]) -> str:
    return decode(sse([*(chunk(content=piece) for piece in pieces), chunk("stop")]), "openai-chat").text


PLACES = st.lists(st.integers(1, 500), min_size=3, max_size=12)


@given(PLACES, st.integers(0, 20), st.sampled_from(["", " And more."]))
def test_a_text_that_one_piece_says_again_is_text_since_it_may_be_a_refrain(places: list[int], at: int, more: str):
    pieces = cut(LONG, places)
    at = max(3, at % (len(pieces) + 1))
    again = "".join(pieces[:at]) + more
    if len(pieces) > 3:
        assert said([*pieces[:at], again, *pieces[at:]]) == "".join([*pieces[:at], again, *pieces[at:]])


@given(PLACES, st.integers(130, len(ALIKE) - 1), st.text("xyz .", min_size=200, max_size=300))
def test_a_piece_that_begins_as_a_long_text_did_and_says_something_else_is_whole(
    places: list[int], at: int, other: str
):
    pieces, again = cut(ALIKE[:at], places), ALIKE[:129] + other
    if len(pieces) > 3:
        assert said([*pieces, again]) == ALIKE[:at] + again


@given(st.lists(st.sampled_from(["a", "ab", "Row, row, ", "your boat.\n", "6", "ha "]), min_size=1, max_size=30))
def test_small_pieces_are_what_they_seem(pieces: list[str]):
    if not any(second.startswith(first) for first, second in itertools.pairwise(pieces[:5])):
        assert said(pieces) == "".join(pieces)


@given(PLACES, st.lists(st.booleans(), min_size=14, max_size=14))
def test_arguments_that_each_piece_says_again_are_one_object(places: list[int], twice: list[bool]):
    ends = itertools.accumulate(map(len, cut(ARGUMENTS, places)))
    text = ArgumentText()
    for end, is_twice in zip(ends, twice, strict=False):
        for _ in range(1 + is_twice):
            text.add(ARGUMENTS[:end])
    settled = text.settle(proven=True)
    assert settled.text is None or json.loads(settled.text) == json.loads(ARGUMENTS)


@given(
    st.lists(
        st.sampled_from(["\n", "\n\n", " ", "\r\n", "I look.", hermes(LS), qwen(*LS), MISTRAL, "</think>", "<think>"]),
        min_size=1,
        max_size=5,
    ),
    st.integers(1, 40),
)
def test_white_space_around_calls_and_thinking_does_not_depend_on_cuts(parts: list[str], size: int):
    text = "".join(parts)
    whole, cut_up = play_with(TOOLS, text, "stop", len(text)), play_with(TOOLS, text, "stop", size)
    assert (whole.text, whole.thinking) == (cut_up.text, cut_up.thinking)
    assert [call.arguments for call in whole.tool_calls] == [call.arguments for call in cut_up.tool_calls]


def messages(start: str, pieces: list[str], kind: str) -> str:
    key = kind.removesuffix("_delta")
    block = [wires.block_start({"type": key, key: start})]
    block += [wires.block_delta({"type": kind, key: piece}) for piece in pieces]
    frames = wires.messages_stream(*block, wires.block_stop(), reason="end_turn")
    reply = decode(wires.body_of("anthropic-messages", frames), "anthropic-messages")
    assert reply.error is None
    return reply.text if key == "text" else reply.thinking


@given(PLACES, st.sampled_from(["", " And more."]), st.integers(25, len(LONG)), st.sampled_from(["text", "thinking"]))
def test_the_text_of_a_start_that_its_deltas_say_again_counts_once(places: list[int], more: str, size: int, key: str):
    assert messages(LONG[:size], cut(LONG + more, places), f"{key}_delta") == LONG + more


@given(PLACES, st.integers(25, len(LONG)), st.integers(0, 80), st.sampled_from(["", "!", " It goes on."]))
def test_deltas_that_begin_as_the_start_of_their_text_and_go_on_otherwise_are_new(
    places: list[int], size: int, again: int, other: str
):
    said = LONG[: min(again, size - 1)] + other
    if said and not LONG[:size].startswith(said):
        assert messages(LONG[:size], cut(said, places), "text_delta") == LONG[:size] + said
    assert messages(LONG[:size], [LONG[:10]], "text_delta") == LONG[:size] + LONG[:10]  # its end comes before the rest


@given(PLACES, st.integers(0, 12), st.randoms(use_true_random=False))
def test_deltas_behind_the_end_of_their_text_count_once_in_any_order(places: list[int], at: int, chance: random.Random):
    pieces = [(number, piece) for number, piece in enumerate(cut(LONG, places))]
    at = at % len(pieces)
    late = pieces[at:]
    chance.shuffle(late)
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    deltas = [{"type": "response.output_text.delta", **place, "delta": piece} for _, piece in (*pieces[:at], *late)]
    item = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    done = {"type": "response.output_text.done", **place}
    frames = [wires.item_added(item), *deltas[:at], {**done, "text": LONG}, *deltas[at:]]
    whole = {**item, "content": [{"type": "output_text", "text": LONG}], "status": "completed"}
    reply = decode(
        wires.body_of("openai-responses", wires.responses_stream(*frames, wires.item_done(whole), output=[whole])),
        "openai-responses",
    )
    assert reply.text == LONG and reply.error is None


#: Pieces the last of which tells all text so far once more, and is short or goes on, with calls in them.
REFRAINS = (["[now()]", "[now()]"], [hermes(LS), hermes(LS) + hermes(READ)],
    [f"Now:\n{hermes(LS)}", f"Now:\n{hermes(LS)}\nThat is all."])  # fmt: skip


@for_each("pieces", REFRAINS)
def test_calls_that_the_end_doubles_run_in_no_protocol(pieces: list[str]):
    chats = [chunk(content=piece) for piece in pieces]
    chats[-1]["choices"][0]["finish_reason"] = "stop"
    candidates: list[dict[str, Any]] = [{"content": {"parts": [{"text": piece}]}} for piece in pieces]
    candidates[-1]["finishReason"] = "STOP"
    geminis = [{"candidates": [candidate]} for candidate in candidates]
    for protocol, frames in (("openai-chat", chats), ("gemini-generate", geminis)):
        reply = decode(wires.body_of(protocol, frames), protocol, tools=TOOLS)
        assert reply.error is not None or (not reply.tool_calls and reply.failed_calls), (protocol, reply)
