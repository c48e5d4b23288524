"""Programs that cannot run here, emulated: strict stand-ins, written from what their sources read and send.

Each makes a tool round trip in front of a provider of each of the five protocols.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from conversations import reply
from dragoman.protocols import PROTOCOLS
from dragoman.types import ToolCall, ToolResult
from for_each import for_each
from gateway.emulated import home_assistant, jetbrains, open_webui, vs_code, zed
from gateway.emulated.talk import QUESTION, TOOL, Called, Talk, post, run
from gateway.running import Running, gateway, stream_of, whole_of

CLIENTS: dict[str, Callable[[Running, str], Talk]] = {
    "zed": zed.converse,
    "zed-before-november-2025": partial(zed.converse, agent=zed.OLD),
    "vs-code": vs_code.converse,
    "jetbrains": jetbrains.converse,
    "home-assistant": home_assistant.converse,
    "open-webui": open_webui.converse,
}


def check(
    running: Running, converse: Callable[[Running, str], Talk], provider: str, *, stream: bool, shape: str
) -> None:
    """One round trip: the client understood what the provider said, and the provider what the client did."""
    steps = stream_of if stream else whole_of
    running.answer(steps(provider, reply(shape)), steps(provider, reply("text")))
    talk = converse(running, f"via-{provider}")
    expected = [(call.name, call.values()) for call in reply(shape).tool_calls]
    assert [(call.name, call.arguments) for call in talk.calls] == expected
    assert talk.text == reply("text").text
    first, second = running.provider.requests
    path = second.path if ":" in second.path else ""
    asked = PROTOCOLS[provider].parse_request(first.body, path=path).request
    assert [tool.name for tool in asked.tools] == ["get_weather"]
    told = PROTOCOLS[provider].parse_request(second.body, path=path).request
    parts = [part for message in told.messages for part in message.parts]
    calls = [part for part in parts if isinstance(part, ToolCall)]
    results = {part.call_id: part.text for part in parts if isinstance(part, ToolResult)}
    assert [(call.name, call.values()) for call in calls] == expected
    # Each result at its own call, also from clients that name neither.
    assert len(results) == len(calls)
    for call in calls:
        assert run(Called(call.id, call.name, call.values())) in results[call.id]


@for_each("shape", ["single", "parallel"])
@for_each("provider", PROTOCOLS)
@for_each("client", CLIENTS)
def test_a_tool_round_trip_emulated(running: Running, client: str, provider: str, shape: str) -> None:
    check(running, CLIENTS[client], provider, stream=True, shape=shape)


@for_each("shape", ["single", "parallel"])
@for_each("provider", PROTOCOLS)
def test_open_webui_without_a_stream_emulated(running: Running, provider: str, shape: str) -> None:
    check(running, partial(open_webui.converse, stream=False), provider, stream=False, shape=shape)


@pytest.mark.parametrize(
    ("setting", "keys", "lines"),
    [("auto", {"id", "function"}, 3), ("bare", {"function"}, 3), ("batched", {"id", "function"}, 1)],
)
def test_the_form_of_calls_can_be_set_for_all_clients(tmp_path: Path, setting: str, keys: set[str], lines: int) -> None:
    """For programs that do not say who they are."""
    with gateway(tmp_path, f'[server]\nollama_calls = "{setting}"\n') as running:
        running.answer(stream_of("openai-chat", reply("parallel")))
        body = {"model": "via-openai-chat", "messages": [{"role": "user", "content": QUESTION}], "tools": [TOOL]}
        _, answer = post(running, "/api/chat", body, "nobody/1.0")
        written = [calls for line in answer.splitlines() if (calls := json.loads(line)["message"].get("tool_calls"))]
        assert len(written) == lines
        assert [call["function"]["arguments"] for calls in written for call in calls] == [
            call.values() for call in reply("parallel").tool_calls
        ]
        assert {frozenset(call) for calls in written for call in calls} == {frozenset(keys)}
