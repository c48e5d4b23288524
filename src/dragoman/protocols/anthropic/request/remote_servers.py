"""MCP servers that the provider calls, in the form of Messages: `mcp_servers`, and a toolset of each among the tools.

Spec: https://platform.claude.com/docs/en/agents-and-tools/mcp-connector (read 2026-11-25).
"""

from __future__ import annotations

from typing import Any, Final

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.json_fields import as_object, read
from dragoman.protocol.native_tools import NativeTool, RemoteServer, Written

_TOOLSET: Final = "mcp_toolset"
_SERVERS: Final = "mcp_servers"
_OF_SERVER: Final = frozenset({"type", "name", "url", "authorization_token", "tool_configuration"})
_OF_TOOLSET: Final = frozenset({"type", "mcp_server_name", "configs", "default_config", "tools"})


def is_toolset(entry: dict[str, Any]) -> bool:
    """Return whether an entry among the tools is a server's toolset."""
    return entry.get("type") == _TOOLSET


def read_server_tools(entries: list[dict[str, Any]], native: dict[str, Raw]) -> list[NativeTool]:
    """Remove the servers from a request's native fields and return them. The older form has no toolsets."""
    listed = read(native.pop(_SERVERS, None))
    servers = [server for server in (listed if isinstance(listed, list) else []) if isinstance(server, dict)]
    toolsets = {str(entry.get("mcp_server_name")): entry for entry in entries if is_toolset(entry)}
    found = [
        _read(name, server, toolsets.get(name))
        for server in servers
        if (name := str(server.get("name"))) in toolsets or _is_enabled(server)
    ]
    known = {str(server.get("name")) for server in servers}
    return found + [_read(name, None, toolset) for name, toolset in toolsets.items() if name not in known]


def _is_enabled(server: dict[str, Any]) -> bool:
    settings = server.get("tool_configuration")
    return not isinstance(settings, dict) or settings.get("enabled") is not False


def _read(name: str, server: dict[str, Any] | None, toolset: dict[str, Any] | None) -> NativeTool:
    server = server or {}
    settings = server.get("tool_configuration")
    listed = settings.get("allowed_tools") if isinstance(settings, dict) else None
    allowed = tuple([str(each) for each in listed]) if isinstance(listed, list) else None
    bound = "" if server.get("url") else "it has no address of a server"
    unsaid = [f"{_SERVERS}.{key}" for key in server if key not in _OF_SERVER]
    if toolset is not None:
        allowed, reason, more = _allowed(toolset, allowed)
        bound = bound or reason
        unsaid += more
    token = str(server.get("authorization_token") or "")
    found = RemoteServer(name, str(server.get("url") or ""), token, {}, allowed)
    where = _SERVERS if toolset is None else f"tools.{_TOOLSET}"
    return NativeTool("mcp", "mcp", where, unsaid=tuple(unsaid), server=found, bound=bound)


def _allowed(toolset: dict[str, Any], allowed: tuple[str, ...] | None) -> tuple[tuple[str, ...] | None, str, list[str]]:
    """Return the tools that a toolset allows (None for all), why no other protocol says that, and its other fields."""
    usual, configs = as_object(toolset.get("default_config")), as_object(toolset.get("configs"))
    is_on = usual.get("enabled") is not False
    on = {name: as_object(config).get("enabled", is_on) is not False for name, config in configs.items()}
    pinned = toolset.get("tools")
    reason = ""
    if isinstance(pinned, list):
        names = [str(as_object(tool).get("name")) for tool in pinned]
        allowed = tuple([name for name in names if on.get(name, is_on)])
    elif not is_on:
        allowed = tuple([name for name, enabled in on.items() if enabled])
    elif not all(on.values()):
        reason = "it leaves out single tools"
    unsaid = [key for key, value in toolset.items() if key not in _OF_TOOLSET and value is not None]
    unsaid += [f"default_config.{key}" for key in usual if key != "enabled"]
    unsaid += sorted({f"configs.{key}" for config in configs.values() for key in as_object(config) if key != "enabled"})
    unsaid += ["tools"] if pinned else []
    return allowed, reason, unsaid


def write_server_tool(server: RemoteServer) -> Written:
    """Render a server and its toolset."""
    entry: dict[str, Json] = {"type": "url", "name": server.name, "url": server.url}
    if server.token:
        entry["authorization_token"] = server.token
    toolset: dict[str, Json] = {"type": _TOOLSET, "mcp_server_name": server.name}
    if server.allowed is not None:
        toolset["default_config"] = {"enabled": False}
        toolset["configs"] = {name: {"enabled": True} for name in server.allowed}
    unsaid = ("headers",) if server.headers else ()
    return Written(_json.raw(toolset), None, unsaid, {_SERVERS: [entry]})
