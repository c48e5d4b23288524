"""What a model quotes when it refuses is no call: it is text, in every form of a call, wherever refusals are told."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman
import wires
from dragoman.types import ProtocolName, Tool
from rescue_forms import FORMS, Form

TOOL = Tool("run", "Runs a command.", {"type": "object", "properties": {"command": {"type": "string"}}})
ARGUMENTS = {"command": "rm -r build"}


def chat(key: str, text: str, *, is_stream: bool) -> bytes:
    if not is_stream:
        return wires.body_of("openai-chat", [wires.chat_answer(reason="stop", **{key: text})], is_whole=True)
    chunks = [wires.chat_chunk({key: piece}) for piece in text]
    return wires.body_of("openai-chat", [*chunks, wires.chat_chunk({}, "stop")])


def responses(key: str, text: str, *, is_stream: bool) -> bytes:
    kind, field = ("refusal", "refusal") if key == "refusal" else ("output_text", "text")
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    whole = {**item, "content": [{"type": kind, field: text}]}
    if not is_stream:
        return wires.body_of("openai-responses", [wires.responses_answer(whole)], is_whole=True)
    place = {"output_index": 0, "content_index": 0, "item_id": "msg_1"}
    frames = [
        wires.item_added({**item, "content": []}),
        {"type": "response.content_part.added", **place, "part": {"type": kind, field: ""}},
        *({"type": f"response.{kind}.delta", **place, "delta": piece} for piece in text),
    ]
    return wires.body_of("openai-responses", wires.responses_stream(*frames, output=[whole]))


BODIES = {"openai-chat": chat, "openai-responses": responses}


@pytest.mark.parametrize("protocol", BODIES)
@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
def test_no_call_stands_in_a_refusal(protocol: ProtocolName, is_stream: bool) -> None:
    found = 0
    for form in FORMS:
        text = form.write([("run", ARGUMENTS)]).text()
        refused, said = (read(protocol, key, text, is_stream=is_stream) for key in ("refusal", "content"))
        assert not refused.tool_calls and not refused.failed_calls, name_of(form)
        assert (refused.text, refused.stop_reason) == (text, "content_filter"), name_of(form)
        found += len(said.tool_calls)
    assert found > len(FORMS) // 2  # as the answer itself, they are calls


def read(protocol: ProtocolName, key: str, text: str, *, is_stream: bool) -> dragoman.Reply[Any]:
    return dragoman.decode(BODIES[protocol](key, text, is_stream=is_stream), protocol, tools=[TOOL])


def name_of(form: Form) -> str:
    return f"{form.family}: {form.name}"
