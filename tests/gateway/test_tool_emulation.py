"""Clients that use tools, in front of providers that have none: they see calls all the same."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from conversations import SHAPES, reply
from dragoman.events import Reply
from dragoman.protocols import PROTOCOLS
from dragoman.types import Message, Request, Text, Thinking, ToolCall, ToolResult
from for_each import for_each
from gateway.running import Running, gateway, stream_of
from gateway.test_matrix import QUESTION, TOOLS, ask, content, read
from scripted import whole

REFUSED = whole(b'{"error":{"message":"model-1 does not support tools"}}', 400)
NAMES = {tool.name for tool in TOOLS}


@pytest.fixture(scope="module", params=["schema", "prompted"])
def other_way(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Running]]:
    """A gateway whose providers are asked in one of the other ways."""
    tables = [f'[models."{name}/model-1"]\ntools = "{request.param}"' for name in PROTOCOLS]
    with gateway(tmp_path_factory.mktemp("ways"), "\n".join(tables)) as running:
        yield request.param, running


def written(original: Reply, way: str) -> Reply:
    """The same reply as a model without tools says it."""
    calls = [f'{{"name": "{call.name}", "arguments": {call.arguments}}}' for call in original.tool_calls]
    if way == "schema":
        text = f'{{"tool_calls": [{", ".join(calls)}]}}'
    else:
        text = "".join(f"<tool_call>{call}</tool_call>" for call in calls)
    thinking = tuple(part for part in original.parts if isinstance(part, Thinking))
    return msgspec.structs.replace(original, parts=(*thinking, Text(text)), stop_reason="stop")


@for_each("provider", PROTOCOLS)
@for_each("client", PROTOCOLS)
def test_calls_in_another_way_are_calls_to_the_client(
    other_way: tuple[str, Running], client: str, provider: str
) -> None:
    way, running = other_way
    for shape, (parts, _) in SHAPES.items():
        original = reply(shape)
        if not original.tool_calls or any(isinstance(part, Text) for part in parts):
            continue
        running.answer(stream_of(provider, written(original, way)))
        status, body = ask(running, client, Request(f"via-{provider}", (QUESTION,), TOOLS, stream=True))
        assert status == 200, (shape, body)
        assert content(read(client, body)) == content(original), shape


@pytest.mark.parametrize("client", PROTOCOLS)
def test_a_refusal_is_answered_by_another_try(client: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    original = reply("parallel")
    calls = tuple(part for part in original.parts if isinstance(part, ToolCall))
    results = tuple(ToolResult(call.id, call.name, (Text("rain"),)) for call in calls)
    conversation = (QUESTION, Message("assistant", calls), Message("tool", results))
    with gateway(tmp_path_factory.mktemp("auto"), '[models."openai-chat/model-1"]\ntools = "auto"\n') as running:
        running.answer(REFUSED, stream_of("openai-chat", written(original, "prompted")))
        status, body = ask(running, client, Request("via-openai-chat", conversation, TOOLS, stream=True))
        first, second = (request.json for request in running.provider.requests)
    assert status == 200
    assert content(read(client, body)) == content(original)
    assert {tool["function"]["name"] for tool in first["tools"]} == NAMES
    assert "tools" not in second and "response_format" not in second
    assert [message["role"] for message in second["messages"]] == ["system", "user", "assistant", "user"]
