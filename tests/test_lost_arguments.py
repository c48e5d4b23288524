"""Arguments that name no call: a call without any may have lost them, so it fails."""

from __future__ import annotations

import json
from typing import Any

import pytest

import dragoman
import wires

TOOLS = [{"name": "search", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}}]


def chat(*deltas: dict[str, Any]) -> bytes:
    return wires.body_of("openai-chat", [*map(wires.chat_chunk, deltas), wires.chat_chunk({}, "tool_calls")])


def calls(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"tool_calls": list(entries)}


LOST = '{"query": "x"}'
NAMED = wires.chat_call("search", id="a")
STREAMS = {
    "chat, a new index": (
        "openai-chat", chat(calls(NAMED), calls({"index": 1, "id": "b", "function": {"arguments": LOST}})),
    ),
    "chat, before the call": (
        "openai-chat", chat(calls({"index": 1, "id": "b", "function": {"arguments": LOST}}), calls(NAMED)),
    ),
    "responses": (
        "openai-responses",
        wires.body_of("openai-responses", wires.responses_stream(
            wires.item_added(wires.function_call("search", status="in_progress")),
            wires.arguments_delta(LOST, 5) | {"item_id": "zz"},
            wires.item_done(wires.function_call("search", status="completed")),
        )),
    ),
    "messages": (
        "anthropic-messages",
        wires.body_of("anthropic-messages", wires.messages_stream(
            wires.block_start(wires.tool_use("search")), wires.block_delta(wires.json_delta(LOST), 1),
            wires.block_stop(),
        )),
    ),
    "chat, in another choice under its id": (
        "openai-chat", wires.body_of("openai-chat", [
            wires.chat_chunk(calls(NAMED)),
            {"choices": [{"index": 1, "delta": calls({"index": 0, "id": "a", "function": {"arguments": LOST}})}]},
            wires.chat_chunk({}, "tool_calls"),
        ]),
    ),
    "chat, in another choice behind the reason": (
        "openai-chat", wires.body_of("openai-chat", [
            wires.chat_chunk(calls(NAMED), "tool_calls"),
            {"choices": [{"index": 1, "delta": calls(wires.chat_piece(LOST))}]},
        ]),
    ),
}  # fmt: skip
LATE = {
    "openai-chat": [*wires.chat_stream(NAMED), wires.chat_chunk(calls(wires.chat_piece(LOST)))],
    "anthropic-messages": [
        *wires.messages_stream(*wires.block_of(wires.tool_use("search"))), wires.block_delta(wires.json_delta(LOST)),
    ],
    "openai-responses": [
        *wires.responses_stream(
            wires.item_added(wires.function_call("search")), wires.item_done(wires.function_call("search")),
        ),
        wires.arguments_delta(LOST),
    ],
}  # fmt: skip


@pytest.mark.parametrize("protocol", LATE)
def test_an_answer_fails_if_arguments_come_behind_its_end_and_a_call_has_none(protocol: str) -> None:
    done = "data: [DONE]\n\n" if protocol == "openai-chat" else ""
    *frames, last = LATE[protocol]
    for told, is_wrong in ((last, True), (json.loads(json.dumps(last).replace(json.dumps(LOST), '"{}"')), False)):
        head, tail = (wires.body_of(protocol, part).decode() for part in (frames, [told]))
        body = f"{head.removesuffix(done)}{done}{tail.removesuffix(done)}".encode()
        reply = dragoman.decode(body, protocol, tools=TOOLS)  # type: ignore[arg-type]
        assert (reply.error is not None) is is_wrong, (body, reply)
        assert [call.name for call in reply.tool_calls] == ["search"]


@pytest.mark.parametrize("is_stopped", [True, False])
def test_a_call_without_arguments_fails_if_its_id_comes_again_with_some(is_stopped: bool) -> None:
    """The second start may be that of the first call: what came is run once."""
    again = wires.block_of({**wires.tool_use("search"), "id": "c0"}, wires.json_delta(LOST), at=1)
    frames = [wires.block_start(wires.tool_use("search")), *again[: 3 if is_stopped else 2]]
    reply = dragoman.decode(
        wires.body_of("anthropic-messages", wires.messages_stream(*frames)), "anthropic-messages", tools=TOOLS
    )
    assert [call.values() for call in reply.tool_calls] == [{"query": "x"}]
    assert [call.kind for call in reply.failed_calls] == ["lost"]


