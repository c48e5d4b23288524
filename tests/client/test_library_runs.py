"""`run` and `run_stream`: approval, errors of tools, MCP servers; patterns of models; what type checkers infer."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.client import Client
from dragoman.errors import ConfigError
from dragoman.routing.resolve import resolve
from dragoman.testing import FakeModel, call, error

PROJECT = Path(__file__).parents[2]
MCP_SERVER = PROJECT / "tests" / "agent" / "mcp_server.py"


def find(city: str) -> str:
    """Find a city."""
    return f"found {city}"


def breaks(city: str) -> str:
    """Break."""
    raise LookupError(f"no {city}")


async def find_later(city: str) -> str:
    """Find a city."""
    await asyncio.sleep(0)
    return f"found {city}"


def kinds(events: Any) -> list[str]:
    names = [type(event).__name__ for event in events]
    return [name for name in names if name in ("Start", "Finish", "Failure", "ToolStarted", "ToolFinished")]


def results(fake: FakeModel, at: int = 1) -> list[Any]:
    return [part for message in fake.requests[at].messages if message.role == "tool" for part in message.parts]


TURN = ["Start", "Finish"]


def test_a_run_as_events() -> None:
    with FakeModel([call("find", city="Rome"), call("find_later", city="Lima")], "done") as fake:
        with dragoman.run_stream("any/m", "hi", tools=[find, find_later]) as run:
            assert kinds(run) == [*TURN, *["ToolStarted", "ToolFinished"] * 2, *TURN]
    assert str(run.answer) == "done" and run.answer.steps == 2
    assert [one.text for one in results(fake)] == ["found Rome", "found Lima"]


def test_an_asynchronous_run_as_events() -> None:
    async def main() -> tuple[list[str], str]:
        async with dragoman.AsyncClient() as client:
            run = client.run_stream("any/m", "hi", tools=[find, find_later])
            return kinds([event async for event in run]), str(run.answer)

    with FakeModel([call("find", city="Rome"), call("find_later", city="Lima")], "done") as fake:
        seen, answer = asyncio.run(main())
    assert sorted(seen) == sorted([*TURN, *["ToolStarted", "ToolFinished"] * 2, *TURN]) and answer == "done"
    assert [one.text for one in results(fake)] == ["found Rome", "found Lima"], "in the order of the calls"


@pytest.mark.parametrize(("verdict", "told"), [(False, "refused"), ("ask me first", "ask me first")])
def test_a_refusal_is_told_and_nothing_runs(verdict: Any, told: str) -> None:
    asked = []

    def approve(call: dragoman.ToolCall) -> Any:
        asked.append(str(call))
        return verdict

    with FakeModel(call("breaks", city="Rome"), "done") as fake:
        dragoman.run("any/m", "hi", tools=[breaks], approve=approve, on_tool_error="raise")
    assert asked == ['breaks(city="Rome")'] and told in results(fake)[0].text and "no Rome" not in results(fake)[0].text


def test_an_asynchronous_approval() -> None:
    async def approve(call: dragoman.ToolCall) -> bool:
        return call.values() == {"city": "Rome"}

    async def main() -> None:
        async with dragoman.AsyncClient() as client:
            await client.run("any/m", "hi", tools=[find], approve=approve)

    with FakeModel([call("find", city="Rome"), call("find", city="Lima")], "done") as fake:
        asyncio.run(main())
    assert [one.text for one in results(fake)] == ["found Rome", "Error: The user has refused this call."]


def test_an_approval_that_is_none_is_refused() -> None:
    with FakeModel(call("find", city="Rome"), "done") as fake, pytest.raises(dragoman.UsageError, match="approve"):
        dragoman.run("any/m", "hi", tools=[find], approve=lambda call: None)  # type: ignore[arg-type,return-value]
    assert len(fake.requests) == 1


def test_the_exception_of_a_tool_is_told_or_raised() -> None:
    with FakeModel(call("breaks", city="Rome"), "done") as fake:
        dragoman.run("any/m", "hi", tools=[breaks])
    assert results(fake)[0].text == "Error: LookupError: no Rome"
    with FakeModel(call("breaks", city="Rome")), pytest.raises(LookupError, match="no Rome"):
        dragoman.run("any/m", "hi", tools=[breaks], on_tool_error="raise")
    with FakeModel(call("breaks", town="Rome"), "done") as fake:
        dragoman.run("any/m", "hi", tools=[breaks], on_tool_error="raise")
    assert "city" in results(fake)[0].text, "what the model does wrong is told to it"


def test_a_tool_that_must_be_called_is_called_once() -> None:
    with FakeModel(call("find", city="Rome"), "done") as fake:
        dragoman.run("any/m", "hi", tools=[find], tool_choice="find")
    assert [request.tool_choice for request in fake.requests] == [dragoman.Named("find"), "auto"]


def _noted(events: Any, seen: list[Any]) -> Any:
    for event in events:
        seen.append(event)
    return ()


def test_a_failed_turn_is_given_and_raised() -> None:
    with FakeModel(call("find", city="Rome"), error(401)), Client(retries=0) as client:
        run = client.run_stream("any/m", "hi", tools=[find])
        seen = []
        with pytest.raises(dragoman.CallFailed):
            seen.extend(_noted(run, seen))
        assert kinds(seen)[-1] == "Failure"


def test_a_run_that_is_left_early_ends() -> None:
    ran = []

    def note(city: str) -> str:
        ran.append(city)
        return "noted"

    with FakeModel(call("note", city="Rome"), "done") as fake:
        for event in dragoman.run_stream("any/m", "hi", tools=[note]):
            if isinstance(event, dragoman.ToolStarted):
                break
    assert len(fake.requests) == 1 and ran == []


def test_the_tools_of_an_mcp_server() -> None:
    servers = {"lab": {"command": [sys.executable, str(MCP_SERVER), "stdio"]}}
    offered: list[str] = []

    def turn(request: dragoman.Request) -> Any:
        offered.extend(tool.name for tool in request.tools)
        return call(next(name for name in offered if name.startswith("lab_")))

    with FakeModel(turn, "done") as fake:
        answer = dragoman.run("any/m", "hi", tools=[find], mcp=servers)
    assert str(answer) == "done" and "find" in offered and len(results(fake)) == 1
    with FakeModel(), pytest.raises(dragoman.DragomanError, match="MCP server lab"):
        dragoman.run("any/m", "hi", mcp={"lab": {"command": ["/nowhere/at/all"]}})
    with FakeModel(), pytest.raises(dragoman.UsageError, match="either command or url"):
        dragoman.run("any/m", "hi", mcp={"lab": {}})
    with FakeModel(), pytest.raises(ConfigError, match="expected env:NAME"):
        dragoman.run("any/m", "hi", mcp={"lab": {"url": "http://127.0.0.1:9/", "headers": {"authorization": "a key"}}})


def test_the_longest_pattern_of_a_model_wins() -> None:
    lab = {"base_url": "http://127.0.0.1:1", "protocol": "openai-chat"}
    models = {
        "lab/*": {"options": {"temperature": 0.1}},
        "lab/granite*": {"options": {"temperature": 0.2}},
        "lab/granite*code": {"options": {"temperature": 0.3}},
        "lab/granite4-code": {"options": {"temperature": 0.4}},
    }
    with Client({"providers": {"lab": lab}, "models": models}) as client:
        found = {
            name: resolve(f"lab/{name}", client.config).options["temperature"]
            for name in ("qwen", "granite4", "granite-20b-code", "granite4-code", "granitecode")
        }
    assert found == {"qwen": 0.1, "granite4": 0.2, "granite-20b-code": 0.3, "granite4-code": 0.4, "granitecode": 0.3}


def test_a_key_in_code_is_sent_and_never_shown() -> None:
    with Client(
        providers={"lab": {"base_url": "http://127.0.0.1:1", "protocol": "openai-chat", "api_key": "k-secret"}}
    ) as client:
        key = resolve("lab/m", client.config).key
        assert key is not None and key.reveal() == "k-secret" and "k-secret" not in repr(client.config)
    with Client(base_url="http://127.0.0.1:1/v1", api_key="k-secret") as client:
        target = resolve("Org/model", client.config)
        assert target.model == "Org/model" and target.key is not None and "k-secret" not in repr(client.config)


def test_mypy_infers_outputs() -> None:
    """With the project's own settings and cache: what `make test` has checked is not read again."""
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "tests/data/typed_outputs.py"]
    run = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    revealed = [line.partition('"')[2].rstrip('"') for line in run.stdout.splitlines() if "Revealed" in line]
    assert revealed == [
        "typed_outputs.City", "typed_outputs.City", "str", "typed_outputs.City", "list[typed_outputs.City]", "None",
        "typed_outputs.City", "typed_outputs.City", "dragoman.client.runs.loop.Answer[None]",
    ], run.stdout  # fmt: skip
    assert run.returncode == 0, run.stdout


def test_the_reply_of_a_stream_has_its_attempts() -> None:
    with FakeModel(error(503, "busy"), "hello", error(503, "busy"), "hello"):
        with dragoman.Client(retries=0) as client:
            with client.stream(["ollama/a", "ollama/b"], "hi") as stream:
                assert "".join(stream.text_stream) == "hello"

        async def ask() -> dragoman.AsyncStream:
            async with dragoman.AsyncClient(retries=0) as client:
                async with client.stream(["ollama/a", "ollama/b"], "hi") as stream:
                    assert [text async for text in stream.text_stream] == ["hello"]
                return stream

        for done in (stream, asyncio.run(ask())):
            assert [each.target for each in done.reply.attempts] == ["ollama/a", "ollama/b"]
            assert done.reply.attempts == done.attempts
            assert done.reply.attempts[0].status == 503
