"""Of an MCP server's tools and results nothing is lost without a word, in the library and in the agent."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

import dragoman
from agent.playing import call as wanted
from dragoman.agent.tools.pins import Pins
from dragoman.agent.tools.remote import Remote
from dragoman.agent.tools.toolbox import Toolbox
from dragoman.config import McpServer
from dragoman.testing import FakeModel, call

#: A server whose tools come on pages of two: python SERVER HOW_MANY. It is made with the SDK, which takes a second of
#: its own to begin; `PLAIN` says the same.
SERVER = """
import asyncio, sys
from mcp import types
from mcp.server import Server
from mcp.server.stdio import stdio_server

MOST = int(sys.argv[1])

async def listed(context, params):
    first = int(params.cursor) if params and params.cursor else 0
    tools = [types.Tool(name=f"t{n}", input_schema={"type": "object"}) for n in range(first, min(first + 2, MOST))]
    return types.ListToolsResult(tools=tools, next_cursor=str(first + 2) if first + 2 < MOST else None)

async def called(context, params):
    text = types.TextResourceContents(uri="file:///a", text="inner")
    blob = types.BlobResourceContents(uri="file:///b", mime_type="application/pdf", blob="cGRm")
    return types.CallToolResult(content=[
        types.TextContent(type="text", text=params.name),
        types.ImageContent(type="image", data="cG5n", mime_type="image/png"),
        types.EmbeddedResource(type="resource", resource=text), types.EmbeddedResource(type="resource", resource=blob),
        types.ResourceLink(type="resource_link", name="c", uri="file:///c"),
    ])

async def main():
    server = Server("paged", on_list_tools=listed, on_call_tool=called)
    async with stdio_server() as (inward, outward):
        await server.run(inward, outward, server.create_initialization_options())

asyncio.run(main())
"""
PLAIN = """
import json, sys

MOST = int(sys.argv[1])
CONTENT = [
    {"type": "image", "data": "cG5n", "mimeType": "image/png"},
    {"type": "resource", "resource": {"uri": "file:///a", "text": "inner"}},
    {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "application/pdf", "blob": "cGRm"}},
    {"type": "resource_link", "name": "c", "uri": "file:///c"},
]

for line in sys.stdin:
    asked = json.loads(line)
    params = asked.get("params") or {}
    match asked["method"] if "id" in asked else None:
        case "initialize":
            result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                      "serverInfo": {"name": "paged", "version": "1"}}
        case "tools/list":
            first = int(params.get("cursor") or 0)
            names = [f"t{n}" for n in range(first, min(first + 2, MOST))]
            result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
            if first + 2 < MOST:
                result["nextCursor"] = str(first + 2)
        case "tools/call":
            result = {"content": [{"type": "text", "text": params["name"]}, *CONTENT]}
        case _:
            continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def written(server: str, factory: pytest.TempPathFactory) -> str:
    file = factory.mktemp("mcp") / "server.py"
    file.write_text(server)
    return str(file)


@pytest.fixture(scope="module")
def sdk_script(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(SERVER, tmp_path_factory)


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(PLAIN, tmp_path_factory)


def remote_of(script: str, place: Path, tools: int, only: tuple[str, ...] | None = None) -> Remote:
    server = McpServer(command=(sys.executable, script, str(tools)), only=only)
    return Remote("m", server, secrets={}, work=place, pins=Pins(place / "pins.json"))


def test_the_tools_of_all_pages_are_offered_and_a_result_is_whole_in_the_library(sdk_script: str) -> None:
    servers = {"m": {"command": [sys.executable, sdk_script, "5"]}}
    with FakeModel(call("m_t4"), "done") as fake:
        dragoman.run("a/m", "go", mcp=servers)
    assert [tool.name for tool in fake.requests[0].tools] == [f"m_t{n}" for n in range(5)]
    parts = [part for message in fake.requests[1].messages[2:] for part in message.parts]
    [result] = [part for part in parts if isinstance(part, dragoman.ToolResult)]
    assert [part.text for part in result.parts if isinstance(part, dragoman.Text)] == ["t4", "inner", "(see file:///c)"]
    assert [part for part in parts if isinstance(part, dragoman.Media)] == [
        dragoman.Media("image", "image/png", "cG5n"),
        dragoman.Media("document", "application/pdf", "cGRm"),
    ]


@pytest.mark.parametrize(
    ("tools", "only", "words"),
    [
        (129, None, r"mcp\.m: only the first 128 tools are taken; name those you want in only"),
        (3, ["t1", "t7"], r'mcp\.m: it has no tool "t7"'),
    ],
)
def test_the_library_refuses_to_leave_tools_out_silently(
    script: str, tools: int, only: list[str] | None, words: str
) -> None:
    table = {"command": [sys.executable, script, str(tools)], **({"only": only} if only else {})}
    with FakeModel("never said") as fake, pytest.raises(dragoman.UsageError, match=words):
        dragoman.run("a/m", "go", mcp={"m": table})
    assert fake.requests == []


def test_a_tool_of_the_last_page_is_found_by_its_name(script: str) -> None:
    servers = {"m": {"command": [sys.executable, script, "140"], "only": ["t139"]}}
    with FakeModel("done") as fake:
        dragoman.run("a/m", "go", mcp=servers)
    assert [tool.name for tool in fake.requests[0].tools] == ["m_t139"]


def test_the_agent_says_what_it_leaves_out(script: str, tmp_path: Path) -> None:
    async def run() -> tuple[Remote, str]:
        remote = remote_of(script, tmp_path, 130)
        await remote.open()
        try:
            outcome = await Toolbox(remote.tools).plan(wanted("m_t127", "c1")).do()
        finally:
            await remote.close()
        return remote, outcome.text

    remote, text = asyncio.run(run())
    assert len(remote.tools) == 128
    assert remote.problems == ["the MCP server m: only the first 128 tools are taken; name those you want in only"]
    assert text.split("\n") == [
        "t127",
        "(image/png left out)",
        "inner",
        "(application/pdf left out)",
        "(see file:///c)",
    ]


def test_the_agent_says_which_named_tool_is_not_there(script: str, tmp_path: Path) -> None:
    async def run() -> Remote:
        remote = remote_of(script, tmp_path, 3, ("t2", "nothing"))
        await remote.open()
        await remote.close()
        return remote

    remote = asyncio.run(run())
    assert [planner.tool.name for planner in remote.tools] == ["m_t2"]
    assert remote.problems == ['the MCP server m: it has no tool "nothing"']
