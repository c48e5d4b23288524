"""Programs that speak one protocol, set up as `dragoman env` says, with their own shell as the tool."""

from __future__ import annotations

from driver import GEMINI, MESSAGES, MODEL, RESPONSES, Driver, Place, Start, preset
from plan import plan_of_commands

PROMPT = "Record the texts with your shell, then say that all is recorded."


QUIET_CLAUDE = {
    "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
}  # fmt: skip


def _claude_code(place: Place) -> Start:
    command = [place.program("claude"), "-p", PROMPT, "--allowedTools", "Bash"]
    return Start(command, preset(place, "claude-code") | QUIET_CLAUDE)


def codex_words() -> list[str]:
    """What makes Codex act without asking."""
    return ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]


def _codex(place: Place) -> Start:
    return Start([place.program("codex"), *codex_words(), PROMPT], preset(place, "codex"))


def _codex_oss(place: Place) -> Start:
    words = ["--oss", "--local-provider", "ollama", "-m", MODEL, PROMPT]
    return Start([place.program("codex"), *codex_words(), *words], preset(place, "codex-oss"))


def _gemini_cli(place: Place) -> Start:
    command = [place.program("gemini"), "-m", MODEL, "-p", PROMPT, "--approval-mode", "yolo"]
    return Start(command, preset(place, "gemini-cli") | {"GEMINI_CLI_TRUST_WORKSPACE": "true"})


DRIVERS = [
    Driver(
        "claude-code", "claude-code", "@anthropic-ai/claude-code", MESSAGES, _claude_code,
        plan_of_commands("Bash", lambda command: {"command": command, "description": "record"}),
    ),
    Driver(
        "codex", "codex", "@openai/codex", RESPONSES, _codex,
        plan_of_commands("exec_command", lambda command: {"cmd": command}),
    ),
    Driver(
        "codex-oss", "codex", "@openai/codex", RESPONSES, _codex_oss,
        plan_of_commands("exec_command", lambda command: {"cmd": command}),
    ),
    Driver(
        "gemini-cli", "gemini-cli", "@google/gemini-cli", GEMINI, _gemini_cli,
        plan_of_commands("run_shell_command", lambda command: {"command": command, "description": "record"}),
    ),
]  # fmt: skip
