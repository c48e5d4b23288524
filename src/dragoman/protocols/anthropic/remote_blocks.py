"""A provider's calls of MCP servers' tools, in the form of Messages.

Spec: https://platform.claude.com/docs/en/agents-and-tools/mcp-connector (read 2026-11-25).
"""

from __future__ import annotations

from dragoman import _json
from dragoman._json import Raw
from dragoman.codec.hosted.remote_calls import Remote, RemoteListing, id_in_form


def render_remote(remote: Remote) -> list[Raw]:
    """Render a call and its result, or a server's tools, as blocks."""
    if isinstance(remote, RemoteListing):
        return [_json.raw({"type": "mcp_tool_listing", "mcp_server_name": remote.server, "tools": list(remote.tools)})]
    id = id_in_form(remote, "mcptoolu_")
    use = {
        "type": "mcp_tool_use", "id": id, "name": remote.name, "server_name": remote.server, "input": remote.arguments,
    }  # fmt: skip
    content = [{"type": "text", "text": remote.result}] if remote.result else []
    result = {"type": "mcp_tool_result", "tool_use_id": id, "is_error": remote.is_error, "content": content}
    return [_json.raw(use), _json.raw(result)]
