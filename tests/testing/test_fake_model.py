"""`dragoman.testing`: the fake model in all five protocols, in the process and on a port, with all that goes wrong."""

from __future__ import annotations

import asyncio
import http.client
import json
import subprocess
import sys
from typing import Any

import pytest

import dragoman
from dragoman.testing import FakeModel, call, cut, delay, deviation, error, thinking
from dragoman.testing.faults import FAULTS
from dragoman.types import ProtocolName, Request, Thinking
from for_each import for_each

PROTOCOLS: tuple[ProtocolName, ...] = (
    "ollama-chat", "openai-chat", "openai-responses", "anthropic-messages", "gemini-generate",
)  # fmt: skip


def find(city: str, days: int = 1) -> str:
    """Find a city."""
    return f"{city} {days}"


@for_each("protocol", PROTOCOLS)
def test_texts_calls_and_thinking(protocol: ProtocolName) -> None:
    with FakeModel([thinking("Hm."), "Look:", call("find", city="Rome", days=3)], "done", protocol=protocol) as fake:
        reply = dragoman.reply("any/model", "Where?", tools=[find])
        assert (reply.thinking, reply.text, reply.tool_calls[0].values()) == (
            "Hm.",
            "Look:",
            {"city": "Rome", "days": 3},
        )
        assert reply.deviations == () and reply.usage.output
        assert "".join(dragoman.stream("any/model", "And?").text_stream) == "done"
    assert [request.model for request in fake.requests] == ["model", "model"]
    assert fake.requests[0].tools[0].name == "find" and fake.requests[1].messages[0].text == "And?"


@for_each("target", ["anthropic/claude-sonnet-4-5", "openai/gpt-5", "gemini/gemini-2.5-pro", "deepseek/deepseek-chat"])
def test_thinking_goes_back_to_its_model_as_with_a_real_one(target: str) -> None:
    with FakeModel([thinking("Hm."), call("find", city="Rome")], "done") as fake:
        dragoman.run(target, "Where?", tools=[find])
    assert [part.text for part in fake.requests[1].messages[1].parts if isinstance(part, Thinking)] == ["Hm."]


@for_each("protocol", PROTOCOLS)
def test_the_text_of_the_last_message_is_the_result_of_a_tool(protocol: ProtocolName) -> None:
    with FakeModel(call("find", city="Rome", days=3), "done", protocol=protocol) as fake:
        dragoman.run("any/model", "Where?", tools=[find])
    last = fake.requests[1].messages[-1]
    assert (last.role, last.text) == ("tool", "Rome 3")


@for_each("protocol", PROTOCOLS)
@for_each("what", [("half an answer that goes on",), (call("find", city="Rome"),), ()])
def test_a_cut_is_a_failure_and_runs_no_call(protocol: ProtocolName, what: Any) -> None:
    turns = [cut(*what)] * 3
    with FakeModel(*turns, protocol=protocol), dragoman.Client(retries=0) as client:
        events = list(client.stream("any/model", "hi", tools=[find]))
        assert isinstance(events[-1], dragoman.Failure) and events[-1].kind == "connection"
        assert not any(isinstance(event, dragoman.ToolCallEnd) for event in events)
        with pytest.raises(dragoman.CallFailed):
            client.reply("any/model", "hi")
        stream = client.stream("any/model", "hi")
        with pytest.raises(dragoman.CallFailed):
            list(stream.text_stream)


@for_each("protocol", PROTOCOLS)
@for_each(
    ("status", "kind"), [(401, "auth"), (404, "not_found"), (429, "rate"), (500, "internal"), (503, "overloaded")]
)
def test_an_error_has_its_status(protocol: ProtocolName, status: int, kind: str) -> None:
    with FakeModel(error(status, "no luck"), protocol=protocol), dragoman.Client(retries=0) as client:
        with pytest.raises(dragoman.CallFailed, match="no luck") as raised:
            client.reply("any/model", "hi")
    assert (raised.value.failure.kind, raised.value.reply.attempts[0].status) == (kind, status)


def test_an_error_moves_on_to_the_next_target() -> None:
    with FakeModel(error(500), "hello") as fake:
        reply = dragoman.reply(["openai/a", "anthropic/b"], "hi")
    assert str(reply) == "hello" and [request.model for request in fake.requests] == ["a", "b"]
    assert [attempt.outcome for attempt in reply.attempts] == ["failed", "answered"]


@for_each("protocol", PROTOCOLS)
@for_each("name", FAULTS)
def test_a_deviation_by_name_is_seen_and_mended_or_refused(protocol: ProtocolName, name: str) -> None:
    has_call = FAULTS[name].needs_call
    calls = [call("find", city="Rome"), call("find", city="Oslo")]
    said = [*(calls if has_call else ["Hello there."]), deviation(name)]
    refused = ""
    with FakeModel(said, protocol=protocol), dragoman.Client(retries=0) as client:
        try:
            reply = client.reply("any/model", "hi", tools=[find])
        except dragoman.UsageError as problem:
            refused = str(problem)
    if refused:
        assert f"{name!r} cannot be played in {protocol}" in refused
        return
    assert name in [one.code for one in reply.deviations]
    if has_call:
        assert [one.values() for one in reply.tool_calls] == [{"city": "Rome"}, {"city": "Oslo"}]
    else:
        assert reply.text == "Hello there."


