"""The tools of MCP servers for `run`: connected when the run begins, disconnected when it ends. Needs the extra
`mcp`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TextIO, final

from dragoman import _json
from dragoman.client.failure_words import shown_address
from dragoman.client.mcp.session import (
    CALL_SECONDS,
    OPEN_SECONDS,
    McpSession,
    read_result,
    read_secrets,
    require_package,
)
from dragoman.config import McpServer, read_mcp_server
from dragoman.config.in_code import plain_tables
from dragoman.deviations import clip
from dragoman.errors import ConfigError, McpFailed, UsageError
from dragoman.inputs.keywords import wrong
from dragoman.secret import masked
from dragoman.types import Text, Tool, ToolCall, ToolResult

_KEPT: Final = 2000  # bytes of what a server writes on standard error


def read_servers(value: object) -> dict[str, McpServer]:
    """Return servers from tables in the form of the configuration's `[agent.mcp]`.

    Raises:
        UsageError: it is no mapping of such tables.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise wrong("mcp", "a mapping of servers", value)
    servers: dict[str, McpServer] = {}
    for name, table in value.items():
        if not isinstance(name, str) or not isinstance(table, Mapping | McpServer):
            raise wrong("mcp", "tables by name, as {'files': {'command': ['…']}}", table)
        try:
            where = f"mcp.{name[:40]}"
            servers[name] = (
                table if isinstance(table, McpServer) else read_mcp_server(plain_tables(table, where), where)
            )
        except ConfigError as problem:
            raise UsageError(str(problem)) from None
    return servers


@final
class McpTools:
    """The tools of some servers. Open, use and close it in one event loop; each connection lives in its own task.

    Attributes:
        tools: the offered tools, named SERVER_TOOL.
    """

    __slots__ = ("_end", "_places", "_servers", "_tasks", "tools")

    def __init__(self, servers: Mapping[str, McpServer]) -> None:
        self.tools: list[Tool] = []
        self._servers = servers
        self._places: dict[str, tuple[McpSession, str]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._end = asyncio.Event()

    async def open(self) -> None:
        """Connect to the servers and list their tools.

        Raises:
            MissingExtra: the package is not installed.
            ConfigError: a key of one cannot be read.
            McpFailed: one cannot be reached.
        """
        require_package()
        _silence_log()
        for name, server in self._servers.items():
            opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            secrets = read_secrets(server, f"mcp.{name}", Path.home())
            self._tasks.append(asyncio.create_task(self._hold(name, server, secrets, opened)))
            try:
                async with asyncio.timeout(OPEN_SECONDS):
                    await opened
            except TimeoutError:
                raise McpFailed(f"the MCP server {name} did not answer in {OPEN_SECONDS:g} s") from None

    async def close(self) -> None:
        """Close the connections, and stop the servers that were started."""
        self._end.set()
        for task in self._tasks:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(task, 5.0)
        self._tasks.clear()

    def has(self, name: str) -> bool:
        """Return whether there is a tool of this name."""
        return name in self._places

    async def call(self, call: ToolCall) -> ToolResult:
        """Run one tool. An error becomes its result for the model."""
        session, tool = self._places[call.name]
        try:
            async with asyncio.timeout(CALL_SECONDS):
                result = await session.call(tool, call.values())
        except Exception as problem:  # whatever the package raises
            why = session.broken or type(problem).__name__
            said = f"{call.name} could not be called: {why}"
            return ToolResult(call.id, call.name, (Text(said),), is_error=True)
        is_error = bool(getattr(result, "is_error", False))
        return ToolResult(call.id, call.name, read_result(result), is_error=is_error)

    async def _hold(self, name: str, server: McpServer, secrets: dict[str, str], opened: asyncio.Future[None]) -> None:
        errors, session = _LastWords(), McpSession()
        try:
            async with contextlib.AsyncExitStack() as stack:
                path = os.environ.get("PATH", os.defpath)
                await session.open(stack, server, secrets, path=path, errors=errors.open(stack))
                tools, problems = await session.list_tools(server)
                problems += [problem for tool in tools if (problem := self._offer(name, session, tool))]
                if problems:
                    opened.set_exception(UsageError(f"mcp.{name}: {'; '.join(dict.fromkeys(problems))}"))
                    return
                opened.set_result(None)
                await self._end.wait()
        except Exception as problem:  # whatever the package, or what it starts, raises
            if not opened.done():
                last = masked(errors.last(), secrets.values())
                told = f"; it wrote: {last}" if last else ""
                place = f" at {shown_address(server.url)}" if server.url else ""
                failed = f"the MCP server {name}{place} cannot be used: {session.words_of(problem)[:200]}{told}"
                opened.set_exception(McpFailed(failed))

    def _offer(self, server: str, session: McpSession, tool: Any) -> str | None:
        """Offer a tool, or return why not."""
        name = "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in f"{server}_{tool.name}")[:64]
        if name in self._places:
            return f"two tools are called {name}"
        self._places[name] = (session, str(tool.name))
        self.tools.append(Tool(name, str(tool.description or ""), _json.raw(tool.input_schema)))
        return None


@final
class _LastWords:
    """The standard error of a started server: only the end is kept."""

    __slots__ = ("_kept", "_reader")

    def __init__(self) -> None:
        self._kept = b""
        self._reader: threading.Thread | None = None

    def open(self, stack: contextlib.AsyncExitStack) -> TextIO:
        """Return the file for the server's standard error."""
        inward, outward = os.pipe()
        self._reader = threading.Thread(target=self._read, args=(inward,), daemon=True)
        self._reader.start()
        return stack.enter_context(os.fdopen(outward, "w", encoding="utf-8"))

    def _read(self, inward: int) -> None:
        with os.fdopen(inward, "rb", buffering=0) as pipe:
            while piece := pipe.read(4096):
                self._kept = (self._kept + piece)[-_KEPT:]

    def last(self) -> str:
        """Return the last line, once the server has ended, or ""."""
        if self._reader is not None:
            self._reader.join(1.0)
        lines = self._kept.decode("utf-8", "replace").strip().splitlines()
        return clip(lines[-1].strip()) if lines else ""


def _silence_log() -> None:
    """Keep the package's log from standard error if there is no handler: failures are raised."""
    log = logging.getLogger("mcp")
    if not log.handlers:
        log.addHandler(logging.NullHandler())
