"""Writes docs/reference/clients.md from a run."""

from __future__ import annotations

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

This page shows which clients work through `dragoman serve`, and against which protocols. The clients are unmodified packages
from PyPI and npm. They talk to a scripted provider behind the gateway, and nothing outside the machine could be reached. Each
client was set up as `dragoman env` says. This is the latest run of each, made on {date} (Python {python}, {system}):
{passed} of {total} passed.

In a run, the client offers its tools and gets one call. It runs the call and sends the result. Then it gets two calls at
once, runs both, sends both results and gets a text. Everything is streamed. The arguments hold quotes, escapes, line ends and
characters of many scripts. One of them is {kilobytes} kB long.

The provider compares calls and results exactly, and refuses what its vendor would refuse. This includes fields that the
vendor does not know, fields that need a beta header, unknown types of tools, and two tools of one name. As Gemini, it asks
for the signatures that it gave. Most clients do not keep them.

To run one client alone: `make clients ONLY=codex-mcp-gpt`.

The middle columns are the provider's protocol. In the last column, the provider speaks the client's own protocol and is
declared clean, so the bytes pass through unchanged.

| cell | meaning |
|---|---|
| `yes` | every step of the run was right |
| – | bytes never pass through for this client: the gateway stores its responses, or gives its calls a form of their own |
| `refused` | the client asked for a web search, and the provider has none. The client got status 400, which names the tool and the setting |
| `left out` | the client offered the search beside other tools. The gateway asked without it; the log line and `x-dragoman-dropped` say so |

| client | version | speaks | {columns} | passed through |
|---|---|---|{dashes}---|
"""
_TAIL = """
## Not run here

`make test` also plays stand-ins for Zed, VS Code, JetBrains, Home Assistant and Open WebUI. A stand-in sends and accepts what
the program does, but it is not the program itself. Open WebUI itself runs here without its models for speech, pictures and
embeddings, which take several GB; a chat does not load them. Claude Desktop, Codex Desktop, Xcode and Cursor have no package
on PyPI or npm. We did not try their presets.
"""


def write_page(file: Path, drivers: list[Driver], rows: list[dict[str, Any]]) -> int:
    """Write the matrix; `rows` as `run.py` remembers them. Gives how many are missing: then nothing is written."""
    found = {(row["driver"], row["provider"]): row for row in rows}
    wanted = [(driver.name, name) for driver in drivers for name in _columns(driver)]
    missing = sum(key not in found for key in wanted)
    if missing:
        return missing
    rows = [found[key] for key in wanted]
    days = sorted({row["day"] for row in rows if "day" in row})
    text = _HEAD.format(
        date=" to ".join(dict.fromkeys([days[0], days[-1]])) if days else "no day",
        python=platform.python_version(),
        system=platform.system(),
        passed=sum(not row["faults"] for row in rows),
        total=len(rows),
        kilobytes=LONG // 1000,
        columns=" | ".join(_TITLES[name] for name in WIRES),
        dashes="---|" * len(WIRES),
    )
    for driver in drivers:
        line = [found[driver.name, name] for name in _columns(driver)]
        cells = " | ".join(_cell(driver, row) for row in line) + ("" if driver.passes else " | –")
        speaks = _TITLES[driver.speaks] + (f" ({driver.note})" if driver.note else "")
        version = line[0].get("version", "not installed")
        text += f"| {driver.name} | {driver.package} {version} | {speaks} | {cells} |\n"
    faults = [f"- {row['driver']}, {row['provider']}: {row['faults'][0][:200]}" for row in rows if row["faults"]]
    if faults:
        text += "\n## What failed\n\n" + "\n".join(faults) + "\n"
    file.write_text(text + _TAIL, encoding="utf-8")
    return 0


def _cell(driver: Driver, row: dict[str, Any]) -> str:
    if row["faults"]:
        return "**no**"
    if driver.searches and row["provider"] not in (driver.speaks, *driver.searches):
        return "left out" if driver.is_beside else "refused"
    return "yes"


def _columns(driver: Driver) -> tuple[str, ...]:
    """The providers that a driver is run against."""
    return (*WIRES, driver.speaks + PASSED) if driver.passes else tuple(WIRES)
