"""Requests that go on with what only a server stores: they reach a target that stores it, or are refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import msgspec
import pytest

from conversations import call, reply
from for_each import for_each
from gateway.running import Running, gateway, whole_of
from scripted import serving, whole

#: What goes on, by its client: the path, the body, the place that is named, and the status.
STORED: dict[str, tuple[str, dict[str, Any], str, int]] = {
    "response": (
        "/v1/responses", {"input": "And then?", "previous_response_id": "resp_1"}, "previous_response_id", 404,
    ),
    "prompt": ("/v1/responses", {"input": "Hi", "prompt": {"id": "pmpt_1"}, "store": False}, "prompt.id", 400),
    "thread": (
        "/v1/messages",
        {
            "max_tokens": 9,
            "messages": [{"role": "user", "content": "And then?"}],
            "thread": {"type": "continue", "previous_message_id": "msg_1"},
        },
        "thread.previous_message_id",
        400,
    ),
    "cache": (
        "/v1beta/models/MODEL:generateContent",
        {"contents": [{"role": "user", "parts": [{"text": "And then?"}]}], "cachedContent": "cachedContents/1"},
        "cachedContent",
        400,
    ),
}  # fmt: skip
OF_VENDOR = "dialect = { supports_vendor_fields = true }"


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Routes along a target that stores conversations and to which bytes pass, and one that stores none."""
    bases = {"openai-responses": "/v1", "anthropic-messages": "", "gemini-generate": "/v1beta"}
    more = "".join(
        f'[providers.own-{name}]\nprotocol = "{name}"\nbase_url = "http://127.0.0.1:9{base}"\nclean = true\n'
        f'{OF_VENDOR}\n[routes.on-{name}]\ntargets = ["own-{name}/m", "ollama-chat/m"]\n'
        for name, base in bases.items()
    )
    with gateway(tmp_path_factory.mktemp("gateway"), more) as found:
        yield found


def post(running: Running, model: str, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
    asked = json.dumps(body if "MODEL" in path else {**body, "model": model}).encode()
    status, _, answer = running.request("POST", path.replace("MODEL", model), asked)
    return status, answer


@for_each("name", STORED)
def test_a_target_of_another_protocol_does_not_answer_blindly(running: Running, name: str) -> None:
    path, body, where, status = STORED[name]
    running.answer(whole_of("ollama-chat", reply("text")))
    found, answer = post(running, "via-ollama-chat", path, body)
    assert (found, running.provider.requests) == (status, [])
    assert where.encode() in answer


@for_each("name", [name for name in STORED if name != "response"])
def test_nor_does_the_next_target_of_a_route_when_the_first_one_is_away(clean: Running, name: str) -> None:
    path, body, _, _ = STORED[name]
    protocol = {"prompt": "openai-responses", "thread": "anthropic-messages", "cache": "gemini-generate"}[name]
    clean.answer(whole_of("ollama-chat", reply("text")))
    found, _ = post(clean, f"on-{protocol}", path, body)
    assert (found, clean.provider.requests) == (502, [])


def test_a_thread_goes_on_at_its_vendor_alone_with_results_of_calls_that_are_stored_there(tmp_path: Path) -> None:
    path, body, _, _ = STORED["thread"]
    results = [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "21"}]
    body = body | {"messages": [{"role": "user", "content": results}]}
    with serving(whole_of("anthropic-messages", reply("text"))) as vendor:
        own = f'[providers.own]\nprotocol = "anthropic-messages"\nbase_url = "{vendor.url}"\n{OF_VENDOR}\n'
        with gateway(tmp_path, f'{own}[routes.both]\ntargets = ["anthropic-messages/m", "own/m"]\n') as found:
            status, _ = post(found, "both", path, body)
            assert (status, found.provider.requests) == (200, [])
        sent = vendor.requests[0].json
    assert sent["thread"] == body["thread"]
    assert [block["tool_use_id"] for block in sent["messages"][0]["content"]] == ["toolu_1"]


THREADS = [("thread_not_found", 404, "not_found_error"), ("thread_already_continued", 409, "conflict_error")]


@for_each("code,status,kind", THREADS)
def test_the_code_of_an_error_reaches_a_client_that_acts_on_it(
    running: Running, code: str, status: int, kind: str
) -> None:
    problem = {"type": kind, "message": "start anew", "details": {"error_code": code}}
    running.answer(whole(json.dumps({"type": "error", "error": problem}).encode(), status))
    path, body, _, _ = STORED["thread"]
    found, answer = post(running, "via-anthropic-messages", path, {**body, "thread": {"type": "create"}})
    assert (found, json.loads(answer)["error"]["details"]) == (status, {"error_code": code})


def test_the_vendors_own_loop_over_tools_runs_on_any_model(running: Running) -> None:
    """It asks its server to hold the conversation, and sends all of it where that is refused."""

    @anthropic.beta_tool
    def weather(city: str) -> str:
        """Look out of the window."""
        return f"rain in {city}"

    called = msgspec.structs.replace(reply("single"), parts=(call(1, '{"city":"Paris"}', "weather"),))
    running.answer(whole_of("openai-chat", called), whole_of("openai-chat", reply("text")))
    with anthropic.Anthropic(base_url=running.url, api_key="k", max_retries=0) as client:
        loop = client.beta.messages.tool_runner(
            model="via-openai-chat", max_tokens=99, tools=[weather], messages=[{"role": "user", "content": "Weather?"}]
        )
        last = loop.until_done()
    assert [block.type for block in last.content] == ["text"]
    sent = running.provider.requests[-1].json
    assert [message["role"] for message in sent["messages"]] == ["user", "assistant", "tool"]
    assert sent["messages"][-1]["content"] == "rain in Paris"
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["weather"]


def test_a_text_of_the_oldest_api_beside_messages_is_stored_nowhere(clean: Running):
    body = {"messages": [{"role": "user", "content": "Hi"}], "prompt": "Hi"}
    status, answer = post(clean, "ollama-chat/m", "/v1/chat/completions", body)
    assert b"not stored" not in answer, (status, answer)
