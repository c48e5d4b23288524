"""A conversation of one target goes on with another: who said what is known, and what only its own model reads stays
with it."""

from __future__ import annotations

from pathlib import Path

import pytest

import dragoman
from cases import counter
from dragoman.config import load_config
from dragoman.events import Deviation, Reply, unfold
from dragoman.inputs.conversation import read_messages
from dragoman.protocols import PROTOCOLS
from dragoman.types import Message, Origin, Text, Thinking, ToolCall, ToolResult, Usage
from scripted import Scripted, serving, streamed

CALL = ToolCall("call_0123456789abcdefghijklmn", "look", '{"at":"sky"}')
ANSWER = Reply(
    id="msg_1", model="model-1", created=1_750_000_000, parts=(Thinking("Up there.", "c2VhbA=="), CALL),
    stop_reason="tool_use", native_reason=None, usage=Usage(3, 4), cost=None, error=None, failed_calls=(),
    deviations=(),
)  # fmt: skip


def look(at: str) -> str:
    """Looks."""
    return f"{at} is blue"


def streams(count: int):
    encoder = PROTOCOLS["anthropic-messages"].encoder
    return [streamed(encoder(new_id=counter(), model="m", created=1).encode(unfold(ANSWER))) for _ in range(count)]


def client(server: Scripted, tmp_path: Path, more: str = "") -> dragoman.Client:
    file = tmp_path / "dragoman.toml"
    file.write_text(f'[providers.lab]\nprotocol = "anthropic-messages"\nbase_url = "{server.url}"\n{more}')
    return dragoman.Client(load_config(file, environ={}, home=tmp_path))


def kinds(body: dict) -> list[str]:
    return [block["type"] for block in body["messages"][1]["content"]]


@pytest.mark.parametrize(
    ("more", "target", "expected"),
    [
        ("", "lab/one", ["thinking", "tool_use"]),
        ("", "lab/two", ["tool_use"]),
        ('[models."lab/one"]\nthinking = "drop"\n', "lab/one", ["tool_use"]),
        ('[models."lab/two"]\nthinking = "text"\n', "lab/two", ["text", "tool_use"]),
    ],
)
def test_thinking_goes_back_to_the_target_that_thought_it(tmp_path, more: str, target: str, expected: list[str]):
    with serving(*streams(2)) as server, client(server, tmp_path, more) as asking:
        first = asking.reply("lab/one", "Look.", tools=[look])
        assert first.message.origin == Origin("anthropic-messages", "lab/one")
        result = Message("tool", (ToolResult(CALL.id, "look", (Text("blue"),)),))
        history = [Message("user", (Text("Look."),)), first.message, result]
        second = asking.reply(target, history, tools=[look])
        assert kinds(server.requests[1].json) == expected
        told = [deviation for deviation in second.deviations if deviation.code == "dropped"]
        assert bool(told) == ("thinking" not in expected)


def test_what_the_history_lacked_is_told_first(tmp_path):
    with serving(*streams(1)) as server, client(server, tmp_path) as asking:
        history = [Message("user", (Text("Look."),)), Message("assistant", (CALL,)), Message("user", (Text("Well?"),))]
        with asking.stream("lab/one", history, tools=[look]) as stream:
            events = list(stream)
    assert isinstance(events[0], Deviation)
    assert (events[0].code, events[0].where) == ("changed", "messages[1]")
    assert server.requests[0].json["messages"][2]["content"][0]["is_error"] is True


def test_seals_in_dicts_are_those_of_their_protocol():
    block = {"type": "thinking", "thinking": "Hm.", "signature": "c2VhbA=="}
    sealed = read_messages([{"role": "assistant", "content": [block, {"type": "text", "text": "Yes."}]}])
    assert sealed[0].origin == Origin("anthropic-messages")
    plain = read_messages([{"role": "assistant", "content": "Yes."}])
    assert plain == (Message("assistant", (Text("Yes."),)),)


def test_seals_that_a_client_drops_are_put_back(tmp_path):
    with serving(*streams(3)) as server, client(server, tmp_path) as asking:
        asking.reply("lab/one", "Look.", tools=[look])
        bare = [
            {"role": "user", "content": "Look."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": CALL.id, "function": {"name": "look", "arguments": '{"at": "sky"}'}}],
            },
            {"role": "tool", "tool_call_id": CALL.id, "content": "blue"},
        ]
        asking.reply("lab/one", bare, tools=[look])
        asking.reply("lab/two", bare, tools=[look])
    same, other = (request.json for request in server.requests[1:])
    assert same["messages"][1]["content"][0] == {"type": "thinking", "thinking": "Up there.", "signature": "c2VhbA=="}
    assert kinds(other) == ["tool_use"]
