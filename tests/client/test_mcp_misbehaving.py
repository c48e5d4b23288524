"""MCP servers that do not keep to their protocol: what of them can be used is, and the rest is said."""

from __future__ import annotations

import asyncio
import resource
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import dragoman
from agent.playing import call as wanted
from dragoman import _json
from dragoman.agent.tools.pins import Pins
from dragoman.agent.tools.remote import Remote, RemoteError
from dragoman.agent.tools.toolbox import Toolbox
from dragoman.client.mcp import stdio as mcp_stdio
from dragoman.client.mcp.session import read_result
from dragoman.config import McpServer
from dragoman.errors import McpFailed
from dragoman.testing import FakeModel, call

#: A server that says line by line what a test wants: python SERVER {"method": what it answers}. "pages" lists what each
#: cursor gives, "flood" is a method that is answered by a line without an end.
SERVER = """
import json, sys
said = json.loads(sys.argv[1])

def write(value):
    sys.stdout.write(json.dumps(value) + "\\n")
    sys.stdout.flush()

for line in sys.stdin:
    asked = json.loads(line)
    method, id = asked.get("method"), asked.get("id")
    if id is None:
        continue
    if method == said.get("flood"):
        sys.stdout.write('{"jsonrpc": "2.0", "id": %d, "result": {"x": "' % id)
        while True:
            sys.stdout.write("a" * 65536)
    if method == said.get("unasked"):
        while True:
            sys.stdout.write('{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}\\n' * 1000)
    if method == "initialize":
        result = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        cursor = (asked.get("params") or {}).get("cursor") or ""
        result = said["pages"].get(cursor) or said["pages"]["*"]
        if result.get("nextCursor") == "+":
            result = {**result, "nextCursor": str(int(cursor or 0) + 1)}
    elif method == "tools/call":
        result = said["result"] or {"content": [{"type": "text", "text": "a" * int(said["length"])}]}
    else:
        write({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "none"}})
        continue
    write({"jsonrpc": "2.0", "id": id, "result": result})
"""
TOOL = {"name": "t", "inputSchema": {"type": "object"}}
ONE_PAGE = {"*": {"tools": [TOOL]}}


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("mcp") / "server.py"
    file.write_text(SERVER)
    return str(file)


def command(script: str, **said: Any) -> tuple[str, ...]:
    return (sys.executable, script, _json.to_text(said))


def called(script: str, result: Any, **more: Any) -> dragoman.ToolResult:
    """What the library takes from a result of a tool."""
    said = command(script, pages=ONE_PAGE, result=result, **more)
    with FakeModel(call("m_t"), "done") as fake:
        dragoman.run("a/m", "go", mcp={"m": {"command": list(said)}})
    [found] = [
        part for message in fake.requests[1].messages for part in message.parts if isinstance(part, dragoman.ToolResult)
    ]
    return found


def listed(script: str, place: Path, pages: dict[str, Any]) -> Remote:
    """The agent's view of a server's tools."""

    async def run() -> Remote:
        server = McpServer(command=command(script, pages=pages))
        remote = Remote("m", server, secrets={}, work=place, pins=Pins(place / "pins.json"))
        await remote.open()
        await remote.close()
        return remote

    return asyncio.run(run())


def refused(script: str, pages: dict[str, Any]) -> str:
    with FakeModel("never said") as fake, pytest.raises(dragoman.UsageError) as caught:
        dragoman.run("a/m", "go", mcp={"m": {"command": list(command(script, pages=pages))}})
    assert fake.requests == []
    return str(caught.value)


# ---------------------------------------------------------------- lists of tools


def test_a_list_of_endless_pages_is_told_as_that(script: str, tmp_path: Path) -> None:
    pages = {"*": {"tools": [], "nextCursor": "+"}}
    words = "its list of tools did not end after 256 pages, which had 0 tools"
    assert words in refused(script, pages)
    assert listed(script, tmp_path, pages).problems == [f"the MCP server m: {words}"]


