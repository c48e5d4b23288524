"""The tutorial's files and commands, as they stand there, in one shell: from a laptop to three instances and back."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from reliability.ports import free_port

from dragoman.ledger.stores.postgresql_schema import VERSION
from dragoman.secret import Secret
from ledger.engines import Engines

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "from-a-laptop-to-three-instances.md"
ANSWER = {
    "id": "c", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12},
}  # fmt: skip


class Provider(BaseHTTPRequestHandler):
    """Says hello."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        body = json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...


class Shell:
    """One bash, which runs the blocks one after the other."""

    def __init__(self, folder: Path) -> None:
        scripts = Path(sys.executable).parent
        environ = os.environ | {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder)}
        self._log = (folder / "log").open("ab")
        self._process = subprocess.Popen(
            ["bash"], cwd=folder, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
            text=True,
        )  # fmt: skip
        self._number = 0

    def __call__(self, block: str) -> str:
        """What its commands say; each that does not go on in the background must end well."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._number += 1
        words = [
            line if line.endswith("&") or "wait" in line else f"{line} || echo FAILED" for line in block.splitlines()
        ]
        self._process.stdin.write("\n".join([*words, f"echo END-{self._number}", ""]))
        self._process.stdin.flush()
        said = []
        while (line := self._process.stdout.readline()) != f"END-{self._number}\n":
            assert line, "the shell has ended"
            said.append(line)
        text = "".join(said)
        assert "FAILED" not in text, (block, text)
        return text

    def close(self) -> None:
        """End it, and all that it has begun."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("kill $(jobs -p); wait\n")
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()
        self._log.close()


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    shell.close()


@pytest.fixture
def provider() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


def asked(port: int, key: str, *, seconds: float = 60.0) -> None:
    """Answered by the gateway at this port, once it is there and knows the key."""
    until = time.monotonic() + seconds
    body = json.dumps({"model": "lab/m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]})
    status: object = None
    while status != 200:
        assert time.monotonic() < until, (port, status)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        try:
            connection.request("POST", "/v1/chat/completions", body,
                               {"authorization": f"Bearer {key}", "content-type": "application/json"})  # fmt: skip
            status = connection.getresponse().status
        except OSError as problem:
            status = problem
        finally:
            connection.close()
        time.sleep(0.1)


def said_attempts(text: str) -> list[int]:
    return [int(count) for count in re.findall(r"(\d+) attempts cost ", text)]


def recorded(address: str, count: int) -> None:
    """So many attempts stand in the database with their ends: each gateway delivers a moment after it has answered."""
    from dragoman.ledger.stores.postgresql_connection import Connection

    connection = Connection(Secret(address))
    until = time.monotonic() + 60
    while connection.fetch("SELECT count(*) FROM attempt WHERE state <> 'reserved'") != [(count,)]:
        assert time.monotonic() < until, "not delivered within 60 s"
        time.sleep(0.1)
    connection.close()


def counted(shell: Shell, block: str, words: str) -> str:
    """What a block prints once all gateways have told the counters what they used, which takes a second or two."""
    until = time.monotonic() + 60
    while words not in (text := shell(block)):
        assert time.monotonic() < until, f"no {words!r} within 60 s: {text}"
        time.sleep(0.2)
    return text


def test_the_tutorial_goes_as_it_says(engines: Engines, tmp_path: Path, shell: Shell, provider: int) -> None:
    ports = {4141: free_port(), 4142: free_port(), 4143: free_port()}
    lab = f'\n[providers.lab]\nprotocol = "openai-chat"\nbase_url = "http://127.0.0.1:{provider}/v1"\nclean = true\n'
    said: list[str] = []
    key = ""
    with engines.database("tutorial") as address:
        for language, block in re.findall(r"```(toml|sh)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
            for old, new in ports.items():
                block = block.replace(str(old), str(new))
            block = block.replace("postgresql://dragoman:choose-one@127.0.0.1/ledger", address)
            if language == "toml":
                (tmp_path / block.split()[1]).write_text(block + lab)
                continue
            if "budget show" in block:
                recorded(address, 4)
                said.append(counted(shell, block, "48 used"))
                continue
            said.append(shell(block))
            if found := re.search(r"dragoman-[\w-]{40,}", said[-1]):
                key = found[0]
            for name, port in zip(("one", "two", "three"), ports.values(), strict=True):
                if f"serve --config {name}.toml" in block:
                    asked(port, key)
        shell("kill $(jobs -p); wait")
    first, both, back = (said_attempts(said[place]) for place in (1, 4, 8))
    assert (first, both, back) == ([1], [1, 2], [5])  # the second one came after the restart
    assert "1000000/month tokens: 48 used, 999952 left" in said[6]
    assert re.search(r"^ci +0 +4 ", said[6], re.MULTILINE)
    assert f"version {VERSION}, is up to date" in said[7]
