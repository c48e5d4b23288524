"""Processes of the bench: what their trees cost, how they are started and driven."""

import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

from peers import MOCK_PORT, Gateway, ToolMode, body

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
#: The gateway has one core of its own, provider and load generator share another.
_GATEWAY_CORE, _OTHER_CORE = "0", "1"


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat behind the name; none when the process is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return text[text.rindex(")") + 2 :].split()


def tree(pid: int) -> list[int]:
    """A process and all below it."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        fields = _stat(int(name)) if name.isdigit() else []
        if fields:
            children.setdefault(int(fields[1]), []).append(int(name))
    found, waiting = [], [pid]
    while waiting:
        one = waiting.pop()
        found.append(one)
        waiting += children.get(one, [])
    return found


def cpu_seconds(pid: int) -> float:
    """CPU time of a tree so far, with that of children that are gone."""
    ticks = 0
    for one in tree(pid):
        fields = _stat(one)
        ticks += sum(map(int, fields[11 : 15 if one == pid else 13])) if fields else 0
    return ticks / _TICKS


def megabytes(pid: int) -> float:
    """Resident memory of a tree."""
    pages = 0
    for one in tree(pid):
        try:
            pages += int(Path(f"/proc/{one}/statm").read_text().split()[1])
        except OSError:
            continue
    return pages * _PAGE / 1e6


def _on_core(core: str, command: list[str]) -> list[str]:
    return ["taskset", "-c", core, *command] if shutil.which("taskset") and (os.cpu_count() or 1) > 1 else command


class Mock:
    """The scripted provider, while the block lasts."""

    def __init__(self, folder: Path) -> None:
        self._command = _on_core(_OTHER_CORE, [str(folder / "mock"), str(MOCK_PORT)])

    def __enter__(self) -> None:
        self._process = subprocess.Popen(self._command)
        for _ in range(200):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{MOCK_PORT}/stats", timeout=1).read()
                return
            except OSError:
                time.sleep(0.02)
        raise SystemExit(f"the scripted provider does not start on port {MOCK_PORT}")

    def __exit__(self, kind: type[BaseException] | None, problem: object, trace: TracebackType | None) -> None:
        self._process.terminate()
        self._process.wait()


class Running:
    """One gateway that runs, or the provider itself.

    Attributes:
        pid: of its first process; None for the provider itself.
        cold: CPU seconds and megabytes after its first answer.
    """

    def __init__(self, gateway: Gateway, folder: Path) -> None:
        self.gateway = gateway
        self.port = gateway.port
        self.pid: int | None = None
        self.cold = (0.0, 0.0)
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait for its first answer.

        Raises:
            RuntimeError: there was none.
        """
        gateway = self.gateway
        if not gateway.command:
            return
        log = self._folder / f"{gateway.name}.log"
        environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                _on_core(_GATEWAY_CORE, list(gateway.command)), stdout=output, stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL, env=environment | dict(gateway.environment), start_new_session=True,
            )  # fmt: skip
        self.pid = self._process.pid
        until, problem = time.monotonic() + gateway.start_seconds, "no answer in time"
        while time.monotonic() < until:
            if self._process.poll() is not None:
                raise RuntimeError(f"ended: {log.read_text(errors='replace')[-300:]}")
            problem = self._first_answer(log)
            if not problem:
                self.cold = (cpu_seconds(self.pid), megabytes(self.pid))
                return
            time.sleep(0.01)
        self.stop()
        raise RuntimeError(problem)

    def _first_answer(self, log: Path) -> str:
        if not self.port:
            found = re.search(r"BASE http://127\.0\.0\.1:(\d+)", log.read_text(errors="replace"))
            if found is None:
                return "its port is not known yet"
            self.port = int(found[1])
        way = self.gateway.ways[0]
        fields = dict(line.split(": ", 1) for line in way.headers) | {"Content-Type": "application/json"}
        data = body(way, "mock-n200d0", stream=False)
        asked = urllib.request.Request(f"http://127.0.0.1:{self.port}{way.path}", data, fields)
        try:
            return "" if urllib.request.urlopen(asked, timeout=20).status == 200 else "not 200"
        except urllib.error.HTTPError as refused:
            return f"{refused.code} {refused.read()[:200]!r}"
        except OSError as refused:
            return repr(refused)

    def stop(self) -> None:
        """End it and all that it started."""
        if self._process is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            for one in tree(self._process.pid):
                try:
                    os.kill(one, number)
                except OSError:
                    continue
            try:
                self._process.wait(5)
                return
            except subprocess.TimeoutExpired:
                continue


def drive(
    running: Running, way: ToolMode, model: str, *, stream: bool, connections: int, requests: int, seconds: float,
    ramp: int = 0, more: int = 0,
) -> dict[str, Any]:  # fmt: skip
    """Send requests; gives what the load generator counted, and the gateway's `cpu` seconds and `peak` megabytes."""
    folder = running._folder
    (folder / "body.json").write_bytes(body(way, model, stream=stream, more=more))
    command = [str(folder / "load"), "-p", str(running.port), "-u", way.path, "-b", str(folder / "body.json"),
               "-c", str(connections), "-n", str(max(requests, 1)), "-t", str(seconds)]  # fmt: skip
    for header in way.headers:
        command += ["-H", header]
    if stream:
        command += ["-m", "message_stop" if way.is_messages else "[DONE]"]
    if ramp:
        command += ["-r", str(ramp)]
    watch = _Peak(running.pid)
    before = cpu_seconds(running.pid) if running.pid else 0.0
    result = subprocess.run(_on_core(_OTHER_CORE, command), capture_output=True, timeout=seconds + 60, check=True)
    found: dict[str, Any] = json.loads(result.stdout)
    found["cpu"] = cpu_seconds(running.pid) - before if running.pid else 0.0
    found["peak"] = watch.stop()
    found["failed"] = found["f_conn"] + found["f_status"] + found["f_trunc"] + found["f_marker"]
    return found


class _Peak(threading.Thread):
    """Looks at the memory of a tree from time to time."""

    def __init__(self, pid: int | None) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._most = 0.0
        self._ended = threading.Event()
        self.start()

    def run(self) -> None:
        while self._pid is not None and not self._ended.wait(0.2):
            self._most = max(self._most, megabytes(self._pid))

    def stop(self) -> float:
        self._ended.set()
        self.join()
        return self._most
