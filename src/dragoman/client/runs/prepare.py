"""The arguments of `run` and `run_stream` → a run that is ready to begin."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple, cast, get_args

import msgspec

from dragoman.client.call import Call, read_call
from dragoman.client.mcp.tools import McpTools, read_servers
from dragoman.client.runs.state import OnToolError, ToolRun
from dragoman.errors import UsageError
from dragoman.inputs.keywords import read_count, read_function, read_word

_ON_ERROR: Final = get_args(OnToolError)


class PreparedRun(NamedTuple):
    """`open` begins the run, once tools that run elsewhere are reached; `close` lets go of those."""

    open: Callable[[], Awaitable[ToolRun]]
    close: Callable[[], Awaitable[None]] | None


def read_run(
    target: object,
    messages: object,
    *,
    system: object,
    tools: object,
    tool_choice: object,
    output_type: object,
    output_retries: object,
    timeout: object,
    session_id: object,
    params: object,
    keywords: Mapping[str, object],
    max_steps: object,
    approve: object,
    on_tool_error: object,
    mcp: object,
) -> PreparedRun:
    """Read the arguments. Raises UsageError as `read_call`."""
    steps = read_count("max_steps", max_steps)
    read_function("approve", approve)
    on_error = cast(OnToolError, read_word("on_tool_error", on_tool_error, _ON_ERROR))
    servers = read_servers(mcp)
    call = read_call(
        target,
        messages,
        system=system,
        tools=tools,
        tool_choice=tool_choice,
        output_type=output_type,
        output_retries=output_retries,
        timeout=timeout,
        session_id=session_id,
        params=params,
        keywords=keywords,
    )
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
    """The call with the tools of the servers beside its own. Raises UsageError for two of one name."""
    known = {tool.name for tool in call.tools}
    if twice := sorted(known.intersection(tool.name for tool in remote.tools)):
        raise UsageError(f"mcp: expected tools of different names, got {', '.join(twice)} more than once")
    return msgspec.structs.replace(call, tools=(*call.tools, *remote.tools))
