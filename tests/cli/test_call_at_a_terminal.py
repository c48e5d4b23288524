"""`dragoman call` in a pseudo-terminal: what stands on the screen at the end is what the model said."""

from __future__ import annotations

import os
import pty
import re
import sys
import time
from pathlib import Path

import pytest

from scripted import END, Step, chunk, head, serving
from warm_programs import Popen
from whole_programs import LIMIT_SECONDS, called, configure, said

TOOLS = Path(__file__).resolve().parents[2] / "docs" / "examples" / "tools.json"
#: Seconds until the command has said that it waits: after two it begins to.
LONG = 2.7
OK = "stop"


def answer(*pieces: bytes | float) -> list[Step]:
    return [head(), *(piece if isinstance(piece, float) else chunk(piece) for piece in pieces), END]


def screen_of(written: bytes) -> list[str]:
    """The lines that a terminal shows after these bytes: carriage return, line feed and erasing as ECMA-48 says."""
    rows, column = [""], 0
    for token in re.findall(r"\x1b\[[0-9;]*[A-Za-z]|[\s\S]", written.decode()):
        line = rows[-1]
        if token == "\r":
            column = 0
        elif token == "\n":
            rows.append(" " * column)
        elif token == "\x1b[K":
            rows[-1] = line[:column]
        elif token[0] == "\x1b":
            assert token.endswith("m"), f"only colours are expected, not {token!r}"
        else:
            rows[-1] = line[:column].ljust(column) + token + line[column + 1 :]
            column += 1
    return [row.rstrip() for row in rows if row.strip()]


def at_terminal(config: Path, *arguments: str, stdout: int | None = None) -> bytes:
    """All that the command wrote to its terminal; `stdout`: a file that takes its standard output instead."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "dragoman", "call", "lab/m", "Hello", *arguments]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(config.parent),
        "DRAGOMAN_CONFIG": str(config),
        "TERM": "xterm",
    }
    run = Popen(command, stdin=theirs, stdout=theirs if stdout is None else stdout, stderr=theirs, env=environment)
    os.close(theirs)
    written, end = b"", time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < end:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # nobody has the other side any more (Linux)
            break
        if not piece:
            break
        written += piece
    os.close(ours)
    run.wait(LIMIT_SECONDS)
    return written


ANSWERS = {
    "at once": answer(*said("Hello from", " the scripted model")),
    "in one piece": answer(b"".join(said("Hello from", " the scripted model"))),
    "word by word": answer(said("Hello")[0], 0.3, *said(" from the scripted model")),
    "after a wait": answer(LONG, *said("Hello from", " the scripted model")),
    "in one piece after a wait": answer(LONG, b"".join(said("Hello from", " the scripted model"))),
    "with a wait inside": answer(said("Hello")[0], LONG, *said(" from the scripted model")),
    "after a head and a wait": answer(b": ping\n\n", LONG, *said("Hello from", " the scripted model")),
}  # fmt: skip


@pytest.mark.parametrize("when", ANSWERS)
def test_the_whole_answer_stands_on_the_screen(when: str, tmp_path: Path) -> None:
    with serving(ANSWERS[when]) as server:
        written = at_terminal(configure(tmp_path, server.url))
    answered, summary = screen_of(written)
    assert answered == "Hello from the scripted model"
    assert summary.startswith(OK)
    assert (b"waiting" in written or b"loading" in written) == ("after" in when)


@pytest.mark.parametrize("wait", [0.0, LONG])
def test_a_calls_name_stands_on_the_screen(wait: float, tmp_path: Path) -> None:
    with serving(answer(wait, *called("get_weather", '{"city": "Rome"}'))) as server:
        written = at_terminal(configure(tmp_path, server.url), "--tools", str(TOOLS))
    assert screen_of(written)[0] == 'get_weather({"city": "Rome"})'


def test_a_failure_after_a_wait_stands_on_a_line_of_its_own(tmp_path: Path) -> None:
    with serving([LONG, b"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n"]) as server:
        written = at_terminal(configure(tmp_path, server.url))
    lines = screen_of(written)
    assert b"waiting" in written or b"loading" in written
    assert not any("waiting" in line or "loading" in line for line in lines)
    assert lines[-1].startswith("dragoman: not_found")


def test_the_hint_stays_out_of_a_file(tmp_path: Path) -> None:
    with serving(answer(LONG, *said("Hello", " you"))) as server, (tmp_path / "out").open("wb") as out:
        written = at_terminal(configure(tmp_path, server.url), stdout=out.fileno())
    assert (tmp_path / "out").read_text() == "Hello you\n"
    assert [line.partition(" ")[0] for line in screen_of(written)] == [OK]


def test_events_come_whole_after_a_wait(tmp_path: Path) -> None:
    with serving(answer(LONG, *said("Hello", " you"))) as server:
        lines = screen_of(at_terminal(configure(tmp_path, server.url), "--json"))
    assert all(line.startswith('{"type":') and line.endswith("}") for line in lines)
