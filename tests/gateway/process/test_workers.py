"""Several processes on one port: numbers add up, one that dies is replaced, all end together."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from conversations import reply
from gateway.process.test_gateway import asked_models, configured, serve
from gateway.running import stream_of, wire
from gateway.telemetry.test_metrics import samples
from scripted import chunk, head, serving

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are workers only where there is fork")
REQUESTS = 'dragoman_requests_total{client="openai-chat",route="coder",provider="lab",outcome="done"}'


def ask(port: int, path: str = "/v1/chat/completions") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    body = json.dumps({"model": "coder", "stream": True, "messages": [{"role": "user", "content": "Hi"}]})
    try:
        is_page = path in ("/metrics", "/readyz")
        connection.request("GET" if is_page else "POST", path, None if is_page else body)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def children(process: int) -> list[int]:
    text = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(word) for word in text.split()]


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def numbers(port: int) -> dict[str, float]:
    return samples(ask(port, "/metrics")[1])


def test_numbers_add_up_whoever_is_asked(tmp_path: Path) -> None:
    with serving(stream_of("ollama-chat", reply("text"))) as provider:
        words = ("--config", str(configured(tmp_path, provider.url)), "--workers", "2")
        with serve(tmp_path, *words) as (_, port):
            for _ in range(40):
                assert ask(port)[0] == 200
            until(lambda: numbers(port).get(REQUESTS) == 40)
            found = [numbers(port) for _ in range(8)]
    assert {one[REQUESTS] for one in found} == {40.0}
    assert {one["dragoman_ready_workers"] for one in found} == {2.0}


@pytest.mark.skipif(sys.platform != "linux", reason="children are found in /proc")
def test_a_worker_that_dies_is_replaced_and_its_numbers_stay(tmp_path: Path) -> None:
    with serving(stream_of("ollama-chat", reply("text"))) as provider:
        words = ("--config", str(configured(tmp_path, provider.url)), "--workers", "2")
        with serve(tmp_path, *words) as (program, port):
            for _ in range(20):
                assert ask(port)[0] == 200
            until(lambda: numbers(port).get(REQUESTS) == 20)  # the last one is counted after its client has it all
            before = children(program.pid)
            os.kill(before[0], signal.SIGKILL)
            until(lambda: len(children(program.pid)) == 3 and before[0] not in children(program.pid))  # and the shipper
            for _ in range(20):
                assert ask(port)[0] == 200
            until(lambda: numbers(port)["dragoman_ready_workers"] == 2)
            until(lambda: numbers(port)[REQUESTS] == 40)


@pytest.mark.skipif(sys.platform != "linux", reason="children are found in /proc")
def test_a_worker_that_takes_the_place_of_another_goes_by_the_file_as_it_is_now(tmp_path: Path) -> None:
    """A key that was taken back, a limit that was lowered: the death of a worker brings none of it back."""
    with serving(stream_of("ollama-chat", reply("text"))) as provider:
        file = configured(tmp_path, provider.url)
        with serve(tmp_path, "--config", str(file), "--workers", "2") as (program, port):
            assert ask(port)[0] == 200
            file.write_text(file.read_text() + '\n[[quotas]]\nscope = "all"\ntokens = 0\nper = "month"\n')
            until(lambda: [ask(port)[0] for _ in range(12)] == [429] * 12)
            before = children(program.pid)
            for worker in before[:2]:
                os.kill(worker, signal.SIGKILL)
                until(lambda dead=worker: dead not in children(program.pid) and len(children(program.pid)) == 3)
            until(lambda: numbers(port)["dragoman_ready_workers"] == 2)
            assert {ask(port)[0] for _ in range(24)} == {429}


def test_streams_of_all_workers_end_whole_after_the_signal(tmp_path: Path) -> None:
    data = wire("ollama-chat", reply("text"))
    rest = threading.Semaphore(0)  # of each answer; it leaves when a gateway has seen the signal
    steps = [head(200, "application/x-ndjson"), chunk(data[:150]), rest, chunk(data[150:]), b"0\r\n\r\n"]
    with serving(steps) as provider:
        words = ("--config", str(configured(tmp_path, provider.url)), "--workers", "2")
        with serve(tmp_path, *words) as (program, port):
            body = json.dumps({"model": "coder", "stream": True, "messages": [{"role": "user", "content": "Hi"}]})
            connections = [http.client.HTTPConnection("127.0.0.1", port, timeout=20) for _ in range(16)]
            for connection in connections:
                connection.request("POST", "/v1/chat/completions", body)
            responses = [connection.getresponse() for connection in connections]
            program.send_signal(signal.SIGTERM)
            until(lambda: ask(port, "/readyz")[0] == 503)
            rest.release(100)
            ends = Counter(response.read().endswith(b"data: [DONE]\n\n") for response in responses)
            for connection in connections:
                connection.close()
            assert ends == {True: 16}
            assert program.wait(20) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="children are found in /proc")
def test_who_asks_while_all_end_waits_for_no_worker_that_is_gone(tmp_path: Path) -> None:
    """As where the signal meets a worker that has not begun. The others had its socket too: half of all waited."""
    with serving(stream_of("ollama-chat", reply("text"))) as provider:
        file = configured(tmp_path, provider.url)
        file.write_text(file.read_text("utf-8") + "\nnotice_seconds = 60", encoding="utf-8")
        with serve(tmp_path, "--config", str(file), "--workers", "2") as (program, port):
            first, second = children(program.pid)[:2]
            program.send_signal(signal.SIGTERM)
            until(lambda: ask(port, "/readyz")[0] == 503)
            os.kill(second, signal.SIGKILL)
            until(lambda: second not in children(program.pid))
            assert [ask(port)[0] for _ in range(12)] == [200] * 12
            assert first in children(program.pid)
            program.send_signal(signal.SIGTERM)
            assert program.wait(20) == 0


def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    with serving([head(200, "application/x-ndjson"), "hold"]) as provider:
        for workers in ("1", "2"):
            words = ("--config", str(configured(tmp_path, provider.url)), "--workers", workers)
            with serve(tmp_path, *words) as (program, port):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
                body = json.dumps({"model": "coder", "stream": True, "messages": [{"role": "user", "content": "Hi"}]})
                seen = len(provider.requests)
                connection.request("POST", "/v1/chat/completions", body)
                until(lambda seen=seen: len(provider.requests) > seen)  # type: ignore[misc]
                program.send_signal(signal.SIGTERM)
                until(lambda port=port: ask(port, "/readyz")[0] == 503)  # type: ignore[misc]
                assert program.poll() is None
                program.send_signal(signal.SIGTERM)
                assert program.wait(20) == 0
                connection.close()


@pytest.mark.skipif(sys.platform != "linux", reason="children are found in /proc")
def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    with serving(stream_of("ollama-chat", reply("text"))) as provider:
        with serve(tmp_path, "--config", str(configured(tmp_path, provider.url)), "--workers", "2") as (program, _):
            workers = children(program.pid)
            program.kill()
            program.wait(10)
            until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))


@pytest.mark.skipif(sys.platform != "linux", reason="as the watchdog")
def test_who_was_stopped_goes_on(tmp_path: Path) -> None:
    """At a terminal, or as a machine that stands still: the parent, then all. The time that it waits for has passed
    meanwhile, and Python's `sigtimedwait` then gives a number that nobody sent."""
    with (
        serving(stream_of("ollama-chat", reply("text"))) as provider,
        serve(tmp_path, "--config", str(configured(tmp_path, provider.url)), "--workers", "2") as (program, port),
    ):
        workers = children(program.pid)
        for turn in range(4):
            stopped = [program.pid, *(workers if turn > 2 else ())]
            for number in (signal.SIGSTOP, signal.SIGCONT):
                for process in stopped:
                    os.kill(process, number)
                time.sleep(1.2 if number == signal.SIGSTOP else 0.2)
            assert program.poll() is None and {*workers} <= {*children(program.pid)}
        assert ask(port)[0] == 200


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with serving(stream_of("ollama-chat", reply("text"))) as provider:
        file = str(configured(tmp_path, provider.url))
        with serve(tmp_path, "--config", file, "--workers", "2") as (_, port):
            for workers in ("1", "2"):
                words = ["serve", "--config", file, "--port", str(port), "--workers", workers]
                run = subprocess.run(
                    [sys.executable, "-m", "dragoman", *words],
                    capture_output=True, text=True, timeout=30, check=False,
                )  # fmt: skip
                assert (run.returncode, run.stdout) == (1, "")
                assert f"port {port} is taken" in run.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere ports are not shared")
