"""A provider's calls of MCP servers' tools, in the form of Responses.

Spec: https://platform.openai.com/docs/guides/tools-connectors-mcp (read 2026-11-25).
"""

from __future__ import annotations

import hashlib

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.hosted.remote_calls import Remote, RemoteListing, id_in_form

_DIGITS = 24


def render_remote(remote: Remote) -> list[Raw]:
    """Render a call with its result, or a server's tools, as an item."""
    if isinstance(remote, RemoteListing):
        seen = hashlib.sha256(remote.server.encode("utf-8", "replace")).hexdigest()[:_DIGITS]
        listed: dict[str, Json] = {
            "id": f"mcpl_{seen}", "type": "mcp_list_tools", "server_label": remote.server,
            "tools": list(remote.tools),
        }  # fmt: skip
        return [_json.raw(listed)]
    item: dict[str, Json] = {
        "id": id_in_form(remote, "mcp_"), "type": "mcp_call", "server_label": remote.server,
        "name": remote.name, "arguments": bytes(remote.arguments).decode("utf-8", "surrogatepass"),
    }  # fmt: skip
    if remote.is_error:
        content: Json = [{"type": "text", "text": remote.result}]
        item |= {"status": "failed", "error": {"type": "mcp_tool_execution_error", "content": content}}
    else:
        item |= {"status": "completed", "output": remote.result}
    return [_json.raw(item)]
