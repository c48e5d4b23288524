"""Texts of a wire whose blocks take turns leave in the order in which they opened, in every protocol."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from dragoman import _json, decode
from dragoman.pipe import Pipe, Reader
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, stages_for
from dragoman.types import Tool

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
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": []}}
    ]
    blocks = sorted({index for index, _ in turns})
    events += [
        {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}
        for index in blocks
    ]
    delta = {"type": "content_block_delta"}
    for index, text in turns:
        events.append(delta | {"index": index, "delta": {"type": "text_delta", "text": text}})
    events += [{"type": "content_block_stop", "index": index} for index in blocks]
    if call:
        block = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
        events += [
            {"type": "content_block_start", "index": 9, "content_block": block},
            delta | {"index": 9, "delta": {"type": "input_json_delta", "partial_json": '{"shelf": 4}'}},
            {"type": "content_block_stop", "index": 9},
        ]
    events.append({"type": "message_delta", "delta": {"stop_reason": "tool_use" if call else "end_turn"}})
    events.append({"type": "message_stop"})
    return b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events)


@pytest.mark.parametrize("call", [False, True])
@pytest.mark.parametrize("turns", TURNS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
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
