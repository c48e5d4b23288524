"""When a call is told while its answer comes: it is held only where what comes may make it another one."""

from __future__ import annotations

from typing import Any

from cases import counter
from dragoman.events import ToolCallEnd, ToolCallFailed, ToolCallStart
from dragoman.protocols import PROTOCOLS
from for_each import for_each
from found_streams import LS_TEXT, Frame, chunk, one, piece, sse
from found_streams_elsewhere import closed, ended, start, used

FENCED = f"```json\n{LS_TEXT}\n```"


def early(frame: Frame) -> Frame:
    """A chunk with the reason why the answer ends, as some servers write it on each."""
    return {**frame, "choices": [{**frame["choices"][0], "finish_reason": "tool_calls"}]}


def told(protocol: str, frames: list[Frame | str], kind: type[Any]) -> list[int]:
    """The places of the frames that tell such an event."""
    decoder = PROTOCOLS[protocol].decoder(new_id=counter(), offered_names=frozenset({"bash"}))
    return [
        at for at, frame in enumerate(frames) for event in decoder.feed(sse([frame], end="")) if isinstance(event, kind)
    ]


@for_each(
    "protocol, frames, kind, places",
    [
        ("openai-chat", [early(chunk(content="")), early(piece(0, "c1", "bash", args="")), early(piece(args=LS_TEXT))],
         ToolCallStart, [1]),
        ("openai-chat", [early(one()), piece(1, "c2", "bash", args=""), piece(1, args="{"), chunk("tool_calls")],
         ToolCallStart, [0]),  # it may tell the first one again
        ("anthropic-messages", [start(), ended("tool_use"), *used(0)], ToolCallStart, [2]),
        ("anthropic-messages", [start(), *used(0, args=FENCED), *used(1, id="t2")], ToolCallFailed, [3]),
        ("anthropic-messages", [start(), *used(0, args=LS_TEXT[:9])[:-1], closed(0), *used(1, id="t2")],
         ToolCallEnd, [6]),  # the rest may come behind its stop
    ],
)  # fmt: skip
def test_a_call_is_told_as_soon_as_it_is_known(
    protocol: str, frames: list[Frame | str], kind: type[Any], places: list[int]
):
    assert told(protocol, frames, kind) == places
