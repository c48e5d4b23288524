"""Home Assistant's Ollama integration, emulated over the SDK that it uses (components/ollama, read 2026).

It pulls its model at set-up, streams, says `keep_alive` as text, and sends results with neither a name nor an id.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import ollama

from gateway.emulated.talk import QUESTION, TOOL, Called, Talk, run
from gateway.running import Running

_CONTEXT = 8_192


def set_up(running: Running, model: str) -> list[str]:
    """The models of the server, after the configured one was fetched."""

    async def ask() -> list[str]:
        client = ollama.AsyncClient(host=running.url)
        try:
            await client.pull(model)
            return [listed.model or "" for listed in (await client.list()).models]
        finally:
            await client._client.aclose()

    return asyncio.run(ask())


def converse(running: Running, model: str) -> Talk:
    """Ask, run the calls, send the results."""
    assert model in set_up(running, model)
    return asyncio.run(_converse(running, model))


async def _converse(running: Running, model: str) -> Talk:
    client = ollama.AsyncClient(host=running.url)
    try:
        messages = [
            ollama.Message(role="system", content="You are a voice assistant."),
            ollama.Message(role="user", content=QUESTION),
        ]
        said, calls = await _turn(client, model, messages)
        replayed = [
            ollama.Message.ToolCall(function=ollama.Message.ToolCall.Function(name=call.name, arguments=call.arguments))
            for call in calls
        ]
        messages.append(ollama.Message(role="assistant", content=said, tool_calls=replayed))
        messages += [ollama.Message(role="tool", content=json.dumps({"result": run(call)})) for call in calls]
        text, more = await _turn(client, model, messages)
        assert more == []
        return Talk(calls, text)
    finally:
        await client._client.aclose()


async def _turn(client: ollama.AsyncClient, model: str, messages: list[Any]) -> tuple[str, list[Called]]:
    text, calls, is_done = "", [], False
    async for part in await client.chat(
        model=model,
        messages=messages,
        tools=[TOOL],
        stream=True,
        keep_alive="-1s",
        options={"num_ctx": _CONTEXT},
        think=False,
    ):
        assert not is_done
        text += part.message.content or ""
        for call in part.message.tool_calls or ():
            calls.append(Called("", call.function.name, dict(call.function.arguments)))
        is_done = bool(part.done)
    assert is_done
    return text, calls
