"""Writes docs/reference/clients.md from a run."""

from __future__ import annotations

import datetime
import platform
from pathlib import Path
from typing import Any

from driver import Driver
from plan import LONG
from wire import WIRES

_HEAD = """# Clients

<!-- Written by `make clients`. -->

Unmodified packages from PyPI and npm, run through `dragoman serve` to a scripted provider of each of the five protocols on
{date} (Python {python}, {system}): {passed} of {total} runs passed. Each run: the client offers its tools, gets one call,
runs it, sends the result, gets two calls at once, runs both, sends the results, gets a text. The arguments hold quotes,
escapes, line ends and characters of many scripts; one of them is {kilobytes} kB long. The provider refuses what the vendor
would refuse, and compares calls and results exactly. Answers are streamed to every client but those marked *whole*. No
machine but this one was reachable.

Columns are the provider's protocol. Beside these, stand-ins for Zed, VS Code, JetBrains, Home Assistant and Open WebUI are
run by the tests: those are emulated, not the programs themselves.

| client | version | speaks | Ollama | OpenAI Chat | OpenAI Responses | Anthropic | Gemini | seconds |
|---|---|---|---|---|---|---|---|---|
"""


def write_page(file: Path, drivers: list[Driver], rows: list[dict[str, Any]], versions: dict[str, str]) -> None:
    """Write the matrix; `rows` as `play.py` prints them."""
    text = _HEAD.format(
        date=datetime.date.today().isoformat(), python=platform.python_version(), system=platform.system(),
        passed=sum(not row["faults"] for row in rows), total=len(drivers) * len(WIRES), kilobytes=LONG // 1000,
    )  # fmt: skip
    faults: list[str] = []
    for driver in drivers:
        found = {row["provider"]: row for row in rows if row["driver"] == driver.name}
        cells = ["–" if name not in found else "no" if found[name]["faults"] else "yes" for name in WIRES]
        seconds = sorted(row["seconds"] for row in found.values())
        shown = f"{seconds[len(seconds) // 2]:.1f}" if seconds else ""
        version = versions.get(driver.name, "not installed")
        text += f"| {driver.name} | {driver.package} {version} | {driver.speaks} | {' | '.join(cells)} | {shown} |\n"
        faults += [
            f"- {driver.name} with {name}: {row['faults'][0][:200]}" for name, row in found.items() if row["faults"]
        ]
    if faults:
        text += "\n## What failed\n\n" + "\n".join(faults) + "\n"
    file.write_text(text, encoding="utf-8")