@pytest.mark.parametrize("arguments", ["", "{}"])
def test_the_arguments_of_another_tool_under_a_calls_id_are_not_its_own(arguments: str) -> None:
    """Some servers give all calls of an answer one id."""
    tools = [*TOOLS, {"name": "now", "parameters": {"type": "object", "properties": {}}}]
    values = json.loads(arguments or "{}")
    one, other = wires.tool_use("now", id="c"), wires.tool_use("search", id="c")
    answers = {
        "openai-chat": wires.chat_stream(
            wires.chat_call("now", arguments, id="c"), wires.chat_call("search", LOST, 1, id="c")
        ),
        "ollama-chat": wires.ollama_stream(
            wires.ollama_call("now", values, id="c"), wires.ollama_call("search", json.loads(LOST), id="c")
        ),
        "anthropic-messages": wires.messages_stream(
            wires.block_start(one), wires.block_start(other, 1), wires.block_delta(wires.json_delta(arguments)),
            wires.block_delta(wires.json_delta(LOST), 1), wires.block_stop(), wires.block_stop(1),
        ),
    }  # fmt: skip
    for protocol, frames in answers.items():
        reply = dragoman.decode(wires.body_of(protocol, frames), protocol, tools=tools)  # type: ignore[arg-type]
        assert [(call.name, call.values()) for call in reply.tool_calls] == [("now", {}), ("search", {"query": "x"})]
        assert reply.error is None, protocol


def test_a_start_that_comes_behind_the_end_of_its_call_begins_no_other() -> None:
    items = [wires.function_call("search", json.dumps({"query": text}), at) for at, text in enumerate("xy")]
    bare = [{key: value for key, value in item.items() if key not in ("id", "call_id")} for item in items]
    frames = [
        wires.item_done(items[0]), *(step(items[1], 1) for step in (wires.item_added, wires.item_done)),
        wires.item_added({**items[0], "arguments": ""}),
    ]  # fmt: skip
    for output in ([], items, bare, bare[::-1]):
        body = wires.body_of("openai-responses", wires.responses_stream(*frames, output=output))
        reply = dragoman.decode(body, "openai-responses", tools=TOOLS)
        assert reply.error is None
        assert [call.values()["query"] for call in reply.tool_calls] == ["x", "y"]


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("required", [[], ["query"]])
def test_no_call_runs_without_arguments_that_came(name: str, required: list[str]) -> None:
    protocol, body = STREAMS[name]
    parameters: dict[str, Any] = {**TOOLS[0]["parameters"], "required": required}  # type: ignore[dict-item]
    reply = dragoman.decode(body, protocol, tools=[{**TOOLS[0], "parameters": parameters}])
    assert not reply.tool_calls and reply.error is not None, reply.tool_calls
    assert reply.stop_reason == "error"


GLUED = {
    "openai-chat": lambda texts: wires.chat_stream(NAMED, *map(wires.chat_piece, texts)),
    "anthropic-messages": lambda texts: wires.messages_stream(
        *wires.block_of(wires.tool_use("search"), *map(wires.json_delta, texts))
    ),
    "openai-responses": lambda texts: wires.responses_stream(
        wires.item_added(wires.function_call("search")), *map(wires.arguments_delta, texts),
        wires.arguments_done("".join(texts)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("protocol", GLUED)
def test_arguments_of_another_tool_behind_those_of_a_call_run_nowhere(protocol: str) -> None:
    """Servers put the arguments of all calls into the first one: each is of its own tool, whose name is lost."""
    fetch = {"name": "fetch", "parameters": {"type": "object", "properties": {"url": {"type": "string"}}}}
    of_another, of_same = '{"url": "u"}', '{"query": "y"}'
    for more, offered, count in (
        (of_another, [*TOOLS, fetch], 1), (of_same, [*TOOLS, fetch], 2), (of_another, TOOLS, 2),
    ):  # fmt: skip
        body = wires.body_of(protocol, GLUED[protocol]([LOST, more]))
        reply = dragoman.decode(body, protocol, tools=offered)  # type: ignore[arg-type]
        wanted = [("search", json.loads(text)) for text in (LOST, more)[:count]]
        assert [(call.name, call.values()) for call in reply.tool_calls] == wanted, (more, reply)
        assert [call.kind for call in reply.failed_calls] == ["lost"] * (2 - count)