@pytest.mark.parametrize("cursor", ["a", "b"])
def test_a_page_that_comes_again_ends_the_list_and_is_told_once(script: str, tmp_path: Path, cursor: str) -> None:
    """Its own page again, or one before it."""
    pages = {"": {"tools": [TOOL], "nextCursor": "a"}, "a": {"tools": [], "nextCursor": "b"},
             "b": {"tools": [{**TOOL, "name": "u"}], "nextCursor": cursor}}  # fmt: skip
    words = "its list of tools goes in a circle: after 3 pages it named one of them again"
    assert refused(script, pages) == f"mcp.m: {words}"
    remote = listed(script, tmp_path, pages)
    assert remote.problems == [f"the MCP server m: {words}"]
    assert [planner.tool.name for planner in remote.tools] == ["m_t", "m_u"]


def test_a_name_that_comes_often_is_told_once(script: str) -> None:
    pages = {"*": {"tools": [TOOL] * 40}}
    assert refused(script, pages) == "mcp.m: two tools are called m_t"


# ---------------------------------------------------------------- results


@pytest.mark.parametrize("data", ["!!!", "cG5n=", "cG5", "", "data:image/png;base64,cG5n"])
def test_data_that_is_not_base64_is_not_given_on(script: str, data: str) -> None:
    content = [{"type": "image", "data": data, "mimeType": "image/png"}, {"type": "text", "text": "b"}]
    inner = {"uri": "file:///b", "mimeType": "application/pdf", "blob": data}
    content.append({"type": "resource", "resource": inner})
    said = called(script, {"content": content})
    left = ("(image/png left out: its data is not base64)", "b", "(application/pdf left out: its data is not base64)")
    assert tuple(part.text for part in said.parts if isinstance(part, dragoman.Text)) == left


def test_base64_over_several_lines_is_one_value(script: str) -> None:
    content = [{"type": "image", "data": "cG\r\n5n\n", "mimeType": "image/png"}]
    with FakeModel(call("m_t"), "done") as fake:
        dragoman.run("a/m", "go", mcp={"m": {"command": list(command(script, pages=ONE_PAGE,
                                                                     result={"content": content}))}})  # fmt: skip
    media = [part for message in fake.requests[1].messages for part in message.parts if type(part) is dragoman.Media]
    assert media == [dragoman.Media("image", "image/png", "cG5n")]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"type": "hologram", "data": "x"}, "(hologram left out)"),
        ({"type": "image", "mimeType": "image/png"}, "(image left out)"),
        ({"type": "text"}, "(text left out)"),
        ({"type": "resource", "resource": {"uri": "file:///a"}}, "(resource left out)"),
        ({"text": "no type"}, "(something left out)"),
        ({}, "(something left out)"),
        ("bare", "bare"),
        (None, "(something left out)"),
        ({"type": ["text"]}, "(something left out)"),
    ],
)
def test_a_part_that_nobody_knows_does_not_cost_the_others(script: str, entry: Any, words: str) -> None:
    content = [{"type": "text", "text": "before"}, entry, {"type": "text", "text": "after"}]
    said = called(script, {"content": content})
    assert [part.text for part in said.parts if isinstance(part, dragoman.Text)] == ["before", words, "after"]
    assert not said.is_error


@pytest.mark.parametrize("content", ["words", {"type": "text", "text": "words"}])
def test_a_content_without_its_list_is_read(script: str, content: Any) -> None:
    said = called(script, {"content": content})
    assert [part.text for part in said.parts if isinstance(part, dragoman.Text)] == ["words"]


def test_the_agent_keeps_the_rest_of_a_result_too(script: str, tmp_path: Path) -> None:
    content = [{"type": "hologram"}, {"type": "text", "text": "after"}]

    async def run() -> str:
        server = McpServer(command=command(script, pages=ONE_PAGE, result={"content": content}))
        remote = Remote("m", server, secrets={}, work=tmp_path, pins=Pins(tmp_path / "pins.json"))
        await remote.open()
        try:
            return (await Toolbox(remote.tools).plan(wanted("m_t", "c1")).do()).text
        finally:
            await remote.close()

    assert asyncio.run(run()) == "(hologram left out)\nafter"


