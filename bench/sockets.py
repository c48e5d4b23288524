"""S2, S3 and M1: whole clients over a socket, each in a process of its own; ours and the others in the same run."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from clients import CLIENTS
from measuring import Row
from server import serving

HERE = Path(__file__).parent
REPEATS = 5
COUNT = 2000
CALL = f"openai-chat.arguments.{COUNT}"
LARGE = "openai-chat.arguments.8000"
#: Clients of the development environment.
INSTALLED = ("openai", "openai .stream()", "anthropic", "anthropic .stream()", "ollama", "google-genai")
#: client → how much less CPU ours must take: coalesced (S2) and one packet per event (S3).
GOALS: Mapping[str, tuple[float | None, float | None]] = {
    "openai": (15, 4),
    "ollama": (8, None),
    "pi-ai-python": (4, 2),
}
OF_PROTOCOL = {
    "openai-chat": ("openai", "openai .stream()", "pi-ai-python", "langchain", "pydantic-ai"),
    "openai-responses": ("openai", "openai .stream()", "pi-ai-python", "langchain", "pydantic-ai"),
    "anthropic-messages": ("anthropic", "anthropic .stream()", "pi-ai-python", "langchain", "pydantic-ai"),
    "gemini-generate": ("google-genai", "pi-ai-python"),
    "ollama-chat": ("ollama", "langchain"),
}


#: Clients that parse a call while it grows; the floor is no client.
LARGE_CALL = ("openai .stream()", "pi-ai-python", "langchain")
Seconds = dict[str, float | str]
#: Prints CPU seconds and megabytes of an import, by an interpreter that has imported nothing else.
IMPORT = """
import os, time
def megabytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
memory, seconds = megabytes(), time.process_time()
import {}
print(time.process_time() - seconds, megabytes() - memory)
"""


def run(python: str, client: str, url: str, asked: list[str], *, repeats: int) -> Seconds:
    """Stream → CPU seconds of one reading (median), or why there are none."""
    command = [python, str(HERE / "clients.py"), "--client", client, "--url", url, "--repeats", str(repeats)]
    done = subprocess.run(
        [*command, "--streams", ",".join(asked)], capture_output=True, text=True, timeout=600, check=False
    )
    last_words = (done.stderr.strip().splitlines() or ["no output"])[-1][:200]
    found: Seconds = dict.fromkeys(asked, last_words)
    for line in done.stdout.splitlines():
        result = json.loads(line)
        found[result["stream"]] = result.get("problem") or statistics.median(result["seconds"])
    return found


def over_sockets(pythons: Mapping[str, str]) -> Iterator[Row | str]:
    """S2: large writes. S3: one packet per event, beside a socket whose bytes are dropped. S4: one large call."""
    with serving() as url:
        measured = {
            client: run(pythons.get(client, sys.executable), client, url, asked, repeats=REPEATS)
            for client, asked in streams_of([*INSTALLED, *pythons]).items()
        }
        large = {
            client: run(pythons.get(client, sys.executable), client, url, [LARGE], repeats=1)
            for client in ("dragoman", *(name for name in LARGE_CALL if name in measured))
        }
    for stream in measured["dragoman"]:
        yield from compare(stream, {client: found[stream] for client, found in measured.items() if stream in found})
    ours = large.pop("dragoman")[LARGE]
    for client, found in large.items():
        theirs = found[LARGE]
        if isinstance(ours, str) or isinstance(theirs, str):
            yield f"S4: a call of 8,000 deltas: {client}: {theirs}, ours: {ours}"
        else:
            target = 50 if client == "pi-ai-python" else None
            yield Row("S4", f"a call of 8,000 deltas: {client} / ours", target, theirs / ours, at_least=True)


def streams_of(clients: list[str]) -> dict[str, list[str]]:
    """Client → the streams that it reads."""
    texts = {protocol: f"{protocol}.text.{COUNT}" for protocol in OF_PROTOCOL}
    every = [stream + suffix for suffix in ("", ".packets") for stream in texts.values()]
    asked = {"dragoman": [*every, CALL], "floor": [stream for stream in every if stream.endswith(".packets")]}
    for client in clients:
        asked[client] = [stream for stream in every if client in OF_PROTOCOL[stream.partition(".")[0]]]
        if client in OF_PROTOCOL["openai-chat"]:
            asked[client].append(CALL)
    return asked


def compare(stream: str, found: Seconds) -> Iterator[Row | str]:
    """Our client beside the others, on one stream."""
    goal = "S3" if stream.endswith(".packets") else "S2"
    name = " ".join(stream.split(".")[:2])
    ours = found.pop("dragoman")
    if isinstance(ours, str):
        raise RuntimeError(f"our client failed on {stream}: {ours}")
    floor = found.pop("floor", None)
    if isinstance(floor, float):
        note = f"{ours / COUNT * 1e5:.2f} / {floor / COUNT * 1e5:.2f} CPU-s per 100k"
        yield Row(goal, f"{name}: ours / a socket whose bytes are dropped", 2, ours / floor, note=note)
    for client, theirs in found.items():
        if isinstance(theirs, str):
            yield f"{goal} {name}: {client} fails: {theirs}"
            continue
        target = GOALS.get(client, (None, None))[goal == "S3"]
        note = f"{theirs / COUNT * 1e5:.1f} / {ours / COUNT * 1e5:.2f} CPU-s per 100k"
        yield Row(goal, f"{name}: {client} / ours", target, theirs / ours, at_least=True, note=note)


def imports(pythons: Mapping[str, str]) -> Iterator[Row | str]:
    """M1: import beside the bare interpreter, byte code written before, as it is after an installation."""
    found: dict[str, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        environ = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        environ["PYTHONPYCACHEPREFIX"] = folder
        for client in ("dragoman", *(name for name in (*INSTALLED, *pythons) if ".stream" not in name)):
            python = pythons.get(client, sys.executable)
            command = [python, "-c", IMPORT.format(CLIENTS[client][0])]
            samples = []
            for _ in range(REPEATS + 1):  # the first one writes the byte code
                done = subprocess.run(command, capture_output=True, text=True, env=environ, check=False)
                if done.returncode:
                    yield f"M1: import of {client} fails: {done.stderr.strip().splitlines()[-1][:200]}"
                    break
                samples.append([float(figure) for figure in done.stdout.split()])
            else:
                seconds, memory = (statistics.median(figures) for figures in zip(*samples[1:], strict=True))
                found[client] = seconds, memory
    ours = found.pop("dragoman")
    yield Row("M1", "import dragoman", 0.06, ours[0], "CPU-s")
    yield Row("M1", "import dragoman: memory over the bare interpreter", 8, ours[1], "MB")
    for client, (seconds, memory) in found.items():
        target = 10 if client == "openai" else 2
        note = f"{seconds:.2f} CPU-s, {memory:.0f} MB"
        yield Row("M1", f"import {client} / ours", target, seconds / ours[0], at_least=True, note=note)
