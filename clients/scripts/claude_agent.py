"""PyPI claude-agent-sdk: a query with a tool of ours, which it offers as a server of the Model Context Protocol."""

import asyncio

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, create_sdk_mcp_server, query, tool

from recording import QUESTION, SCHEMA, finish, record


@tool("record", "Record a text.", SCHEMA)
async def recorded(arguments: dict) -> dict:
    """The tool, in the SDK's form."""
    return {"content": [{"type": "text", "text": record(**arguments)}]}


async def asked() -> object:
    yield {"type": "user", "message": {"role": "user", "content": QUESTION}}


async def main() -> str:
    options = ClaudeAgentOptions(
        mcp_servers={"lab": create_sdk_mcp_server("lab", tools=[recorded])},
        allowed_tools=["mcp__lab__record"],
        tools=[],
        system_prompt="Be exact.",
    )
    last = ""
    async for message in query(prompt=asked(), options=options):
        if isinstance(message, ResultMessage):
            last = message.result or ""
    return last


finish(asyncio.run(main()))
