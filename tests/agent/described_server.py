"""A server of the Model Context Protocol in the standard library alone, which starts ten times as fast.

python described_server.py FILE

FILE holds JSON: descriptions of tools by name, each with the names of its arguments.
"""

import json
import sys

VERSION = "2025-06-18"


def answer(method: str, described: dict[str, tuple[str, list[str]]]) -> dict[str, object] | None:
    if method == "initialize":
        return {
            "protocolVersion": VERSION,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "lab", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [tool(name, *words) for name, words in described.items()]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "called"}]}
    return None


def tool(name: str, description: str, arguments: list[str]) -> dict[str, object]:
    schema = {"type": "object", "properties": {each: {"type": "string"} for each in arguments}, "required": arguments}
    return {"name": name, "description": description, "inputSchema": schema}


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as opened:
        described = json.load(opened)
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        result = answer(asked["method"], described)
        said: dict[str, object] = {"jsonrpc": "2.0", "id": asked["id"]}
        said |= {"error": {"code": -32601, "message": "no such method"}} if result is None else {"result": result}
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