@pytest.mark.parametrize(("before", "after"), [("2", "2"), ("1", "2"), ("2", "1")])
def test_the_next_gateway_takes_the_port_of_one_that_ends(tmp_path: Path, before: str, after: str) -> None:
    data = wire("ollama-chat", reply("text"))
    rest = threading.Semaphore(0)  # leaves when the next gateway is there
    steps = [head(200, "application/x-ndjson"), chunk(data[:150]), rest, chunk(data[150:]), b"0\r\n\r\n"]
    with serving(steps) as provider:
        file = str(configured(tmp_path, provider.url))
        with serve(tmp_path, "--config", file, "--workers", before) as (old, port):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            body = json.dumps({"model": "coder", "stream": True, "messages": [{"role": "user", "content": "Hi"}]})
            connection.request("POST", "/v1/chat/completions", body)
            until(lambda: bool(asked_models(provider)))
            old.send_signal(signal.SIGTERM)
            until(lambda: ask(port, "/readyz")[0] == 503)
            with serve(tmp_path, "--config", file, "--port", str(port), "--workers", after) as (_, taken):
                assert taken == port
                rest.release(100)  # from now on nothing is held
                assert connection.getresponse().read().endswith(b"data: [DONE]\n\n")
                connection.close()
                assert old.wait(20) == 0
                assert ask(port)[0] == 200


