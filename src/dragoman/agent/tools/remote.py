"""The tools of MCP servers: started or reached because the user's file names them, asked like any other's.

Each connection lives in one task, from its beginning to its end. A server's own words about its tools are only words:
that one is harmless or repeatable is not believed. What it gives back is foreign text.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from dragoman import _json
from dragoman.agent.plain import plain_line, plain_text
from dragoman.agent.plan import Outcome, Plan, ToolFailed
from dragoman.agent.sandbox import clean_environment
from dragoman.agent.tools.toolbox import Planner, other_plan
from dragoman.config import Config, McpServer, read_secret
from dragoman.errors import DragomanError, MissingExtra
from dragoman.types import Tool, ToolCall

if TYPE_CHECKING:
    from mcp import ClientSession

_OPEN_SECONDS: Final = 30.0
_CALL_SECONDS: Final = 300.0
_CLOSE_SECONDS: Final = 5.0
_DESCRIPTION: Final = 1_024  # characters
_RESULT: Final = 100_000  # characters
_NAME_LIMIT: Final = 64
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")


class RemoteError(DragomanError):
    """An MCP server cannot be used."""


@final
class Remote:
    """One server. `open` it, offer its `tools`, `close` it, all in the same event loop."""

    __slots__ = ("_end", "_opened", "_problem", "_secrets", "_server", "_session", "_task", "_work", "name", "tools")

    def __init__(self, name: str, server: McpServer, *, secrets: Mapping[str, str], work: Path) -> None:
        """`secrets`: values of the server's variables or headers. `work`: the work folder, where it does not run."""
        self.name = name
        self.tools: list[Planner] = []
        self._server = server
        self._secrets = dict(secrets)
        self._work = work
        self._session: ClientSession | None = None
        self._opened = asyncio.Event()
        self._end = asyncio.Event()
        self._problem = ""
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect, and learn its tools.

        Raises:
            RemoteError: it does not start, does not answer, or does not speak the protocol.
        """
        self._task = asyncio.create_task(self._hold())
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                await self._opened.wait()
        except TimeoutError:
            self._problem = f"no answer in {_OPEN_SECONDS:g} s"
        if self._problem:
            await self.close()
            raise RemoteError(f"the MCP server {self.name}: {self._problem}")

    async def close(self) -> None:
        """End the connection, and the server when we started it."""
        self._end.set()
        if self._task is None:
            return
        done, _ = await asyncio.wait([self._task], timeout=_CLOSE_SECONDS)
        if not done:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _hold(self) -> None:
        try:
            async with contextlib.AsyncExitStack() as stack:
                session = await _connected(stack, self._server, self._secrets, self._work)
                await session.initialize()
                listed = await session.list_tools()
                self._session = session
                self.tools = [self._planner(tool) for tool in listed.tools if self._is_wanted(tool.name)]
                self._opened.set()
                await self._end.wait()
        except Exception as problem:  # the package and its transports raise many kinds, groups of them too
            self._problem = plain_line(_first_words(problem), 200)
        finally:
            self._session = None
            self._opened.set()

    def _is_wanted(self, tool: str) -> bool:
        return self._server.only is None or tool in self._server.only

    def _planner(self, tool: Any) -> Planner:
        name = _NO_NAME.sub("_", f"{self.name}_{tool.name}")[:_NAME_LIMIT]
        description = plain_text(tool.description or "")[:_DESCRIPTION]
        theirs = str(tool.name)

        def plan(call: ToolCall) -> Plan:
            async def do() -> Outcome:
                return await self._called(theirs, call.values())

            return other_plan(call, f"{plain_line(theirs, 80)} of the MCP server {self.name}", do)

        return Planner(Tool(name, description, _json.raw(tool.input_schema)), plan)

    async def _called(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        if self._session is None:
            raise ToolFailed(f"the MCP server {self.name} is gone{f': {self._problem}' if self._problem else ''}")
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                result = await self._session.call_tool(tool, arguments)
        except TimeoutError:
            raise ToolFailed(f"the MCP server {self.name} did not answer in {_CALL_SECONDS:g} s") from None
        except Exception as problem:
            raise ToolFailed(f"the MCP server {self.name}: {plain_line(_first_words(problem), 300)}") from None
        text = plain_text(_text_of(result))[:_RESULT]
        is_error = bool(getattr(result, "is_error", False))
        return Outcome(text or "(no words)", is_error=is_error, is_foreign=True, is_from_outside=True)


async def open_remotes(config: Config, work: Path) -> tuple[list[Remote], list[str]]:
    """The servers of the user's file that could be opened, and a line for each that could not.

    Raises:
        MissingExtra: there are servers, and the package is not installed.
        ConfigError: a key of one cannot be read.
    """
    servers = config.agent.mcp
    if not servers:
        return [], []
    try:
        import mcp  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtra('MCP servers need the extra "mcp": pip install "dragoman[mcp]"') from None
    remotes = [Remote(name, server, secrets=_secrets(config, name), work=work) for name, server in servers.items()]
    opened = await asyncio.gather(*(remote.open() for remote in remotes), return_exceptions=True)
    problems = [str(problem) for problem in opened if isinstance(problem, Exception)]
    return [remote for remote, problem in zip(remotes, opened, strict=True) if problem is None], problems


def _secrets(config: Config, name: str) -> dict[str, str]:
    server = config.agent.mcp[name]
    folder = (config.path or Path.home() / "x").absolute().parent
    return {
        key: read_secret(
            reference, f"agent.mcp.{name}.{key}", environ=os.environ, home=Path.home(), folder=folder
        ).reveal()
        for key, reference in {**server.environ, **server.headers}.items()
    }


async def _connected(
    stack: contextlib.AsyncExitStack, server: McpServer, secrets: dict[str, str], work: Path
) -> ClientSession:
    """A session with a server. A command runs in the home folder: what lies in the work folder steers it in nothing."""
    from mcp import ClientSession

    if server.url is not None:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        timeout = httpx2.Timeout(30.0, read=_CALL_SECONDS)
        client = httpx2.AsyncClient(headers=secrets, trust_env=False, follow_redirects=False, timeout=timeout)
        await stack.enter_async_context(client)
        streams = await stack.enter_async_context(streamable_http_client(server.url, http_client=client))
    else:
        from mcp import StdioServerParameters
        from mcp.client.stdio import stdio_client

        environ = {"PATH": clean_environment(os.environ, work)["PATH"], **secrets}
        parameters = StdioServerParameters(
            command=server.command[0], args=list(server.command[1:]), env=environ, cwd=Path.home()
        )
        silence = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - the stack closes it
        streams = await stack.enter_async_context(stdio_client(parameters, silence))
    return await stack.enter_async_context(ClientSession(streams[0], streams[1]))


def _text_of(result: Any) -> str:
    lines = []
    for block in getattr(result, "content", None) or ():
        kind = getattr(block, "type", "")
        inner = getattr(block, "resource", None)
        if kind == "text":
            lines.append(block.text)
        elif inner is not None and isinstance(getattr(inner, "text", None), str):
            lines.append(inner.text)
        elif kind == "resource_link":
            lines.append(f"(see {block.uri})")
        else:
            lines.append(f"({getattr(block, 'mime_type', None) or kind or 'something'} left out)")
    if not lines and getattr(result, "structured_content", None) is not None:
        lines.append(_json.to_text(result.structured_content))
    return "\n".join(lines)


def _first_words(problem: BaseException) -> str:
    """What an exception says; of a group, its first."""
    while isinstance(problem, BaseExceptionGroup) and problem.exceptions:
        problem = problem.exceptions[0]
    return str(problem) or type(problem).__name__
