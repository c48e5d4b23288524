"""Second turns through the gateway: the provider gets back the seals that it gave, whatever the client's protocol says
of them, and another provider never does."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from cases import counter
from conversations import reply
from dragoman import _json
from dragoman.events import fold
from dragoman.protocols import PROTOCOLS
from dragoman.types import Message, Request, Text, Thinking, Tool, ToolCall, ToolResult
from gateway.running import Running, stream_of
from gateway.test_matrix import ask

TOOLS = (Tool("look", "", _json.raw({"type": "object", "properties": {"at": {"type": "string"}}})),)
SEALED = {
    "gemini-generate": (ToolCall("call_0123456789abcdefghijklmn", "look", '{"at":"sky"}', signature="c2VhbA=="),),
    "anthropic-messages": (
        Thinking("Up.", "c2VhbA=="),
        ToolCall("call_0123456789abcdefghijklmn", "look", '{"at":"sky"}'),
    ),
}


def second_turn(running: Running, client: str, provider: str, *, then: str, words: str) -> bytes:
    """What the provider `then` is asked after `provider` called a tool."""
    question = Message("user", (Text(words),))
    running.answer(stream_of(provider, msgspec.structs.replace(reply("single"), parts=SEALED[provider])))
    _, body = ask(running, client, Request(f"via-{provider}", (question,), TOOLS))
    decoder = PROTOCOLS[client].decoder(new_id=counter())
    answer = fold([*decoder.feed(body), *decoder.close()]).message
    (call,) = answer.tool_calls
    result = Message("tool", (ToolResult(call.id, "look", (Text("blue"),)),))
    running.answer(stream_of(then, reply("text")))
    status, body = ask(running, client, Request(f"via-{then}", (question, answer, result), TOOLS))
    assert status == 200, body
    return running.provider.requests[-1].body


@pytest.mark.parametrize(("provider", "client"), list(itertools.product(SEALED, PROTOCOLS)))
def test_the_provider_gets_its_seals_back(running: Running, provider: str, client: str) -> None:
    asked = second_turn(running, client, provider, then=provider, words=f"Look, {client}.")
    assert asked.count(b"c2VhbA==") == 1


@pytest.mark.parametrize(("provider", "client"), list(itertools.product(SEALED, PROTOCOLS)))
def test_another_provider_never_gets_them(running: Running, provider: str, client: str) -> None:
    (other,) = SEALED.keys() - {provider}
    asked = second_turn(running, client, provider, then=other, words=f"And now, {client}?")
    assert b"c2VhbA==" not in asked
    assert b"Up." not in asked