def test_what_is_read_of_a_result_is_told_of_no_result() -> None:
    assert read_result(None) == ()


# ---------------------------------------------------------------- lines without an end


def memory() -> int:
    """MiB that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


@pytest.mark.parametrize("flood", ["initialize", "tools/list"])
def test_a_line_without_an_end_ends_the_server_and_is_told(script: str, tmp_path: Path, flood: str) -> None:
    table = {"command": list(command(script, pages=ONE_PAGE, flood=flood))}
    before, began = memory(), time.process_time()
    with (
        FakeModel("never said"),
        pytest.raises(McpFailed, match=r"the MCP server m .*wrote a line of more than 16 MiB"),
    ):
        dragoman.run("a/m", "go", mcp={"m": table})
    assert time.process_time() - began < 5
    assert memory() - before < 80  # the line, and what is copied of it

    async def run() -> None:
        server = McpServer(command=tuple(table["command"]))
        await Remote("m", server, secrets={}, work=tmp_path, pins=Pins(tmp_path / "pins.json")).open()

    with pytest.raises(RemoteError, match=r"the MCP server m: .*wrote a line of more than 16 MiB"):
        asyncio.run(run())


def test_a_call_that_is_answered_by_a_line_without_an_end_is_told(script: str, tmp_path: Path) -> None:
    table = {"command": list(command(script, pages=ONE_PAGE, flood="tools/call"))}
    with FakeModel(call("m_t"), "done") as fake:
        dragoman.run("a/m", "go", mcp={"m": table})
    [said] = [
        part for message in fake.requests[1].messages for part in message.parts if isinstance(part, dragoman.ToolResult)
    ]
    words = "Error: m_t could not be called: the server wrote a line of more than 16 MiB"
    assert said.parts == (dragoman.Text(words),)

    async def run() -> str:
        server = McpServer(command=tuple(table["command"]))
        remote = Remote("m", server, secrets={}, work=tmp_path, pins=Pins(tmp_path / "pins.json"))
        await remote.open()
        try:
            await Toolbox(remote.tools).plan(wanted("m_t", "c1")).do()
        except dragoman.agent.tool_plan.ToolFailed as problem:
            return str(problem)
        finally:
            await remote.close()
        return ""

    assert asyncio.run(run()) == "the MCP server m: the server wrote a line of more than 16 MiB"


def test_lines_up_to_the_bound_pass(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_stdio, "MOST_MESSAGE", 200_000)
    fits = called(script, None, length=190_000)
    assert [len(part.text) for part in fits.parts if isinstance(part, dragoman.Text)] == [190_000]
    [words] = called(script, None, length=300_000).parts
    assert isinstance(words, dragoman.Text)
    assert "wrote a line of more than" in words.text


# ---------------------------------------------------------------- very many of something


def test_a_page_of_very_many_tools_is_refused(script: str) -> None:
    """100,000 of them took 6.6 s."""
    pages = {"*": {"tools": [{**TOOL, "name": f"t{number}"} for number in range(5_000)]}}
    file = Path(script).with_name("many.json")
    file.write_text(_json.to_text({"pages": pages}))
    code = f"import sys; sys.argv[1] = open({str(file)!r}).read(); exec(open({script!r}).read())"
    with FakeModel("never said"), pytest.raises(McpFailed, match="lists 5,000 tools at once, more than 4,096"):
        dragoman.run("a/m", "go", mcp={"m": {"command": [sys.executable, "-c", code, "-"]}})


@pytest.mark.parametrize("method", ["initialize", "tools/list"])
def test_a_flood_of_what_nobody_asked_for_ends_the_server_and_is_told(script: str, method: str) -> None:
    table = {"command": list(command(script, pages=ONE_PAGE, unasked=method))}
    with FakeModel("never said"), pytest.raises(McpFailed, match="sent more than 5,000 messages that nobody asked"):
        dragoman.run("a/m", "go", mcp={"m": table})