@for_each("name", FAULTS)
def test_each_deviation_can_be_played_somewhere(name: str) -> None:
    played = []
    for protocol in PROTOCOLS:
        calls = [call("find", city="Rome"), call("find", city="Oslo")]
        said = [*calls, deviation(name)] if FAULTS[name].needs_call else deviation(name)
        with FakeModel(said, protocol=protocol), dragoman.Client(retries=0) as client:
            try:
                client.reply("any/model", "hi", tools=[find])
            except dragoman.UsageError:
                continue
            played.append(protocol)
    assert played


def test_a_function_of_the_request_and_what_is_left() -> None:
    def echo(request: Request) -> str:
        return request.messages[-1].text.upper()

    with FakeModel(echo, lambda request: 5) as fake:
        assert str(dragoman.reply("any/model", "hello")) == "HELLO"
        with pytest.raises(dragoman.UsageError, match="what a function gave: expected a text"):
            dragoman.reply("any/model", "hello")
        with pytest.raises(dragoman.UsageError, match=r"request 3 came, and there is no turn left.*ends with 'hello'"):
            dragoman.reply("any/model", "hello")
    assert len(fake.requests) == 3
    with FakeModel('{"answer": {"a": 1}}'), pytest.raises(dragoman.UsageError, match=r"request 2 came.*does not fit"):
        dragoman.reply("any/model", "hello", output_type=dict[str, int])  # the answer is read as the object itself


def test_a_delay_runs_into_a_timeout() -> None:
    with FakeModel([delay(5), "late"]), dragoman.Client(retries=0) as client:
        with pytest.raises(dragoman.CallFailed) as raised:
            client.reply("any/model", "hi", timeout=0.1)
    assert raised.value.failure.kind == "timeout"


def test_the_inner_model_answers_and_afterwards_nobody() -> None:
    with FakeModel("outer", "outer"):
        with FakeModel("inner"):
            assert str(dragoman.reply("any/model", "hi")) == "inner"
        assert str(dragoman.reply("any/model", "hi")) == "outer"
    with pytest.raises(dragoman.UsageError, match="unknown provider 'any'"):
        dragoman.reply("any/model", "hi")


def test_embeddings_depend_on_their_texts_alone() -> None:
    with FakeModel():
        for target in ("openai/e", "ollama/e", "gemini/e"):
            found = dragoman.embed(target, ["a", "b", "a"])
            assert found.vectors[0] == found.vectors[2] != found.vectors[1] and found.target == target
        assert dragoman.embed("openai/e", "a").vectors == [found.vectors[0]]
        assert dragoman.embed(["anthropic/e", "openai/e"], "a").target == "openai/e"
        with pytest.raises(dragoman.UsageError, match="embeddings"):
            dragoman.embed("anthropic/e", "a")


HI = {"role": "user", "content": "hi"}
BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    "openai-chat": ("/v1/chat/completions", {"model": "m", "messages": [HI]}),
    "openai-responses": ("/v1/responses", {"model": "m", "input": "hi"}),
    "anthropic-messages": ("/v1/messages", {"model": "m", "max_tokens": 5, "messages": [HI]}),
    "ollama-chat": ("/api/chat", {"model": "m", "stream": False, "messages": [HI]}),
    "gemini-generate": (
        "/v1beta/models/m:generateContent",
        {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    ),
}


def posted(port: int, path: str, body: Any) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_a_port_answers_all_five_protocols() -> None:
    fake = FakeModel(*["said"] * 5, error(429), cut("said and more"))
    with fake.serve() as served:
        for name, (path, body) in BODIES.items():
            status, answer = posted(served.port, path, body)
            assert status == 200 and str(dragoman.decode(answer, name)) == "said"  # type: ignore[arg-type]
        assert posted(served.port, *BODIES["openai-chat"])[0] == 429
        with pytest.raises(http.client.IncompleteRead):
            posted(served.port, *BODIES["openai-chat"])
        assert posted(served.port, *BODIES["openai-chat"])[0] == 500
        assert posted(served.port, "/v1/chat/completions", [])[0] == 400
        assert posted(served.port, "/nowhere", {})[0] == 404
    with dragoman.Client(base_url=f"http://127.0.0.1:{served.port}/v1", retries=0) as client:
        with pytest.raises(dragoman.CallFailed):
            client.reply("m", "hi")


def test_a_client_of_ours_asks_the_port() -> None:
    fake = FakeModel(call("find", city="Rome"), "done")
    with fake.serve() as served, dragoman.Client(base_url=f"{served.url}/v1") as client:
        assert str(client.run("Org/model", "hi", tools=[find])) == "done"
    assert fake.requests[0].model == "Org/model"


