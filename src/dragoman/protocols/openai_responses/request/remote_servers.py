"""MCP servers that the provider calls, in the form of Responses.

OpenAI asks before it calls a tool unless the request says `require_approval: "never"`; other protocols never ask.

Spec: https://platform.openai.com/docs/guides/tools-connectors-mcp (read 2026-11-25).
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from dragoman import _json
from dragoman._json import Json
from dragoman.errors import UsageError
from dragoman.protocol.native_tools import NativeTool, RemoteServer, Written

_SAID: Final = frozenset({
    "type", "server_label", "server_url", "authorization", "headers", "allowed_tools", "require_approval",
})  # fmt: skip
#: Tools times entries of a list of allowed ones: each is held against each, and a server's tool keeps what is named.
_MOST_PAIRS: Final = 100_000


def read_server_tool(entry: dict[str, Any]) -> NativeTool:
    """Parse the entry of a server among a request's tools."""
    allowed = entry.get("allowed_tools")
    names = allowed.get("tool_names") if isinstance(allowed, dict) else allowed
    headers = entry.get("headers")
    server = RemoteServer(
        str(entry.get("server_label") or ""),
        str(entry.get("server_url") or ""),
        str(entry.get("authorization") or ""),
        {key: value for key, value in headers.items() if isinstance(value, str)} if isinstance(headers, dict) else {},
        tuple([str(name) for name in names]) if isinstance(names, list) else None,
    ).with_token()
    unsaid = tuple(key for key, value in entry.items() if key not in _SAID and value is not None)
    return NativeTool("mcp", "mcp", "tools.mcp", unsaid=unsaid, server=server, bound=_bound(entry, server))


def _bound(entry: dict[str, Any], server: RemoteServer) -> str:
    if not server.url or not server.name:
        return "it has no name and address of a server"
    if entry.get("require_approval") != "never":
        return 'it wants somebody to approve calls (require_approval is not "never")'
    allowed = entry.get("allowed_tools")
    if isinstance(allowed, dict) and allowed.get("read_only") is not None:
        return "it allows only tools that read"
    return ""


def write_server_tool(server: RemoteServer) -> Written:
    """Render the entry of a server among a request's tools."""
    entry: dict[str, Json] = {"type": "mcp", "server_label": server.name, "server_url": server.url}
    if server.token:
        entry["authorization"] = server.token
    if server.headers:
        entry["headers"] = dict(server.headers)
    if server.allowed is not None:
        entry["allowed_tools"] = list(server.allowed)
    entry["require_approval"] = "never"
    return Written(_json.raw(entry), _json.raw({"type": "mcp", "server_label": server.name}))


def is_meant(tool: NativeTool, said: dict[str, Any]) -> bool:
    """Return whether a choice, or an entry of a list of allowed tools, is for a tool that is no function."""
    if tool.server is not None and said.get("server_label") not in (None, tool.server.name):
        return False
    return tool.name == said.get("type") or tool.name == said.get("name")


def allowed_of(tools: list[NativeTool], entries: list[dict[str, Any]]) -> list[NativeTool]:
    """Return the tools that a list of allowed ones is for: of a server, only the tools that it names.

    Raises:
        UsageError: there are too many of both.
    """
    if len(tools) * len(entries) > _MOST_PAIRS:
        raise UsageError(f"tool_choice.tools: {len(entries)} entries for {len(tools)} tools that are no functions")
    meanings = ((tool, [entry for entry in entries if is_meant(tool, entry)]) for tool in tools)
    return [_narrowed(tool, found) for tool, found in meanings if found]


def _narrowed(tool: NativeTool, entries: list[dict[str, Any]]) -> NativeTool:
    names = {name if isinstance(name := entry.get("name"), str) else None: None for entry in entries}
    server = tool.server
    if server is None or None in names:
        return tool
    known = names if server.allowed is None else frozenset(server.allowed)
    allowed = tuple([name for name in names if name is not None and name in known])
    return msgspec.structs.replace(tool, server=msgspec.structs.replace(server, allowed=allowed))
