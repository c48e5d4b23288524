"""Frames of a stream that come twice, out of their order or in another's place: no call runs that is not proven.

Each frame of a stream of two calls is lost, sent again behind each later one, moved behind it, or swapped with it. Each
call that is delivered by an answer without an error is one that was made; `{}` is nobody's arguments by chance.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from two_calls import CALLS, WIRES, made, read, wire_body
from wires import Frame

#: Streams in which each call has an end of its own, or a reason behind it, and its pieces name it by index or id.
STREAMS = ("openai-chat", "anthropic-messages", "openai-responses", "openai-responses, deltas")


def moved(frames: list[Frame]) -> Iterator[tuple[str, list[Frame]]]:
    for at in range(len(frames)):
        yield f"{at} is lost", frames[:at] + frames[at + 1 :]
        for place in range(at + 1, len(frames)):
            yield f"{at} again at {place}", [*frames[: place + 1], frames[at], *frames[place + 1 :]]
            yield (
                f"{at} moved to {place}",
                [*frames[:at], *frames[at + 1 : place + 1], frames[at], *frames[place + 1 :]],
            )
            swapped = list(frames)
            swapped[at], swapped[place] = swapped[place], swapped[at]
            yield f"{at} for {place}", swapped


@pytest.mark.parametrize("wire", STREAMS)
def test_no_call_is_made_up_of_moved_frames(wire: str) -> None:
    frames, _ = WIRES[wire]()
    tried = 0
    for what, changed in moved(frames):
        reply = read(wire, [wire_body(wire, [json.dumps(frame) for frame in changed])])
        if reply.error is None:
            assert all(call in CALLS for call in made(reply)), (what, made(reply))
            assert len(made(reply)) <= len(CALLS), (what, made(reply))
        tried += 1
    assert tried > 50


def test_a_call_whose_rest_is_in_another_choice_does_not_run() -> None:
    frames, _ = WIRES["openai-chat"]()
    for index in (1, 2, -1):
        frames[0]["choices"][0]["index"] = index
        reply = read("openai-chat", [wire_body("openai-chat", [json.dumps(frame) for frame in frames])])
        assert made(reply) == [] and reply.error is not None


@pytest.mark.parametrize("wire", ["anthropic-messages"])
@pytest.mark.parametrize(("frame", "index"), [(1, 2), (5, 0), (5, 2)])
def test_a_call_whose_pieces_have_another_index_does_not_run(wire: str, frame: int, index: int) -> None:
    frames, _ = WIRES[wire]()
    name = frames[frame]["content_block"]["name"]
    frames[frame]["index"] = index
    reply = read(wire, [wire_body(wire, [json.dumps(one) for one in frames])])
    assert reply.error is not None and name not in [call.name for call in reply.tool_calls if call.arguments == "{}"]


def gemini_pieces(*calls: Frame) -> bytes:
    frames = [{"candidates": [{"content": {"parts": [{"functionCall": call}]}}]} for call in calls]
    end = {"candidates": [{"content": {"parts": [{"text": ""}]}, "finishReason": "STOP"}]}
    return wire_body("gemini-generate", [json.dumps(frame) for frame in [*frames, end]])


START: Frame = {"name": "ring", "willContinue": True}
END: Frame = {}


def piece(name: str, value: str) -> Frame:
    return {"partialArgs": [{"jsonPath": f"$.{name}", "stringValue": value}], "willContinue": True}


@pytest.mark.parametrize(
    "calls",
    [
        [piece("bell", "a"), START, piece("loud", "b"), END],
        [START, piece("bell", "a"), END, piece("loud", "b"), END],
        [{"name": "ring"}, piece("bell", "a"), END],
        [START, END, piece("bell", "a"), END],
        [START, piece("bell", "a"), START, piece("loud", "b"), END],
        [START, piece("bell", "a"), START, END],
        [START, START, piece("bell", "a"), END],
    ],
)
def test_pieces_that_name_no_call_make_none(calls: list[Frame]) -> None:
    reply = read("gemini-generate", [gemini_pieces(*calls)])
    assert reply.error is not None
    assert made(reply) == [] or reply.stop_reason == "error"


def test_a_second_call_of_one_name_is_one_where_its_pieces_say_so() -> None:
    reply = read("gemini-generate", [gemini_pieces(START, piece("bell", "a"), START, piece("bell", "b"), END)])
    assert made(reply) == [("ring", {"bell": "a"}), ("ring", {"bell": "b"})] and reply.error is None
