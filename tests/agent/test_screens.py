"""The same scenes in tmux, the screens kept as text: `make agent-screens`; DRAGOMAN_WRITE_SCREENS=1 writes them.

Needs tmux and bubblewrap. What differs from run to run (folders, ports, session names) is written as a word.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent import scenes
from agent.driving import PROMPT, Tmux, at_prompt, chatting, enter, wait_for
from dragoman.agent.sandbox.bubblewrap import find_bubblewrap
from dragoman.protocols import PROTOCOLS
from dragoman.types import ProtocolName

pytestmark = pytest.mark.screens
#: Its length decides where lines end.
PLACE = Path(tempfile.gettempdir()) / "dragoman-screens"
SCREENS = Path(__file__).with_name("screens")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder whose name is always the same: it stands on the screens, and its length decides where lines end.

    The scenes show commands in a sandbox.
    """
    assert find_bubblewrap() is not None, "needs bubblewrap that works here: apt install bubblewrap"
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(mode=0o700)
    yield PLACE
    shutil.rmtree(PLACE)


def settled(text: str) -> str:
    """A screen without what differs from run to run."""
    text = text.replace(str(PLACE), "PLACE")
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", text)
    text = re.sub(r"\d{10}-[A-Za-z0-9]{10}", "SESSION", text)
    # How the bytes fell into pieces is chance; tests/agent/test_wire_recorder.py has what is drawn of them.
    text = re.sub(r"(?s)(?<=^› /wire\n).*?(?=^› /compact)", "…\n", text, flags=re.MULTILINE)
    text = "\n".join(line.rstrip() for line in text.rstrip().splitlines()) + "\n"
    text = re.sub(r"\n{3,}", "\n\n", text)
    return re.sub(r"\n+(?=[^\n]+\n\Z)", "\n", text)


def keep(name: str, text: str) -> None:
    """Compare a screen with the one that is kept, or keep it."""
    path, seen = SCREENS / f"{name}.txt", settled(text)
    if os.environ.get("DRAGOMAN_WRITE_SCREENS"):
        path.write_text(seen, encoding="utf-8")
    assert seen == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_a_task(place: Path, protocol: ProtocolName) -> None:
    keep(f"task-{protocol}", scenes.task(Tmux, place, protocol))


@pytest.mark.parametrize(
    "scene", [scenes.switching, scenes.commands, scenes.stopping, scenes.killed], ids=lambda scene: scene.__name__
)
def test_a_scene(place: Path, scene: Callable[[type, Path], str]) -> None:
    text = scene(Tmux, place)
    if scene is scenes.stopping:  # how far the answer had come when it was stopped is chance
        text = re.sub(r"(?s)(?<=› please count\n).*?(?=stopped)", "one two three …\n", text)
        text = re.sub(r"[\d,]+(?= in,| of 128,000)", "N", text)
    keep(scene.__name__, text)


def test_the_embedded_model(place: Path) -> None:
    """It forces a call, runs it, and says of itself how small it is; its own words are not kept."""
    scenes.prepare(place)
    config = place / "dragoman.toml"
    config.write_text("")
    with chatting(Tmux, place, config, "embedded/smollm2") as terminal:
        wait_for(terminal, PROMPT)
        enter(terminal, "Read the file shape.py")
        at_prompt(terminal, "2 steps · ")
        enter(terminal, "/models embedded")
        text = at_prompt(terminal, "proven")
    assert "This model is very small" in text
    calls = re.findall(r"^▸ (read|list|run)", text, re.MULTILINE)
    assert len(calls) <= 1
    head, _, tail = text.partition("› Read the file shape.py")
    end = tail.index("› /models embedded")
    keep("embedded", f"{head}› Read the file shape.py\n(a call, its result, and the model's words)\n{tail[end:]}")
