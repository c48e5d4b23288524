"""Texts of a wire whose blocks take turns leave in the order in which they opened, in every protocol."""

from __future__ import annotations

import itertools
from typing import Any

import wires
from dragoman import _json, decode
from dragoman.pipe import Reader
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, stages_for
from dragoman.types import Tool
from for_each import for_each
from translating import Pipe

TOOLS = (Tool("look", schema=_json.raw({"type": "object", "properties": {"shelf": {"type": "integer"}}})),)
#: Turns of blocks: pieces of texts, some of which may begin a call for as long as they are alone.
TURNS = [
    [(0, "A"), (1, "X"), (0, "B"), (1, "Y")],
    [(0, "{"), (1, "X"), (0, "}"), (1, "Y")],
    [(0, "<tool"), (1, "<"), (0, "box>"), (1, "b>")],
    [(1, "X"), (0, "`"), (2, "["), (0, "A"), (1, "Y"), (2, "1]")],
    [(0, "<think"), (1, "X"), (0, "ing of it"), (1, "Y")],
]


def wire(turns: list[tuple[int, str]], *, call: bool) -> bytes:
    blocks = sorted({index for index, _ in turns})
    frames = [wires.block_start({"type": "text", "text": ""}, index) for index in blocks]
    frames += [wires.block_delta({"type": "text_delta", "text": text}, index) for index, text in turns]
    frames += [wires.block_stop(index) for index in blocks]
    if call:
        frames += wires.block_of(wires.tool_use("look"), wires.json_delta('{"shelf": 4}'), at=9)
    reason = "tool_use" if call else "end_turn"
    return wires.body_of("anthropic-messages", wires.messages_stream(*frames, reason=reason))


@for_each("call", [False, True])
@for_each("turns", TURNS)
@for_each("protocol", PROTOCOLS)
def test_texts_that_take_turns_leave_as_they_opened(protocol: Any, turns: list[tuple[int, str]], call: bool) -> None:
    body = wire(turns, call=call)
    texts = ["".join(text for one, text in turns if one == index) for index in sorted({index for index, _ in turns})]
    numbers = itertools.count()
    decoder = PROTOCOLS["anthropic-messages"].decoder(new_id=lambda: f"{next(numbers):024d}")
    stages = stages_for(TOOLS, Policy(sequential=True), new_id=lambda: f"{next(numbers):024d}")
    encoder = PROTOCOLS[protocol].encoder(new_id=lambda: f"{next(numbers):024d}", model="m", created=1)
    pipe = Pipe(Reader(decoder, stages), encoder)
    written = b"".join([pipe.feed(body[at : at + 7]) for at in range(0, len(body), 7)]) + pipe.close()
    reply = decode(written, protocol)
    assert (reply.text, len(reply.tool_calls), reply.error) == ("".join(texts), call, None)
