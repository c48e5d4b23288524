"""The tools of MCP servers that the user's file names. Their calls need approval like all others.

Each connection lives in one task. A server's claim that a tool is harmless or repeatable is not believed. Its results
are foreign text. A tool whose description has changed since it was approved is not offered until the user approves the
difference (`pins`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, final

import msgspec

from dragoman import _json
from dragoman.agent.safe_text import plain_line, plain_text, revealed_text
from dragoman.agent.sandbox.sandbox import clean_environment
from dragoman.agent.tool_plan import Outcome, Plan, ToolFailed, identity_of
from dragoman.agent.tools.pins import Pins, definition_of, origin_of
from dragoman.agent.tools.toolbox import Planner, other_plan
from dragoman.client.mcp.session import (
    CALL_SECONDS,
    OPEN_SECONDS,
    McpSession,
    left_out,
    read_result,
    read_secrets,
    require_package,
)
from dragoman.config import Config, McpServer
from dragoman.errors import DragomanError
from dragoman.types import Text, Tool, ToolCall

_CLOSE_SECONDS: Final = 5.0
_DESCRIPTION: Final = 1_024  # characters
_RESULT: Final = 100_000  # characters
_NAME_LIMIT: Final = 64
_DEFINITION: Final = 64 * 1024  # characters
#: Of a schema, what is only read.
_WORDS: Final = frozenset({"description", "title", "$comment"})
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")


class RemoteError(DragomanError):
    """An MCP server cannot be used."""


@final
class Changed(msgspec.Struct, frozen=True):
    """A tool that has changed since it was approved. Its `plan` shows the difference; doing the plan approves it."""

    planner: Planner
    plan: Plan


@final
class Remote:
    """One server. `open` it, offer its `tools`, `close` it, all in the same event loop.

    Attributes:
        tools: what is offered: new tools, and those that have not changed since they were approved.
        changed: tools that need approval before they are offered.
        problems: a line for each tool that is left out.
    """

    __slots__ = (
        "_end",
        "_opened",
        "_origin",
        "_pins",
        "_problem",
        "_secrets",
        "_server",
        "_session",
        "_task",
        "_work",
        "changed",
        "name",
        "problems",
        "tools",
    )

    def __init__(self, name: str, server: McpServer, *, secrets: Mapping[str, str], work: Path, pins: Pins) -> None:
        """Create it. `secrets`: values of the server's variables or headers. `work`: where it must not run."""
        self.name = name
        self.tools: list[Planner] = []
        self.changed: list[Changed] = []
        self.problems: list[str] = []
        self._pins = pins
        self._origin = origin_of(name, server.command, server.url)
        self._server = server
        self._secrets = dict(secrets)
        self._work = work
        self._session: McpSession | None = None
        self._opened = asyncio.Event()
        self._end = asyncio.Event()
        self._problem = ""
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect, and list its tools.

        Raises:
            RemoteError: it does not start, does not answer, or does not speak the protocol.
        """
        self._task = asyncio.create_task(self._hold())
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                await self._opened.wait()
        except TimeoutError:
            self._problem = f"no answer in {OPEN_SECONDS:g} s"
        if self._problem:
            await self.close()
            raise RemoteError(f"the MCP server {self.name}: {self._problem}")

    async def close(self) -> None:
        """Close the connection, and stop the server if we started it."""
        self._end.set()
        if self._task is None:
            return
        done, _ = await asyncio.wait([self._task], timeout=_CLOSE_SECONDS)
        if not done:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _hold(self) -> None:
        session = McpSession()
        try:
            async with contextlib.AsyncExitStack() as stack:
                await self._connect(session, stack)
                tools, problems = await session.list_tools(self._server)
                self._session = session
                self.problems += [f"the MCP server {self.name}: {plain_line(problem, 200)}" for problem in problems]
                self._take(tools)
                self._opened.set()
                await self._end.wait()
        except Exception as problem:  # the package and its transports raise many kinds, groups of them too
            self._problem = plain_line(session.words_of(problem), 200)
        finally:
            self._session = None
            self._opened.set()

    async def _connect(self, session: McpSession, stack: contextlib.AsyncExitStack) -> None:
        """Connect. A server's command runs in the home folder, so that no file of the work folder can steer it."""
        path = clean_environment(os.environ, self._work)["PATH"]
        silence = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - the stack closes it
        await session.open(stack, self._server, self._secrets, path=path, errors=silence, folder=Path.home())

    def _take(self, listed: list[Any]) -> None:
        """Sort the server's tools into offered ones, ones to ask about first, and ones left out."""
        seen: set[str] = set()
        for tool in listed:
            theirs = str(tool.name)
            title = f"tool {_quoted(theirs)} of the MCP server {self.name}"
            try:
                said = tool.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"meta", "icons"})
                definition = definition_of(said)
            except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as problem:
                self.problems.append(f"{title} is left out: {plain_line(str(problem), 100)}")
                continue
            if theirs in seen or len(definition) > _DEFINITION:
                why = (
                    "its name comes twice"
                    if theirs in seen
                    else f"it is described in more than {_DEFINITION:,} characters"
                )
                self.problems.append(f"{title} is left out: {why}")
                continue
            seen.add(theirs)
            planner = self._planner(tool, title, definition)
            if self._pins.standing(self._origin, theirs, definition) == "changed":
                self.changed.append(Changed(planner, self._approving(planner.tool.name, theirs, title, definition)))
            else:
                self.tools.append(planner)

    def _approving(self, name: str, theirs: str, title: str, definition: str) -> Plan:
        """Return the question about a changed tool. Raises PinsError."""
        diff = revealed_text(self._pins.difference(self._origin, theirs, definition))

        async def do() -> Outcome:
            self._pins.keep(self._origin, theirs, definition)
            return Outcome("offered")

        head = f"offer the {title}, which has changed since you approved it"
        identity = identity_of(name, {"definition": definition})
        return Plan(name, "other", (name,), f"{head}\n{diff}", identity, do, asks="always", diff=diff)

    def _planner(self, tool: Any, title: str, definition: str) -> Planner:
        name = _NO_NAME.sub("_", f"{self.name}_{tool.name}")[:_NAME_LIMIT]
        description = plain_text(tool.description or "")[:_DESCRIPTION]
        theirs = str(tool.name)

        def plan(call: ToolCall) -> Plan:
            async def do() -> Outcome:
                self._pins.keep(self._origin, theirs, definition)  # a user who allowed the call has allowed the tool
                return await self._called(theirs, call.values())

            return other_plan(call, title, do)

        return Planner(Tool(name, description, _json.raw(_plain_schema(tool.input_schema))), plan)

    async def _called(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        session = self._session
        if session is None:
            raise ToolFailed(f"the MCP server {self.name} is gone{f': {self._problem}' if self._problem else ''}")
        try:
            async with asyncio.timeout(CALL_SECONDS):
                result = await session.call(tool, arguments)
        except TimeoutError:
            raise ToolFailed(f"the MCP server {self.name} did not answer in {CALL_SECONDS:g} s") from None
        except Exception as problem:
            raise ToolFailed(f"the MCP server {self.name}: {plain_line(session.words_of(problem), 300)}") from None
        text = plain_text(_text_of(result))[:_RESULT]
        is_error = bool(getattr(result, "is_error", False))
        return Outcome(text or "(no words)", is_error=is_error, is_foreign=True, is_from_outside=True)


async def open_remotes(config: Config, work: Path, pins: Pins) -> tuple[list[Remote], list[str]]:
    """Return the opened servers of the user's file, and a line for each server that failed and each tool left out.

    Raises:
        MissingExtra: there are servers, and the package is not installed.
        ConfigError: a key of one cannot be read.
    """
    servers = config.agent.mcp
    if not servers:
        return [], []
    require_package()
    folder = (config.path or Path.home() / "x").absolute().parent
    secrets = {name: read_secrets(server, f"agent.mcp.{name}", folder) for name, server in servers.items()}
    remotes = [Remote(name, server, secrets=secrets[name], work=work, pins=pins) for name, server in servers.items()]
    opened = await asyncio.gather(*(remote.open() for remote in remotes), return_exceptions=True)
    problems = [str(problem) for problem in opened if isinstance(problem, Exception)]
    problems += [line for remote in remotes for line in remote.problems]
    return [remote for remote, problem in zip(remotes, opened, strict=True) if problem is None], problems


def _quoted(name: str) -> str:
    """Quote a server's name for a tool, so that it cannot pass for our words."""
    return _json.to_text(plain_line(revealed_text(name), 80))


def _plain_schema(schema: Mapping[str, Any]) -> Any:
    """Return a schema whose descriptions contain no escape sequence and nothing invisible."""
    copy = _json.decode(_json.encode(schema))
    left: list[Any] = [copy]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            for key, inner in value.items():
                if key in _WORDS and isinstance(inner, str):
                    value[key] = plain_text(inner)
            left += value.values()
        elif isinstance(value, list):
            left += value
    return copy


def _text_of(result: Any) -> str:
    parts = read_result(result)
    return "\n".join([part.text if isinstance(part, Text) else left_out(part.mime) for part in parts])
