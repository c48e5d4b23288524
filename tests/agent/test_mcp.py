# ruff: noqa: E501 - tables of attacks, which a line end would tear
"""MCP servers over both transports: off until the user adds one, asked like everything else, never trusted."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.faces import Bench, Watching
from agent.playing import call, script
from dragoman.agent.interface import Verdict
from dragoman.agent.safe_text import hidden_character
from dragoman.agent.tools.pins import Pins
from dragoman.agent.tools.remote import Remote, RemoteError, open_remotes
from dragoman.agent.tools.toolbox import Toolbox
from dragoman.config import Config, McpServer, load_config
from dragoman.errors import ConfigError

SERVER = Path(__file__).with_name("mcp_server.py")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server over HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, str(SERVER), "http", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
                break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


def config_of(place: Path, table: str) -> Config:
    file = place / "dragoman.toml"
    file.write_text(f"[agent.mcp.lab]\n{table}\n")
    return load_config(file, environ={}, home=place)


@pytest.fixture
def config(address: str, tmp_path: Path) -> Config:
    """A server that runs already."""
    return config_of(tmp_path, f'url = "{address}"')


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """A server that is started."""
    monkeypatch.setenv("MY_LAB_KEY", "a-key")
    monkeypatch.setenv("OTHER_KEY", "canary-9e1b")
    command = f'command = ["{sys.executable}", "{SERVER}", "stdio"]\nenviron = {{ LAB_KEY = "env:MY_LAB_KEY" }}'
    return config_of(tmp_path, command)


def play(
    config: Config, place: Path, *answers: object, face: Watching | None = None, rules: tuple[str, ...] = ()
) -> Bench:
    """A run of the agent with the server's tools."""

    async def run() -> Bench:
        remotes, problems = await open_remotes(config, place, Pins(place / "pins.json"))
        assert problems == []
        try:
            tools = [planner for remote in remotes for planner in remote.tools]
            bench = Bench(place, script(*answers), *tools, face=face, rules=rules)  # type: ignore[arg-type]
            await bench.agent.run("go")
        finally:
            for remote in remotes:
                await remote.close()
        return bench

    return asyncio.run(run())


def test_a_tool_is_offered_asked_and_called(config: Config, tmp_path: Path) -> None:
    bench = play(config, tmp_path, call("lab_add", a=2, b=3), "done")
    tool = next(each for each in bench.client.requests[0].tools if each.name == "lab_add")
    assert tool.description == "Add two numbers."
    assert set(tool.schema_object()["properties"]) == {"a", "b"}
    assert bench.results() == [("lab_add", "2 + 3 = 5", False)]
    [plan] = bench.face.asked
    assert plan.shown == 'tool "add" of the MCP server lab\n{"a":2,"b":3}'


def test_a_failing_tool_and_its_words_are_harmless(config: Config, tmp_path: Path) -> None:
    bench = play(config, tmp_path, [call("lab_fail"), call("lab_odd__name", text="a\x1b[31mb")], "done")
    tool = next(each for each in bench.client.requests[0].tools if each.name == "lab_fail")
    assert hidden_character(tool.description.replace("\n", " ")) is None
    [(_, failed, is_error), (_, said, _)] = bench.results()
    assert is_error and "fail" in failed
    assert said == "ab" * 2


def test_after_its_answer_only_rules_with_a_pattern_hold(config: Config, tmp_path: Path) -> None:
    """What a server gives back may be somebody's instruction."""
    answers = (
        [call("write", path="before.txt", content="x")],
        [call("lab_add", a=1, b=1)],
        [call("write", path="after.txt", content="x")],
        [call("write", path="named.md", content="x")],
        "done",
    )
    face = Watching(lambda plan: Verdict("no"))
    bench = play(config, tmp_path, *answers, face=face, rules=("write", "lab_add", "write:*.md"))
    assert [plan.subject for plan in face.asked] == [("after.txt",)]
    assert sorted(path.name for path in bench.place.iterdir()) == ["before.txt", "named.md"]


def test_a_command_gets_its_key_and_no_other_and_does_not_run_in_the_work_folder(
    started: Config, tmp_path: Path
) -> None:
    bench = play(started, tmp_path, [call("lab_add", a=2, b=3), call("lab_surroundings")], "done")
    [(_, added, _), (_, text, _)] = bench.results()
    assert added == "2 + 3 = 5"
    assert "a-key" in text and "OTHER_KEY" not in text
    assert text.split()[0] == str(Path.home())


def test_only_the_tools_that_the_user_named_are_offered(address: str, tmp_path: Path) -> None:
    config = config_of(tmp_path, f'url = "{address}"\nonly = ["add"]')
    bench = play(config, tmp_path, "done")
    assert [tool.name for tool in bench.client.requests[0].tools if tool.name.startswith("lab_")] == ["lab_add"]


@pytest.mark.parametrize(
    "server",
    [
        McpServer(command=("/nonexistent/server",)),
        McpServer(command=(sys.executable, "-c", "print('not the protocol')")),
        McpServer(command=(sys.executable, "-c", "")),
        McpServer(url="http://127.0.0.1:9/mcp"),
    ],
    ids=["missing", "babbling", "ending", "refusing"],
)
def test_a_server_that_does_not_answer_is_said(server: McpServer, tmp_path: Path) -> None:
    async def run() -> None:
        with pytest.raises(RemoteError, match="the MCP server lab: "):
            await Remote("lab", server, secrets={}, work=tmp_path, pins=Pins(tmp_path / "pins.json")).open()

    asyncio.run(run())


def test_a_server_that_went_away_is_an_answer_to_the_model(config: Config, tmp_path: Path) -> None:
    async def run() -> str:
        [remote], _ = await open_remotes(config, tmp_path, Pins(tmp_path / "pins.json"))
        plan = Toolbox(remote.tools).plan(call("lab_add", "c1", a=1, b=2))
        await remote.close()
        try:
            return (await plan.do()).text
        except Exception as problem:
            return str(problem)

    assert "the MCP server lab is gone" in asyncio.run(run())


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("", "either command or url"),
        ('command = ["x"]\nurl = "http://x"', "either command or url"),
        ('url = "http://x"\nheaders = { Authorization = "secret" }', "expected env:NAME or file:PATH"),
        ('command = ["x"]\ntrust = true', "agent.mcp.lab.trust: unknown key"),
    ],
)
def test_a_wrong_table_is_refused(table: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said):
        config_of(tmp_path, table)


def test_without_a_server_the_package_is_not_even_imported(tmp_path: Path) -> None:
    code = "import asyncio, sys\nfrom pathlib import Path\nfrom dragoman.agent.environment import Environment\n"
    code += "from dragoman.config import load_config\nfrom contextlib import AsyncExitStack\n"
    code += "config = load_config(None, environ={}, home=Path('/nonexistent'))\nbench = Environment(Path(sys.argv[1]), config.agent)\n"
    code += (
        "assert asyncio.run(bench.reach_remotes(AsyncExitStack(), config, None)) == []\nassert 'mcp' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