_PAUSING = """
import os, signal, sys, time
from pathlib import Path
from dragoman.gateway.process import workers

told = Path(sys.argv[1])
workers._PAUSE = 0.02

def note(word):
    with told.open("a") as file:
        file.write(f"{word} {os.getpid()}\\n")

def noted(word):
    return [int(line.split()[1]) for line in told.read_text().splitlines() if line.startswith(word)]

def wait(holds):
    while not holds():
        time.sleep(0.002)

def is_gone(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False

def work(worker):
    note(f"worker{worker.slot}")
    os.write(worker.ready, b".")
    wait(lambda: noted("shipper"))
    if worker.slot == 1:  # once the one beside it waits for its pause, and will for seconds, the shipper dies
        wait(lambda: len(noted("worker0")) == 7 and is_gone(noted("worker0")[-1]))
        os.kill(noted("shipper")[0], signal.SIGKILL)
    if worker.slot:
        wait(lambda: False)

def ship(folder, parent):
    note("shipper")
    wait(lambda: False)

told.touch()
workers.Supervisor(workers.bind("127.0.0.1", 0, 4), work, ready=lambda: None, tell=print, ship=ship).run()
"""


def test_a_shipper_that_dies_does_not_wait_for_the_pause_of_a_worker(tmp_path: Path) -> None:
    """What the dead left open is closed by the shipper: it was begun after all pauses of workers that die at once."""
    told = tmp_path / "told"

    def noted(word: str) -> int:
        return told.read_text().count(word) if told.exists() else 0

    program = subprocess.Popen([sys.executable, "-c", _PAUSING, str(told)], start_new_session=True)
    try:
        until(lambda: noted("shipper") == 2)
        assert noted("worker0") == 7
    finally:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()


_DYING = """
import os, sys, time
from pathlib import Path
from dragoman.gateway.process import workers

workers._PAUSE = 0.001
told, serves = Path(sys.argv[1]), sys.argv[2] == "serves"

def note(word):
    with told.open("a") as file:
        file.write(word)

def work(worker):
    if serves:
        worker.pulse.beat(worker.slot)
    os.write(worker.ready, b".")
    note("w")
    while "all" not in told.read_text() or told.read_text().count("w") == 14:
        time.sleep(0.002)

told.touch()
workers.Supervisor(workers.bind("127.0.0.1", 0, 2), work, ready=lambda: note("all"), tell=print).run()
"""


def test_only_workers_that_never_serve_end_the_gateway(tmp_path: Path) -> None:
    """Somebody who killed one a second ended it: each was younger than five seconds."""
    told = tmp_path / "serves"
    words = [sys.executable, "-c", _DYING, str(told), "serves"]
    with subprocess.Popen(words, start_new_session=True) as program:
        try:
            until(lambda: told.exists() and told.read_text().count("w") >= 14)
            assert program.poll() is None
        finally:
            os.killpg(program.pid, signal.SIGKILL)
    told = tmp_path / "never"
    words = [sys.executable, "-c", _DYING, str(told), "never"]
    end = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    assert "workers end as soon as they begin" in end.stderr
    # With two the fifth that dies is the last; others may have begun by then, and on a busy machine not have said so.
    assert told.read_text().count("w") in (5, 6, 7)


_BEGINNING = """
import asyncio, signal, sys
from pathlib import Path
from dragoman.gateway.process import workers

may_begin = Path(sys.argv[1])

async def answer(reader, writer):
    await reader.readline()
    writer.write(b"whole")
    writer.close()

async def serve(worker):
    while worker.slot and not may_begin.exists():
        await asyncio.sleep(0.01)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    server = await asyncio.start_server(answer, sock=worker.listener)
    worker.begin(stop.set)
    Path(f"{may_begin}-{worker.slot}").touch()
    await stop.wait()
    while not Path(f"{may_begin}-all").exists():
        await asyncio.sleep(0.01)
    server.close()

sockets = workers.bind("127.0.0.1", 0, 2)
print(sockets[0].getsockname()[1], flush=True)
workers.Supervisor(sockets, lambda worker: asyncio.run(serve(worker)), ready=lambda: None, tell=print).run()
"""


def test_a_worker_that_begins_when_all_are_to_end_answers_who_waits_for_it(tmp_path: Path) -> None:
    may_begin = tmp_path / "begin"
    words = [sys.executable, "-c", _BEGINNING, str(may_begin)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as program, ExitStack() as stack:
        stack.callback(program.kill)
        stack.callback((tmp_path / "begin-all").touch)  # no worker outlives a test that fails
        assert program.stdout is not None
        port = int(program.stdout.readline())
        waiting = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(12)]
        until((tmp_path / "begin-0").exists)
        program.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        may_begin.touch()
        for connection in waiting:
            with connection:
                connection.sendall(b"hello\n")
                assert connection.recv(99) == b"whole"
        (tmp_path / "begin-all").touch()
        assert program.wait(20) == 0
