"""Build what a session works with: the work folder, the sandbox, the tools, the rules."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, final

from dragoman.agent.approval import Approvals, Rule, parse_rule
from dragoman.agent.limits import Limits
from dragoman.agent.sandbox.bubblewrap import check_work_folder, find_bubblewrap
from dragoman.agent.sandbox.guarantees import Guarantees, describe_fence
from dragoman.agent.sandbox.sandbox import Sandbox
from dragoman.agent.session.folder import default_store
from dragoman.agent.tools.edit import edit_tool, write_tool
from dragoman.agent.tools.fetch import fetch_tool
from dragoman.agent.tools.list import list_tool
from dragoman.agent.tools.own import load_tools
from dragoman.agent.tools.pins import Pins
from dragoman.agent.tools.read import read_tool
from dragoman.agent.tools.run import run_tool, shell_tool
from dragoman.agent.tools.search import find_ripgrep, search_tool
from dragoman.agent.tools.toolbox import Planner, Toolbox
from dragoman.agent.work_folder import WorkFolder
from dragoman.config import AgentConfig, Config
from dragoman.errors import ConfigError, UsageError
from dragoman.providers.catalog import nearest
from dragoman.types import ToolCall

if TYPE_CHECKING:
    from dragoman.agent.interface import UserInterface
    from dragoman.agent.tools.remote import Remote

#: What a model of very few parameters is offered: more than three tools it cannot tell apart.
WEAK_TOOLS = ("read", "list", "run")


@final
class Environment:
    """What one session works with.

    Attributes:
        folder: the work folder, held open.
        sandbox: runs commands.
        toolbox: the tools.
        approvals: what needs no question.
        limits: how far a run may go.
    """

    __slots__ = ("_pins", "approvals", "folder", "limits", "sandbox", "toolbox")

    def __init__(
        self,
        place: Path,
        config: AgentConfig,
        *,
        allow: Iterable[str] = (),
        tools: Iterable[str] = (),
        shell: bool = False,
        environ: Mapping[str, str] | None = None,
        home: Path | None = None,
        private: Iterable[Path] = (),
    ) -> None:
        """Build it. `allow`, `tools` and `shell` are the command line's, added to those of the user's file. `private`:
        further files that no sandboxed command may read.

        Raises:
            UsageError, ConfigError: a rule, a tool or the folder is invalid.
        """
        home = Path.home() if home is None else home
        check_work_folder(place, home)
        environ = os.environ if environ is None else environ
        self._pins = Pins(default_store(environ=environ, home=home).parent / "approved-mcp-tools.json")
        self.folder = WorkFolder(place)
        self.sandbox = Sandbox(
            self.folder.path,
            environ=environ,
            home=home,
            bubblewrap=find_bubblewrap() if config.sandbox else None,
            is_wanted=config.sandbox,
            private=private,
            memory=config.limits.memory_mib * 1024**2,
        )
        self.approvals = Approvals(_rules(config, allow), is_confined=self.sandbox.is_confined)
        given = config.limits
        self.limits = Limits(steps=given.steps, minutes=given.minutes, usd=given.usd, tokens=given.tokens)
        self.toolbox = self._own_tools(has_shell=shell or config.shell)
        for name in (*config.tools, *tools):
            for planner in load_tools(name):
                self.toolbox.add(planner)
        if not config.mcp:  # their tools are not known yet
            self._check_names(allow)

    def _own_tools(self, *, has_shell: bool) -> Toolbox:
        return Toolbox(
            [
                read_tool(self.folder),
                list_tool(self.folder),
                search_tool(self.folder, ripgrep=find_ripgrep()),
                edit_tool(self.folder),
                write_tool(self.folder),
                run_tool(self.folder, self.sandbox),
                *([shell_tool(self.folder, self.sandbox)] if has_shell else []),
                fetch_tool(),
            ]
        )

    @property
    def typed_tools(self) -> Toolbox:
        """Return the tools for what the user types at a prompt, whatever the model is offered: files, and commands."""
        return Toolbox([read_tool(self.folder), shell_tool(self.folder, self.sandbox)])

    def _check_names(self, allow: Iterable[str]) -> None:
        """Raise UsageError for a rule that names an unknown tool."""
        names = ["shell", *(tool.name for tool in self.toolbox.tools)]
        for tool in (text.partition(":")[0] for text in allow):
            if tool not in names:
                others = nearest(tool, names) or f"; there are: {', '.join(names[1:])}"
                raise UsageError(f"--allow: there is no tool {tool[:40]!r}{others}")

    async def reach_remotes(self, stack: contextlib.AsyncExitStack, config: Config, face: UserInterface) -> list[str]:
        """Add the tools of the user's MCP servers, which `stack` closes. Return a line for each server and tool left
        out.

        `face` is asked about tools that have changed since they were approved.

        Raises:
            MissingExtra, ConfigError: the package is not installed, or a server's key cannot be read.
        """
        if not config.agent.mcp:
            return []
        from dragoman.agent.tools.remote import open_remotes

        remotes, problems = await open_remotes(config, self.folder.path, self._pins)
        for remote in remotes:
            stack.push_async_callback(remote.close)
        names = [each.tool.name for remote in remotes for each in _all_of(remote)]
        shared = {name for name in names if names.count(name) > 1}
        problems += [f"two tools of MCP servers are called {name}: neither is offered" for name in sorted(shared)]
        for remote in remotes:
            wanted = list(remote.tools)
            for changed in remote.changed:
                if changed.planner.tool.name not in shared:
                    asked = ToolCall("", changed.planner.tool.name, "{}")
                    if (await face.approve(changed.plan, asked, _CHANGED)).kind != "no":
                        await changed.plan.do()
                        wanted.append(changed.planner)
                    else:
                        problems.append(
                            f"{changed.planner.tool.name} is left out: it has changed since you approved it"
                        )
            for planner in wanted:
                try:
                    if planner.tool.name not in shared:
                        self.toolbox.add(planner)
                except UsageError as problem:
                    problems.append(f"the MCP server {remote.name}: {problem}")
        return problems

    @property
    def holding(self) -> Guarantees:
        """Describe the sandbox of the commands."""
        is_superuser = os.geteuid() == 0
        return describe_fence(self.sandbox.fence, is_wanted=self.sandbox.is_wanted, is_superuser=is_superuser)

    def close(self) -> None:
        """Close the folder."""
        self.folder.close()


#: Why the face is asked about a tool that nobody has called yet.
_CHANGED = "an MCP server describes this tool otherwise than when you approved it; yes offers it to the model"


def _all_of(remote: Remote) -> list[Planner]:
    return [*remote.tools, *(changed.planner for changed in remote.changed)]


def _rules(config: AgentConfig, allow: Iterable[str]) -> list[Rule]:
    """Return the rules of the user's file and of the command line."""
    try:
        rules = [parse_rule(text) for text in config.allow]
    except UsageError as problem:
        raise ConfigError(f"agent.allow: {problem}") from None
    return [*rules, *(parse_rule(text) for text in allow)]
