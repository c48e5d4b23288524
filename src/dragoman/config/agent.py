"""The settings of `dragoman chat`: the table `[agent]` of the user's file. No other file can set them."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, final

import msgspec

Positive = Annotated[int, msgspec.Meta(ge=1)]


@final
class McpServer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An MCP server: a `command` to start, or the `url` of a running one. Its tools are named `NAME_TOOL`.

    Attributes:
        environ: variables of the command; a value is a reference (`env:`, `file:`).
        headers: the same for a URL.
        only: use only these of its tools; None: all.
    """

    command: tuple[str, ...] = ()
    url: str | None = None
    environ: dict[str, str] = {}
    headers: dict[str, str] = {}
    only: tuple[str, ...] | None = None


@final
class AgentLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far a run, all that follows one prompt, may go before it stops and asks.

    Attributes:
        memory_mib: the memory of one command with all its children.
    """

    steps: Positive = 50
    minutes: Annotated[float, msgspec.Meta(gt=0)] = 30.0
    usd: Decimal = Decimal(5)
    tokens: Positive = 2_000_000
    memory_mib: Annotated[int, msgspec.Meta(ge=64)] = 2_048


@final
class AgentConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The agent's settings.

    Attributes:
        target: the model if the command line names none.
        allow: rules, `TOOL` or `TOOL:PATTERN`.
        tools: Python files whose functions are tools, and names of entry points of the group `dragoman_tools`.
        shell: the model may ask for shell scripts.
        sandbox: False: commands run without a sandbox even if there could be one.
    """

    target: str | None = None
    allow: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    shell: bool = False
    sandbox: bool = True
    limits: AgentLimits = AgentLimits()
    mcp: dict[str, McpServer] = {}
