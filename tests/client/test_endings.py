"""Programs that end, however they use `Client`: each in a process of its own, with a time limit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import whole_programs
from scripted import chunk, head, serving, streamed
from whole_programs import LIMIT_SECONDS, configure, said

NEVER_ENDS = [head(), *(chunk(piece) for piece in said("one", "two")[:2]), "hold"]

#: What a program may do before its end with `client`, made at its top.
PROGRAMS = {
    "does nothing": "",
    "asks": 'print(client.reply("lab/m", "hello").text)',
    "reads a stream": """
with client.stream("lab/m", "hello") as stream:
    print("".join(event.text for event in stream if hasattr(event, "text")))
""",
    "asks in a function": 'def main():\n    print(dragoman.Client().reply("lab/m", "hello").text)\nmain()',
    "asks in a thread": """
import threading
thread = threading.Thread(target=lambda: print(client.reply("lab/m", "hello").text))
thread.start()
""",
    "makes it in a thread": """
import threading
thread = threading.Thread(target=lambda: print(dragoman.Client().reply("lab/m", "hello").text))
thread.start()
thread.join()
""",
    "asks in a running loop": """
import asyncio
async def main():
    print(client.reply("lab/m", "hello").text)
asyncio.run(main())
""",
    "has it in a cycle": """
class Holder: pass
holder = Holder(); holder.self = holder; holder.client = client
print(client.reply("lab/m", "hello").text)
del holder, client
""",
    "asks at its exit": """
import atexit
atexit.register(lambda: print(client.reply("lab/m", "hello").text))
""",
    "closes it twice": 'print(client.reply("lab/m", "hello").text)\nclient.close()\nclient.close()',
    "keeps two": """
other = dragoman.Client()
assert client.reply("lab/m", "hello").text == other.reply("lab/m", "hello").text
print("Hello")
""",
    "forks": """
import os, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python's own, of any fork beside threads
client.reply("lab/m", "hello")
if (child := os.fork()) == 0:
    print(client.reply("lab/m", "hello").text)
else:
    assert os.waitpid(child, 0)[1] == 0
    assert client.reply("lab/m", "hello").text == "Hello"
""",
    "forks and asks no more": """
import os, warnings
warnings.simplefilter("ignore", DeprecationWarning)
if (child := os.fork()) == 0:
    print("Hello")
else:
    assert os.waitpid(child, 0)[1] == 0
""",
    "drops it in its own loop": """
import gc
def told(target, deviation): pass
def make():
    cycle = [dragoman.Client(on_deviation=told)]
    cycle.append(cycle)
    return cycle[0].reply("lab/m", "hello").text
print(make())
client.stream("lab/m", "hello")
client._background._loop.call_soon_threadsafe(gc.collect)
""",
}  # fmt: skip

#: What leaves a stream open that will never end: the program ends all the same, and the provider sees it go.
IN_THE_MIDDLE = {
    "of a stream": """
stream = client.stream("lab/m", "hello").__enter__()
print(next(event.text for event in stream if hasattr(event, "text")))
""",
    "of a stream in a daemon thread": """
import threading
came = threading.Event()
def read():
    with client.stream("lab/m", "hello") as stream:
        for event in stream:
            if hasattr(event, "text"):
                came.set()
threading.Thread(target=read, daemon=True).start()
came.wait()
print("one")
""",
    "of a stream whose client was dropped": """
def begin():
    return dragoman.Client().stream("lab/m", "hello")
with begin() as stream:
    print(next(event.text for event in stream if hasattr(event, "text")))
""",
}


def ended(program: str, config: Path) -> subprocess.CompletedProcess[str]:
    return whole_programs.ended(f"import dragoman\nclient = dragoman.Client()\n{program}", config=config)


AFTER_THE_MAIN_THREAD = """
import threading
def work():
    threading.main_thread().join()
    {}
