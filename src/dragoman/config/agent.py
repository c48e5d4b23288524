"""The settings of `dragoman chat`: the table `[agent]` of the user's file. No other file can set them."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, final

import msgspec

Positive = Annotated[int, msgspec.Meta(ge=1)]


@final
class McpServer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A server of tools: a `command` that is started, or the `url` of one that runs. Its tools are named `NAME_TOOL`.

    `environ`: variables of the command; a value is a reference (`env:`, `file:`). `headers`: the same for a URL.
    `only`: of its tools, these; None: all.
    """

    command: tuple[str, ...] = ()
    url: str | None = None
    environ: dict[str, str] = {}
    headers: dict[str, str] = {}
    only: tuple[str, ...] | None = None


@final
class AgentLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far a run, all that follows one prompt, may go before it stops and asks.

    `memory_mib`: what one command, with all that it starts, may take of memory.
    """

    steps: Positive = 50
    minutes: Annotated[float, msgspec.Meta(gt=0)] = 30.0
    usd: Decimal = Decimal(5)
    tokens: Positive = 2_000_000
    memory_mib: Annotated[int, msgspec.Meta(ge=64)] = 2_048


@final
class AgentConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The agent. `target`: the model when the command line names none. `allow`: rules, `TOOL` or `TOOL:PATTERN`.

    `tools`: Python files whose functions are tools, and names of entry points of the group `dragoman_tools`.
    `shell`: whether the model may ask for scripts. `sandbox` False:
    commands run without one although it could be had.
    """

    target: str | None = None
    allow: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    shell: bool = False
    sandbox: bool = True
    limits: AgentLimits = AgentLimits()
    mcp: dict[str, McpServer] = {}
