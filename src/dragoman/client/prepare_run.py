"""The arguments of `run` and `run_stream` → a run that is ready to begin."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple, cast, get_args

from dragoman.client.call import read_call
from dragoman.client.tool_run import OnToolError, ToolRun
from dragoman.errors import UsageError
from dragoman.inputs.keywords import read_count, read_function, read_word, wrong

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
    if mcp is not None and not isinstance(mcp, Mapping):
        raise wrong("mcp", "a mapping of servers", mcp)
    if mcp:
        raise UsageError("mcp: not yet")
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

    async def begin() -> ToolRun:
        return ToolRun(call, max_steps=steps, on_tool_error=on_error)

    return PreparedRun(begin, None)
