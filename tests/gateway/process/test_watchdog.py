"""A worker whose event loop stands still is ended and replaced, and where it stood is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.gateway.process.watchdog import STANDING_SECONDS, Pulse, Watchdog


class Looks:
    """A parent that looks once a second."""

    def __init__(self, slots: int) -> None:
        self.pulse = Pulse(slots)
        self.watchdog = Watchdog(self.pulse)
        self.slots = range(slots)
        self.now = 1_000.0

    def pass_by(self, seconds: float, beating: tuple[int, ...], *, step: float = 1.0) -> list[int]:
        found: list[int] = []
        end = self.now + seconds
        while self.now < end:
            self.now += step
            for slot in beating:
                self.pulse.beat(slot)
            found += self.watchdog.look(self.slots, self.now)
        return found


def test_one_that_stands_still_is_found_once_and_the_others_are_not() -> None:
    looks = Looks(3)
    assert looks.pass_by(30, (0, 1, 2)) == []
    assert looks.pass_by(STANDING_SECONDS - 1, (0, 2)) == []
    assert looks.pass_by(2, (0, 2)) == [1]
    assert looks.pass_by(3, (0, 2)) == []


def test_one_that_beats_again_in_time_is_let_be() -> None:
    looks = Looks(1)
    for _ in range(5):
        looks.pass_by(1, (0,))
        assert looks.pass_by(STANDING_SECONDS - 1, ()) == []


def test_one_that_is_still_starting_is_waited_for() -> None:
    looks = Looks(2)
    assert looks.pass_by(100, (1,)) == []
    looks.pulse.beat(0)
    assert looks.pass_by(STANDING_SECONDS + 2, (1,)) == [0]
    looks.pulse.begin(0)
    assert looks.pass_by(100, (1,)) == []


@pytest.mark.parametrize("gap", [3.0, 60.0, 36_000.0])
def test_sleep_of_the_machine_or_a_stop_of_both_is_no_standing(gap: float) -> None:
    looks = Looks(1)
    looks.pass_by(5, (0,))
    for _ in range(20):
        assert looks.pass_by(gap, (), step=gap) == []
        assert looks.pass_by(STANDING_SECONDS - 1, ()) == []
    assert looks.pass_by(2, ()) == [0]


SCRIPT = r"""
import asyncio, os, sys
from pathlib import Path
from dragoman.gateway.process import watchdog, workers

watchdog.STANDING_SECONDS = workers.STANDING_SECONDS = 1.5
workers._BEAT_SECONDS = 0.2
folder = Path(sys.argv[1])
sys.path.insert(0, str(folder))
from standing import stand_still

async def serve(worker):
    stop = asyncio.Event()
    worker.begin(stop.set)
    os.write(1, f"serves {worker.slot}\n".encode())  # in one piece
    if worker.slot == 0 and not (folder / "stood").exists():
        (folder / "stood").touch()
        await asyncio.sleep(0.5)
        stand_still()
    await stop.wait()

def tell(text):
    os.write(1, f"{text}\n".encode())

sockets = workers.bind("127.0.0.1", 0, 2)
workers.Supervisor(sockets, lambda worker: asyncio.run(serve(worker)), ready=lambda: None, tell=tell).run()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the parent looks where there is sigwaitinfo")
def test_a_worker_in_a_pattern_without_end_is_replaced(tmp_path: Path) -> None:
    """The pattern holds the interpreter: nothing in the process could notice."""
    folder = tmp_path / "dragoman"
    folder.mkdir()
    text = "import re\n\n\ndef stand_still():\n    re.match('(a+)+$', 'a' * 60 + 'b')\n"
    (folder / "standing.py").write_text(text, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    program = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder)], stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert program.stdout is not None
        lines = []
        while lines.count("serves 0") < 2:
            line = program.stdout.readline()
            assert line, lines
            lines.append(line.strip())
        assert lines.count("serves 1") == 1
        (told,) = [line for line in lines if "stood still" in line]
        assert told.startswith("worker 0 stood still for 1.5 s and is replaced; it stood at ")
        assert "standing.py:5 in stand_still" in told
        program.terminate()
        assert program.wait(20) == 0
    finally:
        program.kill()
        program.wait()
        if program.stdout is not None:
            program.stdout.close()
