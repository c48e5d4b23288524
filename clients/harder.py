"""The three big coding agents in the modes that lost tools: searches of the web, MCP servers, tools that are found by a
search, models that are named like the vendor's own, thinking, memory, patches."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from driver import GEMINI, MESSAGES, MODEL, RESPONSES, SCRIPTS, Driver, Place, Start, preset
from plan import SEARCHES, Call, Page, Plan, plan_of_commands
from programs import PROMPT, QUIET_CLAUDE, codex_words
from wire import MODEL as PROVIDERS_MODEL

#: Protocols whose providers search the web.
_SEARCHING = (RESPONSES, MESSAGES, GEMINI)
_SERVER = str(SCRIPTS / "mcp_server.py")
_SERVERS = ("alpha", "beta")
CLAUDE_NAME, GPT_NAME = "claude-opus-4-6", "gpt-5.5"

# ---------------------------------------------------------------- Claude Code


def _claude(*allowed: str, model: str = MODEL, servers: tuple[str, ...] = (), **more: str) -> Callable[[Place], Start]:
    def start(place: Place) -> Start:
        command = [place.program("claude"), "-p", PROMPT, "--allowedTools", ",".join(allowed)]
        if servers:
            settings = {name: {"command": sys.executable, "args": [_SERVER, name]} for name in servers}
            command += ["--strict-mcp-config", "--mcp-config", str(place.write("mcp.json", {"mcpServers": settings}))]
        return Start(command, {**preset(place, "claude-code", model), **QUIET_CLAUDE, **more})

    return start


def _bash(command: str) -> dict[str, str]:
    return {"command": command, "description": "record"}


def _claude_driver(mode: str, start: Callable[[Place], Start], plan: Plan, note: str, **more: object) -> Driver:
    return Driver(
        f"claude-code-{mode}", "claude-code", "@anthropic-ai/claude-code", MESSAGES, start, plan, note=note, **more
    )  # type: ignore[arg-type]


_MCP = tuple(f"mcp__{name}__search" for name in _SERVERS)
_PAGE = Page()
#: What the model keeps in the client's memory: turned round there, so that no call tells it as it is recalled.
_KEPT = "7f3a-9dd4e461268c8034f5c8564e155c67a6"
_KEEP = (
    'folder="$HOME/.claude/projects/$(pwd | sed "s/[^A-Za-z0-9]/-/g")/memory"; mkdir -p "$folder"; '
    f"{{ printf '%s' '- [Sandbox](sandbox.md): '; printf %s {_KEPT[::-1]} | rev; }} > \"$folder/MEMORY.md\"; "
    "echo kept-in-memory"
)


def _has_listed(place: Place) -> str:
    """Whether Claude Code took the names that look like Claude's from the gateway's list, and no others."""
    file = place.home / ".claude/cache/gateway-models.json"
    found = json.loads(file.read_text(encoding="utf-8"))["models"] if file.exists() else []
    names = [model["id"] for model in found]
    return "" if names == [f"claude-{MODEL}"] else f"the gateway's models are listed as {names}"


def _claude_twice(place: Place) -> Start:
    """Two sessions: what the first one keeps the second one is told."""
    once = '"$1" -p "$2" --allowedTools Bash --dangerously-skip-permissions'
    command = ["/bin/sh", "-c", f"{once} && {once}", "memory", place.program("claude"), PROMPT]
    return Start(command, {**preset(place, "claude-code"), **QUIET_CLAUDE, "IS_SANDBOX": "1"})


#: The setting that the refusal of a search names.
_REFUSAL = "tool_policy.web_search"
CLAUDE = [
    _claude_driver(
        "same", _claude("Bash", model=PROVIDERS_MODEL), plan_of_commands("Bash", _bash),
        "a provider of its protocol gets what it sent, byte for byte", is_same=True,
    ),
    _claude_driver(
        "search", _claude("WebSearch", ENABLE_TOOL_SEARCH="false"),
        Plan(((Call("WebSearch", {"query": _PAGE.query}, _PAGE.url, refusal=_REFUSAL),),)),
        "WebSearch: run by the provider",
        searches=_SEARCHING, passes=False,
    ),
    _claude_driver(
        "mcp", _claude(*_MCP, servers=_SERVERS, ENABLE_TOOL_SEARCH="true"),
        Plan(((Call("ToolSearch", {"query": "select:" + ",".join(_MCP), "max_results": 5}, _MCP[1]),), SEARCHES)),
        "two MCP servers with a tool of one name, behind its tool search", passes=False,
    ),
    _claude_driver(
        "name", _claude("Bash", model=CLAUDE_NAME, CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=""),
        plan_of_commands("Bash", _bash), "a model named like Claude; it lists those of the gateway that are",
        check=_has_listed,
    ),
    _claude_driver(
        "thinking", _claude("Bash", model=CLAUDE_NAME, MAX_THINKING_TOKENS="8000"), plan_of_commands("Bash", _bash),
        "extended thinking",
    ),
    _claude_driver(
        "memory", _claude_twice, Plan(((Call("Bash", _bash(_KEEP), "kept-in-memory"),),), recalled=_KEPT),
        "its memory: kept in one session, told in the next", repeats=2,
    ),
]  # fmt: skip

# ---------------------------------------------------------------- Codex


def _codex(model: str, servers: tuple[str, ...] = ()) -> Callable[[Place], Start]:
    def start(place: Place) -> Start:
        environ = preset(place, "codex")
        file = place.home / ".codex/config.toml"
        tables = [
            f"\n[mcp_servers.{name}]\ncommand = {json.dumps(sys.executable)}\nargs = {json.dumps([_SERVER, name])}\n"
            for name in servers
        ]
        file.write_text(file.read_text(encoding="utf-8") + "".join(tables), encoding="utf-8")
        return Start([place.program("codex"), *codex_words(), "-m", model, PROMPT], environ)

    return start


def _codex_driver(mode: str, start: Callable[[Place], Start], plan: Plan, note: str, **more: object) -> Driver:
    return Driver(f"codex-{mode}", "codex", "@openai/codex", RESPONSES, start, plan, note=note, **more)  # type: ignore[arg-type]


_PATCHED = "naïve “quotes” 東京\n\ttab \\ end\n"
_PATCH = (
    "*** Begin Patch\n*** Add File: note.txt\n"
    + "".join(f"+{line}\n" for line in _PATCHED.splitlines())
    + "*** End Patch"
)


def _is_patched(place: Place) -> str:
    file = place.work / "note.txt"
    seen = file.read_text(encoding="utf-8") if file.exists() else None
    return "" if seen == _PATCHED else f"the patch is not made: {seen!r}"


_FIND = Call("tool_search", {"query": "search", "limit": 8}, "mcp__alpha__search", kind="tool_search")
CODEX = [
    _codex_driver(
        "mcp", _codex(MODEL, _SERVERS), Plan((SEARCHES,)), "two MCP servers with a tool of one name", passes=False,
    ),
    _codex_driver(
        "mcp-gpt", _codex(GPT_NAME, _SERVERS), Plan(((_FIND,), SEARCHES)),
        "the same, a model named like a GPT: behind its tool search", passes=False,
    ),
    _codex_driver(
        "patch", _codex(GPT_NAME), Plan(((Call("apply_patch", {"input": _PATCH}, "note.txt", kind="custom"),),)),
        "apply_patch, as free text", check=_is_patched, passes=False,
    ),
    _codex_driver(
        "search", _codex(MODEL),
        Plan(plan_of_commands("exec_command", lambda command: {"cmd": command}).steps[:1], is_searching=True),
        "web_search beside its other tools", searches=_SEARCHING, is_beside=True, passes=False,
    ),
]  # fmt: skip

# ---------------------------------------------------------------- Gemini CLI


def _gemini(place: Place) -> Start:
    command = [place.program("gemini"), "-m", MODEL, "-p", PROMPT, "--approval-mode", "yolo"]
    return Start(command, preset(place, "gemini-cli") | {"GEMINI_CLI_TRUST_WORKSPACE": "true"})


GEMINI_CLI = [
    Driver(
        "gemini-cli-search", "gemini-cli", "@google/gemini-cli", GEMINI, _gemini,
        Plan(((Call("google_web_search", {"query": _PAGE.query}, _PAGE.url, refusal=_REFUSAL),),)),
        note="google_web_search: run by the provider", searches=_SEARCHING, passes=False,
    ),
]  # fmt: skip
DRIVERS = [*CLAUDE, *CODEX, *GEMINI_CLI]
