"""`/wire`: what was sent, and the bytes of the answer beside the events and deviations that came of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agent.playing import config_of, playing, script
from dragoman.agent.wire_recorder import WireRecorder
from dragoman.client import AsyncClient
from dragoman.protocols import PROTOCOLS
from dragoman.testing import FakeModel
from dragoman.types import ProtocolName

ODD = (
    b'data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"content":"\\u001b[31mhi"}}]}\n\n'
    b'data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":'
    b'{"name":"add","arguments":"{\\"a\\": 1}"}}]}}]}\n\n'
    b'data: {"id":"1","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\n'
    b"data: [DONE]\n\n"
)


def recorded(place: Path, *prompts: str) -> WireRecorder:
    recording = WireRecorder()

    async def ask(config: object) -> None:
        async with AsyncClient(config, on_wire=recording.take) as client:  # type: ignore[arg-type]
            for prompt in prompts:
                await client.reply("lab/m", prompt)

    with playing(script(ODD)) as server:
        table = server.table("lab", 'api_key = "env:LAB_KEY"')
        file = config_of(place, server.table()).path
        assert file is not None
        file.write_text(table)
        from dragoman.config import load_config

        asyncio.run(ask(load_config(file, environ={"LAB_KEY": "canary-key"}, home=place)))
    return recording


def test_bytes_events_and_deviations_stand_side_by_side(tmp_path: Path) -> None:
    recording = recorded(tmp_path, "first", "second")
    assert recording.status == 200
    assert recording.request.startswith("POST http://127.0.0.1:")
    assert '"content":"second"' in recording.request and "first" not in recording.request
    rows = list(recording.rows())
    data = "\n".join(row.data for row in rows)
    events = "\n".join(row.events for row in rows)
    assert '"finish_reason":"tool_calls"' in data and "[DONE]" in data
    assert data.endswith("(the end of the body)")
    for line in ("Start", "TextDelta '�[31mhi'", "ToolCallStart add", 'ToolCallEnd add {"a": 1}', "Finish tool_use"):
        assert line.split("�")[0] in events
    assert "missing-id" in "\n".join(row.deviations for row in rows)
    assert "\x1b" not in data + events


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_streamed_answer_is_recorded_from_its_request_to_its_end(protocol: ProtocolName) -> None:
    recording = WireRecorder()

    async def ask(url: str) -> None:
        base = url + {"openai-chat": "/v1", "openai-responses": "/v1", "gemini-generate": "/v1beta"}.get(protocol, "")
        async with AsyncClient(base_url=base, protocol=protocol, on_wire=recording.take) as client:
            async with client.stream("m", "a question") as stream:
                async for _ in stream:
                    pass

    with FakeModel("one two three four").serve() as served:
        asyncio.run(ask(served.url))
    assert "a question" in recording.request
    events = "\n".join(row.events for row in recording.rows())
    assert "Start" in events and events.endswith("Finish stop")
    assert "four" in "".join(row.data for row in recording.rows())


def test_no_key_is_recorded(tmp_path: Path) -> None:
    recording = recorded(tmp_path, "first")
    assert "canary-key" not in recording.request + repr(list(recording.rows()))


def test_before_the_first_exchange_there_is_nothing() -> None:
    assert WireRecorder().request == ""
    assert list(WireRecorder().rows()) == []
