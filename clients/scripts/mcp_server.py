"""A server of the Model Context Protocol on standard input and output with one tool, `search`, as several have.

Its result proves which server was asked for what. Spec: https://modelcontextprotocol.io/specification (2026-11-22).
"""

from __future__ import annotations

import hashlib
import json
import sys
from typing import Any

TOOL = {
    "name": "search",
    "description": "Search the notes of this server.",
    "inputSchema": {
        "type": "object",
        "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["query", "limit"],
    },
}


def answer(server: str, method: str, given: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a method; None: there is no such method."""
    if method == "initialize":
        return {
            "protocolVersion": given.get("protocolVersion", "2025-06-18"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": server, "version": "1.0.0"},
        }
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        arguments = given.get("arguments") or {}
        text = "\n".join([server, str(arguments.get("query")), repr(arguments.get("limit"))])
        proof = hashlib.sha256(text.encode()).hexdigest()
        return {"content": [{"type": "text", "text": proof}], "isError": False}
    return None


def main(server: str) -> None:
    """Answer until the input ends."""
    for line in sys.stdin:
        said = json.loads(line)
        if "id" not in said:
            continue
        result = answer(server, said["method"], said.get("params") or {})
        outcome = {"error": {"code": -32601, "message": "no such method"}} if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": said["id"], **outcome}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
