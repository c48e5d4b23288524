"""Writes docs/reference/clients.md from a run."""

from __future__ import annotations

import datetime
import platform
from pathlib import Path
from typing import Any

from driver import CHAT, GEMINI, MESSAGES, OLLAMA, RESPONSES, Driver
from plan import LONG
from play import PASSED
from wire import WIRES

_TITLES = {
    OLLAMA: "Ollama",
    CHAT: "OpenAI Chat",
    RESPONSES: "OpenAI Responses",
    MESSAGES: "Anthropic",
    GEMINI: "Gemini",
}
_HEAD = """# Clients

<!-- Written by `make clients`. -->

Unmodified packages from PyPI and npm, run through `dragoman serve` to a scripted provider on {date} (Python {python},
{system}): {passed} of {total} runs passed. Each run: the client offers its tools, gets one call, runs it, sends the result,
gets two calls at once, runs both, sends the results, gets a text. The arguments hold quotes, escapes, line ends and
characters of many scripts; one of them is {kilobytes} kB long. The provider refuses what its vendor would refuse, and
compares calls and results exactly. No machine but this one was reachable. Programs were set up as `dragoman env` says.

The columns are the provider's protocol. In the last one the provider speaks the client's own protocol and is declared
clean, so that bytes pass through as they are; in the others everything is read and written anew.

| client | version | speaks | {columns} | passed through |
|---|---|---|{dashes}---|
"""
_TAIL = """
Besides, stand-ins for Zed, VS Code, JetBrains, Home Assistant and Open WebUI are played by `make test`. They are emulated
from what those programs send and accept, not the programs themselves.
"""


def write_page(file: Path, drivers: list[Driver], rows: list[dict[str, Any]], versions: dict[str, str]) -> None:
    """Write the matrix; `rows` as `play.py` prints them."""
    text = _HEAD.format(
        date=datetime.date.today().isoformat(),
        python=platform.python_version(),
        system=platform.system(),
        passed=sum(not row["faults"] for row in rows),
        total=len(drivers) * (len(WIRES) + 1),
        kilobytes=LONG // 1000,
        columns=" | ".join(_TITLES[name] for name in WIRES),
        dashes="---|" * len(WIRES),
    )
    faults: list[str] = []
    for driver in drivers:
        found = {row["provider"]: row["faults"] for row in rows if row["driver"] == driver.name}
        cells = [_cell(found.get(name)) for name in (*WIRES, driver.speaks + PASSED)]
        speaks = _TITLES[driver.speaks] + (f" ({driver.note})" if driver.note else "")
        version = versions.get(driver.name, "not installed")
        text += f"| {driver.name} | {driver.package} {version} | {speaks} | {' | '.join(cells)} |\n"
        faults += [f"- {driver.name}, {name}: {seen[0][:200]}" for name, seen in found.items() if seen]
    if faults:
        text += "\n## What failed\n\n" + "\n".join(faults) + "\n"
    file.write_text(text + _TAIL, encoding="utf-8")


def _cell(faults: list[str] | None) -> str:
    return "not run" if faults is None else "no" if faults else "yes"