def test_many_at_once() -> None:
    async def main() -> list[str]:
        async with dragoman.AsyncClient() as client:
            return [str(one) for one in await asyncio.gather(*(client.reply("any/m", str(n)) for n in range(50)))]

    with FakeModel(*[lambda request: request.messages[0].text] * 50):
        assert asyncio.run(main()) == [str(number) for number in range(50)]


def test_the_fixture_loads_nothing_of_ours_before_it_is_used() -> None:
    code = "import sys, dragoman_pytest; print({'dragoman', 'msgspec'}.intersection(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_the_fixture() -> None:
    import dragoman_pytest

    make = dragoman_pytest.fake_model.__wrapped__()  # type: ignore[attr-defined]
    fake_model = next(make)
    fake = fake_model("hello")
    assert str(dragoman.reply("any/model", "hi")) == "hello" and len(fake.requests) == 1
    make.close()


@pytest.mark.parametrize("target", ["any/model", "openai/gpt-4o", "anthropic/claude-sonnet-4-5"])
def test_the_settings_of_a_client_hold_for_every_target(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    broken = [deviation("missing-id"), call("find", city="Rome")]
    with (
        FakeModel(broken),
        dragoman.Client({}, strict=True, retries=0) as client,
        pytest.raises(dragoman.CallFailed) as failed,
    ):
        client.reply(target, "Where?", tools=[find])
    assert failed.value.failure.kind == "wire"
    with FakeModel(broken), dragoman.Client({}) as client:
        assert client.reply(target, "Where?", tools=[find]).tool_calls
    if target == "any/model":  # a configuration names known providers alone
        return
    by_model = {"models": {target: {"strict": True}}}
    with FakeModel(broken), dragoman.Client(by_model, retries=0) as client, pytest.raises(dragoman.CallFailed):
        client.reply(target, "Where?", tools=[find])


def test_a_deviation_that_there_is_not_is_named_beside_those_that_can_be_played() -> None:
    with pytest.raises(dragoman.UsageError, match=r"got 'missing-idd'.*missing-id"):
        deviation("missing-idd")
    with pytest.raises(dragoman.UsageError, match=r"envelope cannot be played; these can be: .*missing-id"):
        deviation("envelope")


def test_a_call_that_is_cut_has_a_kind_and_no_status() -> None:
    with FakeModel(error(429, "slow down", retry_after=90)), pytest.raises(dragoman.CallFailed) as failed:
        dragoman.reply("any/model", "hi")
    assert (failed.value.status, failed.value.retry_after) == (429, 90.0)
    lost = dragoman.ToolCallFailed(0, "call_1", "find", "cut", "the arguments end")
    refused = dragoman.CallFailed(lost, dragoman.decode(b"{}", "openai-chat"))
    assert (refused.failure.kind, refused.status, refused.retry_after) == ("cut", None, None)


@for_each("protocol", PROTOCOLS)
def test_a_served_model_is_listed(protocol: ProtocolName) -> None:
    with FakeModel().serve() as server:
        suffix = "/v1" if protocol.startswith("openai") else "/v1beta" if protocol.startswith("gemini") else ""
        lab = {"lab": {"base_url": server.url + suffix, "protocol": protocol}}
        with dragoman.Client(providers=lab) as client:
            assert [model.target for model in client.models("lab")] == ["lab/fake-model"]
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
        connection.request("GET", "/nothing")
        assert connection.getresponse().status == 404
        connection.close()


def test_a_served_model_reads_a_request_in_chunks_and_refuses_one_without_a_length() -> None:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
    with FakeModel("Hello.") as fake, fake.serve() as served:
        asking = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
        asking.request("POST", "/v1/chat/completions", iter([body[:9], body[9:]]), encode_chunked=True)
        answer = asking.getresponse()
        assert answer.status == 200 and b"Hello." in answer.read()
        asking.close()
        asking.putrequest("POST", "/v1/chat/completions")
        asking.putheader("Content-Length", "many")
        asking.endheaders()
        answer = asking.getresponse()
        assert answer.status == 413 and b"length is not told" in answer.read()
        asking.close()


def test_arguments_of_a_call_may_stand_in_a_dict() -> None:
    assert call("find", {"max-days": 3}, city="Rome").arguments == '{"max-days":3,"city":"Rome"}'
    with pytest.raises(dragoman.UsageError, match="expected a dict of arguments, or keywords, got a list"):
        call("find", ["Rome"])  # type: ignore[arg-type]


def test_turns_in_one_list_are_told_apart() -> None:
    with pytest.raises(dragoman.UsageError, match="each turn is an argument of its own"):
        FakeModel([[call("find", city="Rome")], "done"])  # type: ignore[list-item]


def test_a_server_shows_where_it_listens() -> None:
    with FakeModel("done").serve() as served:
        assert repr(served) == f"Served({served.url})"