threading.Thread(target=work).start()
"""


def test_a_thread_looks_a_host_up_after_the_main_thread_has_ended(tmp_path: Path) -> None:
    program = AFTER_THE_MAIN_THREAD.format('print(client.reply("lab/m", "hello").text)')
    with serving(streamed(*said("Hel", "lo"))) as server:
        run = ended(program, configure(tmp_path, server.url.replace("127.0.0.1", "localhost")))
    assert (run.returncode, run.stdout, run.stderr) == (0, "Hello\n", "")


def test_a_client_made_after_the_main_thread_has_ended_works_or_says_why(tmp_path: Path) -> None:
    """Python 3.11 and 3.13 start threads then, 3.12 does not."""
    program = AFTER_THE_MAIN_THREAD.format(
        """
    try: threading.Thread(target=int).start(); print("it starts")
    except RuntimeError: print("none starts")
    try: print(dragoman.Client().reply("lab/m", "hello").text)
    except dragoman.UsageError as problem: print(problem)"""
    )
    with serving(streamed(*said("Hel", "lo"))) as server:
        run = ended(program, configure(tmp_path, server.url))
    refused = "a Client needs a thread, and Python starts none once the main thread has ended: "
    starts, _, printed = run.stdout.partition("\n")
    expected = {"it starts": "Hello\n", "none starts": refused}[starts]
    assert (run.returncode, run.stderr) == (0, "") and printed.startswith(expected)


@pytest.mark.parametrize("what", PROGRAMS)
def test_a_program_that_does_not_close_its_client_ends(what: str, tmp_path: Path) -> None:
    with serving(streamed(*said("Hel", "lo"))) as server:
        run = ended(PROGRAMS[what], configure(tmp_path, server.url))
    expected = "Hello\n" if PROGRAMS[what] else ""
    assert (run.returncode, run.stdout, run.stderr) == (0, expected, "")


@pytest.mark.parametrize("what", IN_THE_MIDDLE)
def test_a_program_that_ends_in_the_middle(what: str, tmp_path: Path) -> None:
    with serving(NEVER_ENDS) as server:
        run = ended(IN_THE_MIDDLE[what], configure(tmp_path, server.url))
        assert server.client_gone.wait(LIMIT_SECONDS)
    assert (run.returncode, run.stdout, run.stderr) == (0, "one\n", "")


@pytest.mark.parametrize(
    ("how", "status"),
    [("raise SystemExit(3)", 3), ("raise ValueError('theirs')", 1), ("import sys; sys.exit('no')", 1)],
)
def test_the_exit_status_is_the_programs_own(how: str, status: int, tmp_path: Path) -> None:
    with serving(NEVER_ENDS) as server:
        run = ended(f'stream = client.stream("lab/m", "x").__enter__()\n{how}', configure(tmp_path, server.url))
    assert run.returncode == status
    assert "dragoman" not in run.stderr


def test_a_stream_does_not_go_along_through_a_fork(tmp_path: Path) -> None:
    program = """
import os, warnings
warnings.simplefilter("ignore", DeprecationWarning)
stream = client.stream("lab/m", "hello").__enter__()
if (child := os.fork()) == 0:
    try:
        next(iter(stream))
    except dragoman.UsageError as error:
        print(error)
else:
    assert os.waitpid(child, 0)[1] == 0
    client.close()
"""
    with serving(NEVER_ENDS) as server:
        run = ended(program, configure(tmp_path, server.url))
    assert (run.returncode, run.stderr) == (0, "")
    assert "before a fork" in run.stdout


def test_whoever_waits_is_told_that_the_client_was_closed(tmp_path: Path) -> None:
    program = """
import threading
came = threading.Event()
def read():
    try:
        with client.stream("lab/m", "hello") as stream:
            for event in stream:
                if hasattr(event, "text"):
                    came.set()
    except dragoman.UsageError as error:
        print(error)
thread = threading.Thread(target=read)
thread.start()
came.wait()
client.close()
thread.join()
try:
    client.reply("lab/m", "hello")
except dragoman.UsageError as error:
    print(error)
"""
    with serving(NEVER_ENDS) as server:
        run = ended(program, configure(tmp_path, server.url))
    assert (run.returncode, run.stderr) == (0, "")
    assert "closed" in run.stdout.splitlines()[0]
    assert run.stdout.splitlines()[-1] == "this Client is closed"


def test_a_client_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    program = """
import threading
for _ in range(3):
    try:
        dragoman.client.synchronous.Background(lambda: 1 / 0)
    except ZeroDivisionError:
        pass
client.close()
import time
while any(thread.name == "dragoman" for thread in threading.enumerate()):
    time.sleep(0.01)
"""
    with serving(NEVER_ENDS) as server:
        run = ended("import dragoman.client.synchronous\n" + program, configure(tmp_path, server.url))
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
