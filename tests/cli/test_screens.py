"""What the commands show at a terminal of 80 columns, in tmux, the screens kept as text: `make screens`.

DRAGOMAN_WRITE_SCREENS=1 writes them. What differs from run to run or from machine to machine is written as a word.
The agent's screens are in `tests/agent`, the pages of a browser in `scripts/check_pages.py` and `check_reports.py`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.driving import DRAGOMAN, Tmux, surroundings, wait_for
from agent.playing import call, playing
from dragoman.types import Part, Request, Text

pytestmark = pytest.mark.screens
#: Its length decides where lines end.
PLACE = Path(tempfile.gettempdir()) / "dragoman-command-screens"
SCREENS = Path(__file__).with_name("screens")
ENDED = "Pane is dead"
TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
ASK = {"model": "lab/m", "messages": [{"role": "user", "content": "Weather in Paris?"}], "tools": [TOOL]}
REQUEST = {**ASK, "model": "m", "logprobs": True, "n": 1, "temperature": 0.2, "stream": True}


def brain(request: Request) -> list[Part]:
    """Calls the tool when there is one."""
    return [call("get_weather", id="call_1", city="Paris")] if request.tools else [Text("The sky is blue.")]


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder whose name is always the same, with a provider `lab`, a request and a broken stream in it."""
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(mode=0o700)
    with playing(brain) as server:
        (PLACE / "dragoman.toml").write_text(server.table() + '[routes.coder]\ntargets = ["lab/m"]\n')
        (PLACE / "request.json").write_text(json.dumps(REQUEST))
        shutil.copy(Path(__file__).parents[2] / "docs/examples/glued.sse", PLACE)
        shutil.copy(Path(__file__).parents[2] / "docs/examples/tools.json", PLACE)
        yield PLACE
    shutil.rmtree(PLACE)


@contextmanager
def running(place: Path, *arguments: str) -> Iterator[Tmux]:
    """A command in tmux, until the block ends."""
    environ = surroundings(place, config=place / "dragoman.toml", home=place)
    environ["PATH"] = f"{Path(DRAGOMAN).parent}:{environ['PATH']}"
    terminal = Tmux([DRAGOMAN, *arguments], folder=place, environ=environ, columns=80)
    try:
        yield terminal
    finally:
        terminal.close()


def settled(text: str) -> str:
    """A screen without what differs from run to run."""
    text = text.partition(ENDED)[0].replace(str(PLACE), "PLACE")
    changing = [
        (r"(127\.0\.0\.1|localhost):\d+", r"\1:PORT"), (r"--port \d+", "--port PORT"), (r"\d\.\d\d/", "N/"),
        (r"\d+(\.\d+)? m?s\b", "N s"),
        (r"\d\d:\d\d:\d\d(\.\d+)?", "HH:MM:SS"), (r"\d{4}-\d\d-\d\d", "DATE"), (r"call_\w{20,}", "call_ID"),
        (r"\b[0-9a-f]{12,}\b", "HEX"),
    ]  # fmt: skip
    for pattern, word in changing:
        text = re.sub(pattern, word, text)
    lines = [line.rstrip() for line in text.rstrip().splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def keep(name: str, text: str) -> None:
    """Compare a screen with the one that is kept, or keep it."""
    path, seen = SCREENS / f"{name}.txt", settled(text)
    assert max(map(len, seen.splitlines())) <= 80
    if os.environ.get("DRAGOMAN_WRITE_SCREENS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(seen, encoding="utf-8")
    assert seen == path.read_text(encoding="utf-8")


MOMENTS = {
    "help": ["help"],
    "demo": ["demo", "--streams"],
    "decode": ["decode", "--result", "--tools", "tools.json", "glued.sse"],
    "call": ["call", "lab/m", "Weather in Paris?", "--tools", "tools.json"],
    "models": ["models", "lab"],
    "models-info": ["models", "info", "anthropic/claude-sonnet-4-5"],
    "doctor": ["doctor", "--local"],
    "validate": ["validate", "lab/m", "--seed", "screens"],
    "explain": ["explain", "--from", "openai", "--to", "anthropic/claude-sonnet-4-5", "request.json"],
    "env": ["env", "claude-code"],
    "apps": ["apps"],
    "config": ["config", "check"],
    "no-key": ["call", "anthropic/claude-sonnet-4-5", "hello"],
    "no-server": ["call", "ollama/granite4", "hello"],
}


@pytest.mark.parametrize("name", MOMENTS)
def test_a_command(place: Path, name: str) -> None:
    with running(place, *MOMENTS[name]) as terminal:
        keep(name, terminal.ended())


def post(url: str) -> None:
    """A client's request, read to its end."""
    headers = {"content-type": "application/json", "user-agent": "screens"}
    asked = urllib.request.Request(f"{url}/chat/completions", json.dumps(ASK).encode(), headers)
    with urllib.request.urlopen(asked, timeout=60) as answer:
        assert b"get_weather" in answer.read()


def test_the_gateway_its_tail_and_its_ledger(place: Path) -> None:
    with running(place, "serve", "--port", "0") as gateway:
        found = re.search(r"listening on (http://127\.0\.0\.1:\d+)", wait_for(gateway, "listening on"))
        assert found is not None
        with running(place, "tail", "--url", found[1]) as tail:
            wait_for(tail, "watching")
            post(f"{found[1]}/v1")
            post(f"{found[1]}/v1")
            wait_for(tail, "lab/m", count=2)
            tail.type("\x03")
            keep("tail", tail.ended())
        wait_for(gateway, "lab/m", count=2)
        gateway.type("\x03")
        keep("serve", gateway.ended())
    with running(place, "spend", "--by", "target") as spend:
        keep("spend", spend.ended())


def test_a_recording(place: Path) -> None:
    with running(place, "record", "lab") as terminal:
        found = re.search(r"http://127\.0\.0\.1:\d+\S*", wait_for(terminal, "http://"))
        assert found is not None
        post(found[0])
        wait_for(terminal, "001")
        terminal.type("\x03")
        keep("record", terminal.ended())


def test_a_screen_that_fails_leaves_nothing_running(place: Path) -> None:
    """Whatever the command makes of a terminal that closes."""
    with running(place, "serve", "--port", "0") as gateway:
        found = re.search(r"listening on http://127\.0\.0\.1:(\d+)", wait_for(gateway, "listening on"))
        assert found is not None
    for _ in range(600):
        with socket.socket() as asked:
            if asked.connect_ex(("127.0.0.1", int(found[1]))):
                return
        time.sleep(0.1)
    raise AssertionError("the gateway still listens")
