"""Killed at any moment and resumed: no call is run twice, and an unknown outcome is said to be unknown."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from agent import crashing
from agent.faces import check_sound
from dragoman.agent.session.session_file import Session
from dragoman.types import ToolResult

PROGRAM = Path(crashing.__file__)


def forked(store: Path, counter: Path, which: str, seconds: float) -> bool:
    """The agent in a forked process, killed after that time; whether it was killed."""
    child = os.fork()
    if child == 0:
        try:
            crashing.main(store, counter, which)
        finally:
            os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def started(store: Path, counter: Path, which: str, seconds: float) -> bool:
    """The same as a program of its own, its time counted from its first record."""
    child = subprocess.Popen([sys.executable, str(PROGRAM), str(store), str(counter), which])
    while child.poll() is None and not list(store.glob("*.jsonl")):
        time.sleep(0.001)
    time.sleep(seconds)
    child.kill()
    return child.wait() != 0


def survive(place: Path, seconds: list[float], kill: object) -> tuple[int, int, int]:
    """(kills, executions, unknown outcomes) of one session that is killed again and again, then let go to its end."""
    store, counter = place / "state", place / "counter"
    store.mkdir(parents=True)
    kills, which = 0, "new"
    for delay in seconds:
        kills += kill(store, counter, which, delay)  # type: ignore[operator]
        found = list(store.glob("*.jsonl"))
        which = str(found[0]) if found and found[0].stat().st_size else "new"
        if which == "new":
            for path in found:
                path.unlink()
    session = (
        Session.load(Path(which))
        if which != "new"
        else Session.create(store, folder=store, target="lab/m", id="x", at=1)
    )
    asyncio.run(crashing.work(store, counter, session))
    check_sound(session)
    runs = Counter(counter.read_text().split())
    assert max(runs.values()) == 1, runs
    results = {
        part.call_id: part for message in session.messages for part in message.parts if isinstance(part, ToolResult)
    }
    assert set(runs) <= set(results)
    unknown = [each for each in results.values() if each.text.startswith("interrupted")]
    for each in results.values():
        if each.text == "bumped":
            assert runs[each.call_id] == 1
        elif each.text.startswith("not run"):
            assert runs[each.call_id] == 0
        else:
            assert each.text.startswith("interrupted") and each.is_error
    session.close()
    return kills, len(runs), len(unknown)


def survive_often(place: Path, points: int, kill: object, *, seed: int, longest: float) -> tuple[int, int, int]:
    chance = random.Random(seed)
    total, number = (0, 0, 0), 0
    while total[0] < points:
        delays = [chance.uniform(0, longest) for _ in range(4)]
        one = survive(place / str(number), delays, kill)
        total = (total[0] + one[0], total[1] + one[1], total[2] + one[2])
        number += 1
        assert number < points * 3, "the process is never hit; make the delays shorter"
    return total


def test_no_second_execution_after_being_killed(tmp_path: Path) -> None:
    kills, executions, _ = survive_often(tmp_path, 24, forked, seed=7, longest=0.06)
    assert kills >= 24 and executions > 12


@pytest.mark.soak
def test_no_second_execution_after_two_hundred_kills(tmp_path: Path) -> None:
    kills, executions, unknown = survive_often(tmp_path, 200, started, seed=11, longest=0.12)
    print(f"{kills} SIGKILLs of real processes, {executions} executions, 0 second ones, {unknown} outcomes unknown")
