"""Turn the arguments of `run` and `run_stream` into a run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, cast, get_args

import msgspec

from dragoman.client.call import Call
from dragoman.client.mcp.tools import McpTools, read_servers
from dragoman.client.runs.state import OnToolError, ToolRun
from dragoman.errors import UsageError
from dragoman.inputs.keywords import read_count, read_function, read_word

_ON_ERROR: Final = get_args(OnToolError)


class PreparedRun(NamedTuple):
    """A prepared run. `open` starts it, once remote tools are connected; `close` disconnects them."""

    open: Callable[[], Awaitable[ToolRun]]
    close: Callable[[], Awaitable[None]] | None


def read_run(call: Call, *, max_steps: object, approve: object, on_tool_error: object, mcp: object) -> PreparedRun:
    """Read the arguments that only a run has. Raises UsageError as `read_call`, or for a tool that is no function."""
    if missing := [tool.name for tool in call.tools if tool.name not in call.functions]:
        fix = "ask with reply or stream instead, and send each result back with Message.tool"
        raise UsageError(f"tools: expected functions for run to call, got {', '.join(missing)} without one; {fix}")
    steps = read_count("max_steps", max_steps)
    read_function("approve", approve)
    on_error = cast(OnToolError, read_word("on_tool_error", on_tool_error, _ON_ERROR))
    servers = read_servers(mcp)
    opened: list[McpTools] = []

    async def begin() -> ToolRun:
        if not servers:
            return ToolRun(call, max_steps=steps, on_tool_error=on_error)
        opened.append(remote := McpTools(servers))
        await remote.open()
        return ToolRun(_with_tools(call, remote), max_steps=steps, on_tool_error=on_error, remote=remote)

    async def end() -> None:
        while opened:
            await opened.pop().close()

    return PreparedRun(begin, end if servers else None)


def _with_tools(call: Call, remote: McpTools) -> Call:
    """Return the call with the servers' tools beside its own. Raises UsageError for two of one name."""
    known = {tool.name for tool in call.tools}
    if twice := sorted(known.intersection(tool.name for tool in remote.tools)):
        raise UsageError(f"mcp: expected tools of different names, got {', '.join(twice)} more than once")
    return msgspec.structs.replace(call, tools=(*call.tools, *remote.tools))
