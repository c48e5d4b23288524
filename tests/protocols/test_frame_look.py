"""What is found of one frame is said of no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dragoman.codec.parts.assembly import Assembly
from dragoman.protocols.openai_chat.response.frame_look import FrameLook

FRAMES = (
    b'{"choices": []}',
    b'{"choices": [], "choices": [1]}',
    b'{"choices": [{"arguments": "{}"}], "arguments": {"city": "Rome"}}',
    b'{"choices": [], "tool_calls": [{"name": "ring", "arguments": "{}"}]}',
)


def reported(look: FrameLook, method: str, frame: bytes) -> object:
    assembly = Assembly(lambda: "n" * 24, frozenset({"ring"}))
    getattr(look, method)(frame, assembly)
    return assembly.take(), assembly.calls.has_astray, [call.state for call in assembly.calls.by_id.values()]


LOOKS: dict[str, Callable[[FrameLook, bytes], Any]] = {
    "repeats_key": FrameLook.repeats_key,
    "count_arguments": FrameLook.count_arguments,
    "note_astray": lambda look, frame: reported(look, "note_astray", frame),
    "tell_beside": lambda look, frame: reported(look, "tell_beside", frame),
}


@pytest.mark.parametrize("name", LOOKS)
def test_a_look_at_a_frame_is_that_of_this_frame(name: str) -> None:
    look, of = FrameLook(), LOOKS[name]
    found = [of(FrameLook(), frame) for frame in FRAMES]
    assert any(each != found[0] for each in found), "the frames differ in it"
    for frame in (*FRAMES, *reversed(FRAMES)):
        assert of(look, frame) == of(look, frame) == found[FRAMES.index(frame)]
