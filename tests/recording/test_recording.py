"""What was recorded once is played again, byte by byte, in all five protocols, in the process and on a port."""

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
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import cases
import dragoman
from dragoman.providers.catalog import Provider
from dragoman.recording.upstream import upstream_of
from dragoman.secret import Secret
from dragoman.testing import FakeModel, Recording, call, cut, deviation, error
from dragoman.types import ProtocolName
from scripted import END, chunk, head, serving, streamed, whole
from warm_programs import Popen

PROTOCOLS: tuple[ProtocolName, ...] = (
    "ollama-chat", "openai-chat", "openai-responses", "anthropic-messages", "gemini-generate",
)  # fmt: skip
KEY = "sk-test-" + "Ab12" * 8


def find(city: str, days: int = 1) -> str:
    """Find a city."""
    return f"{city} {days}"


def client(url: str, protocol: ProtocolName, **keywords: Any) -> dragoman.Client:
    base = {"openai-chat": "/v1", "openai-responses": "/v1", "gemini-generate": "/v1beta"}.get(protocol, "")
    lab = {"base_url": url + base, "protocol": protocol, "api_key": KEY}
    return dragoman.Client(providers={"lab": lab}, retries=0, **keywords)


def ask(url: str, protocol: ProtocolName) -> tuple[Any, ...]:
    with client(url, protocol) as asked:
        answer = asked.run("lab/m", "Where?", tools=[find])
        reply = asked.reply("lab/m", "And whole?")
        with asked.stream("lab/m", "Streamed?") as stream:
            text = "".join(stream.text_stream)
    return str(answer), [message.role for message in answer.messages], reply.text, reply.usage, text


def answers() -> list[Any]:
    # An id that the server left out is made up, and stands in the next request.
    return [[call("find", city="Rome", days=3), deviation("missing-id")], "Rome it is.", "hello", "in pieces"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_recording_in_the_process(protocol: ProtocolName, tmp_path: Path) -> None:
    turns = answers()
    if protocol in ("gemini-generate",):
        turns[0] = turns[0][0]
    fake = FakeModel(*turns)
    with fake.serve() as served:
        with Recording(tmp_path / "r") as recording:
            assert recording.is_recording
            first = ask(served.url, protocol)
        url = served.url
    with Recording(tmp_path / "r") as recording:  # the server is gone
        assert not recording.is_recording
        assert ask(url, protocol) == first
        with (
            pytest.raises(dragoman.UsageError, match="this request is not in the recording"),
            client(url, protocol) as lab,
        ):
            lab.reply("lab/m", "What nobody asked")
    files = [path for path in (tmp_path / "r").rglob("*") if path.is_file()]
    assert len(files) == 3 * 4 and not [path for path in files if KEY.encode() in path.read_bytes()]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_recording_on_a_port(protocol: ProtocolName, tmp_path: Path) -> None:
    fake = FakeModel("Rome it is.", cut("half an answer that"), error(429, "slow down"))

    def ask_all(url: str) -> list[Any]:
        told: list[Any] = []
        with client(url, protocol) as lab:
            told.append(lab.reply("lab/m", "1").text)
            for question in ("2", "3"):
                events = list(lab.stream("lab/m", question))
                assert isinstance(events[-1], dragoman.Failure)
                told.append((events[-1].kind, events[-1].status, "".join(getattr(e, "text", "") for e in events)))
        return told

    with fake.serve() as served, Recording(tmp_path) as recording:
        with recording.serve(served.url) as proxy:
            first = ask_all(proxy.url)
    with Recording(tmp_path, mode="replay") as recording, recording.serve() as proxy:
        again = ask_all(proxy.url)
    assert first[0] == again[0] == "Rome it is." and first == again
    assert first[1][0] == "connection" and first[2][:2] == ("rate", 429)


def divide(text: str) -> float:
    """A test that fails after its request."""
    return len(text) / 0


def test_modes_and_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, mode in ((5, "auto"), (tmp_path, "again"), (tmp_path / "none", "replay")):
        with pytest.raises(dragoman.UsageError):
            Recording(folder, mode=mode)  # type: ignore[arg-type]
    with Recording(tmp_path) as recording, pytest.raises(dragoman.UsageError, match="upstream"):
        recording.serve()
    fake = FakeModel("one", "two", "three")
    with fake.serve() as served:
        with pytest.raises(ZeroDivisionError), Recording(tmp_path), client(served.url, "openai-chat") as lab:
            divide(lab.reply("lab/m", "hi").text)
        assert not list(tmp_path.glob("*/*"))  # a test that failed keeps nothing
        with Recording(tmp_path), client(served.url, "openai-chat") as lab:
            assert lab.reply("lab/m", "hi").text == "two"
        monkeypatch.setenv("DRAGOMAN_RECORD", "1")
        (tmp_path / "openai-chat" / "note.txt").write_text("mine")
        with Recording(tmp_path), client(served.url, "openai-chat") as lab:
            assert lab.reply("lab/m", "hi").text == "three"
        monkeypatch.delenv("DRAGOMAN_RECORD")
        with Recording(tmp_path), client(served.url, "openai-chat") as lab:
            assert lab.reply("lab/m", "hi").text == "three"
    assert (tmp_path / "openai-chat" / "note.txt").exists()


@pytest.mark.parametrize("place", ["file", "file/sub", "file/sub/deeper", "no\0name", "x" * 300])
def test_a_folder_that_takes_no_recording_is_refused_before_anything_is_asked(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The answers came, and were paid for, before they could not be written."""
    from dragoman.cli.main import main

    (tmp_path / "file").write_text("mine")
    for mode in ("auto", "record"):
        with pytest.raises(dragoman.UsageError, match="folder: expected one"):
            Recording(tmp_path / place, mode=mode)  # type: ignore[arg-type]
    assert main(["record", "http://127.0.0.1:9", "--to", str(tmp_path / place)]) == 2
    assert "folder: expected one" in capsys.readouterr().err


def test_no_key_is_needed_to_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with FakeModel("hello").serve() as served:
        with Recording(tmp_path), dragoman.Client({"providers": {"anthropic": {"base_url": served.url}}}) as asked:
            asked.reply("anthropic/claude-sonnet-4-5", "hi")
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with Recording(tmp_path), dragoman.Client({}) as asked:
        assert asked.reply("anthropic/claude-sonnet-4-5", "hi").text == "hello"


def test_a_broken_case_is_named(tmp_path: Path) -> None:
    place = tmp_path / "openai-chat" / "001"
    place.mkdir(parents=True)
    for text in ("", "[]", "{}", '{"request": 5}'):
        (place / "case.json").write_text(text)
        with pytest.raises(dragoman.UsageError, match="001: expected a recorded exchange"):
            Recording(tmp_path)


def test_the_fixture_records_and_replays(tmp_path: Path) -> None:
    with FakeModel("hello").serve() as served:
        (tmp_path / "test_it.py").write_text(
            "import dragoman\n"
            "def test_a(recording):\n"
            f"    lab = dragoman.Client(base_url='{served.url}/v1', protocol='openai-chat', retries=0)\n"
            "    assert lab.reply('m', 'hi').text == 'hello'\n"
            "def test_b(recording):\n"
            "    assert recording.is_recording\n"
            "    assert False\n"
        )
        for _ in range(2):  # the fake has one turn: the second run is played
            command = [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:cacheprovider",
                str(tmp_path),
                "--rootdir",
                str(tmp_path),
            ]
            run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            assert "1 failed, 1 passed" in run.stdout, run.stdout
    assert (tmp_path / "recordings/test_it/test_a/openai-chat/001/wire").exists()
    assert not (tmp_path / "recordings/test_it/test_b").exists()


# ------------------------------------------------------------------------------------------------ the command

GLUED = (
    b'data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"type":"function",'
    b'"function":{"name":"find","arguments":"{\\"city\\": \\"Rome\\"}"}}]}}]}\n\n'
    b'data: {"id":"1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)
TOOLS = [
    {"type": "function", "function": {"name": "find", "parameters": {"type": "object", "properties": {"city": {}}}}}
]


class Running:
    """`dragoman record` as a user starts it."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        code = "import sys\nfrom dragoman.cli.main import main\nsys.exit(main())"
        words = [sys.executable, "-c", code, "record", *arguments, "--to", str(folder)]
        env = {**os.environ, "DRAGOMAN_CONFIG": str(folder / "none.toml")}
        folder.mkdir(exist_ok=True)
        (folder / "none.toml").write_text("")
        self.process = Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        assert line.startswith("listening on http://127.0.0.1:"), self.process.communicate()
        self.url = line.split()[-1]

    def ask(self, path: str, body: Any, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=10)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request("POST", path, data, {"content-type": "application/json", **(headers or {})})
        response = connection.getresponse()
        try:
            return response.status, response.read()
        finally:
            connection.close()

    def end(self) -> str:
        self.process.send_signal(signal.SIGINT)
        out, errors = self.process.communicate(timeout=20)
        assert (self.process.returncode, out) == (0, b""), errors.decode()
        return errors.decode()


def test_one_command_makes_a_case_of_a_broken_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {
        "model": "m",
        "stream": True,
        "messages": [{"role": "user", "content": f"my key is {KEY}"}],
        "tools": TOOLS,
    }
    with serving(streamed(GLUED[:90], GLUED[90:])) as server:
        running = Running(tmp_path, server.url + "/v1")
        status, body = running.ask(
            "/v1/chat/completions", asked, {"authorization": f"Bearer {KEY}", "cookie": "x=COOKIE12"}
        )
        errors = running.end()
    assert (status, body) == (200, GLUED)
    assert (
        server.requests[0].headers["authorization"] == f"Bearer {KEY}"
        and server.requests[0].path == "/v1/chat/completions"
    )
    assert "openai-chat/001  /v1/chat/completions  200  1 call  mended: missing-id" in errors
    assert "dragoman decode --result --protocol openai-chat --request" in errors
    place = tmp_path / "openai-chat" / "001"
    assert (place / "wire").read_bytes() == GLUED
    written = b"".join(path.read_bytes() for path in place.iterdir())
    assert KEY.encode() not in written and b"COOKIE12" not in written
    monkeypatch.setattr(cases, "FOLDER", tmp_path)
    [case] = cases.load_cases()
    assert case.expect["tool_calls"] == [{"id": None, "name": "find", "arguments": {"city": "Rome"}}]
    assert "missing-id" in case.deviations
    assert cases.differences(case, cases.play(case, [case.wire])) == []


def test_an_answer_that_hangs_is_kept_as_one_that_broke(tmp_path: Path) -> None:
    with serving([head(), chunk(GLUED[:90]), "hold"]) as server:
        running = Running(tmp_path, server.url)
        connection = http.client.HTTPConnection(urlsplit(running.url).netloc, timeout=10)
        connection.request("POST", "/v1/chat/completions", b"{}")
        assert connection.getresponse().read1() == GLUED[:90]
        connection.close()
        time.sleep(0.2)
        errors = running.end()
    assert "  cut  " in errors
    place = tmp_path / "openai-chat" / "001"
    assert (place / "wire").read_bytes() == GLUED[:90] and json.loads((place / "case.json").read_text())[
        "is_cut"
    ] is True


def test_requests_of_every_form_are_handed_on_and_kept(tmp_path: Path) -> None:
    with serving(whole(b'{"models": []}')) as server:
        running = Running(tmp_path, server.url)
        place = urlsplit(running.url)
        for method in ("GET", "HEAD", "DELETE"):
            connection = http.client.HTTPConnection(place.netloc, timeout=10)
            connection.request(method, "/api/tags")
            assert connection.getresponse().status == 200
            connection.close()
        connection = http.client.HTTPConnection(place.netloc, timeout=10)
        connection.request("POST", "/api/chat", iter([b'{"model"', b': "m"}']), encode_chunked=True)
        assert connection.getresponse().read() == b'{"models": []}'
        connection.close()
        with socket.create_connection((place.hostname or "", place.port or 0)) as half:
            half.sendall(b"POST /api/chat HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99\r\n\r\n{")
        threads = [threading.Thread(target=running.ask, args=("/api/chat", {"number": number})) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        errors = running.end()
    assert "Traceback" not in errors
    assert server.requests[3].body == b'{"model": "m"}' and len(server.requests) == 3 + 1 + 8
    kept = sorted(int(path.name) for path in tmp_path.glob("*/*") if path.name.isdigit())
    assert kept == list(range(1, 13)) and (tmp_path / "other" / "001" / "wire").exists()


def test_web_pages_cannot_use_the_recorder(tmp_path: Path) -> None:
    with serving(whole(b"{}")) as server:
        running = Running(tmp_path, server.url)
        for headers in ({"host": "evil.example"}, {"origin": "https://evil.example"}, {"origin": "null"}):
            assert running.ask("/api/chat", {}, headers)[0] == 403
        assert running.ask("/api/chat", {}, {"sec-fetch-site": "cross-site"})[0] == 403
        assert running.ask("/api/chat", {}, {"origin": running.url})[0] == 200
        status, body = running.ask("/api/chat", b"", {"content-length": "99999999999"})
        assert status == 413 and b"larger than" in body
        running.end()
        assert len(server.requests) == 1


@pytest.mark.parametrize("target", ["@evil.example/x", ".evil.example/x", ":1/x", "http://evil.example/x", "*", "x"])
def test_a_target_that_is_no_path_reaches_no_host(tmp_path: Path, target: str) -> None:
    """Joined to an address without a path, it would name another host, and the key of the provider would go there."""
    with serving(whole(b"{}")) as server:
        running = Running(tmp_path, server.url)
        with socket.create_connection(("127.0.0.1", int(urlsplit(running.url).port or 0)), timeout=10) as connection:
            connection.sendall(f"GET {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
            assert connection.recv(65536).startswith(b"HTTP/1.1 400 ")
        running.end()
        assert not server.requests


@pytest.mark.parametrize("path", ["/v1@evil.example/x", "/v1.evil.example/x", "/v1:1/x", "/v1/chat", "/v1", "/v1?a"])
def test_a_providers_address_stays_its_own(path: str) -> None:
    provider = Provider(name="lab", protocol="openai-chat", base_url="https://lab.example")
    url = upstream_of(provider, Secret(KEY)).outgoing("POST", path, {}, b"", "openai-chat").url
    assert urlsplit(url).hostname == "lab.example"
    assert urlsplit(url).port is None


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    running = Running(tmp_path, "http://127.0.0.1:9")
    status, body = running.ask("/v1/chat/completions", {})
    assert status == 502 and b"no connection to http://127.0.0.1:9" in body
    assert "no answer of a model was recorded" in running.end()


def test_the_key_of_a_provider_replaces_the_clients(tmp_path: Path) -> None:
    config = tmp_path / "dragoman.toml"
    with serving([head(), chunk(GLUED), END]) as server:
        config.write_text(
            f'[providers.lab]\nprotocol = "openai-chat"\nbase_url = "{server.url}/api/paas/v4"\napi_key = "file:key"\n'
        )
        (tmp_path / "key").write_text("the-key-of-the-lab")
        (tmp_path / "key").chmod(0o600)
        running = Running(tmp_path / "r", "lab", "--config", str(config))
        assert running.ask("/v1/chat/completions", {}, {"authorization": "Bearer of-the-client"})[0] == 200
        running.end()
    assert server.requests[0].path == "/api/paas/v4/chat/completions"
    assert server.requests[0].headers["authorization"] == "Bearer the-key-of-the-lab"
    assert not [path for path in (tmp_path / "r").rglob("*") if path.is_file() and b"the-key" in path.read_bytes()]


@pytest.mark.parametrize(
    ("server", "words"),
    [("nosuch", "unknown provider 'nosuch'"), ("ftp://x", "expected a provider or an address"),
     ("http://user:pw@host", "without a password"), ("http://host:port", "expected a provider or an address"),
     ("azure", "its address is not complete; set base_url"),
     ("embedded", "start one (dragoman serve --provider embedded")],
)  # fmt: skip
def test_a_server_that_is_none(server: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    from dragoman.cli.main import main

    assert main(["record", server]) in (1, 2)
    err = capsys.readouterr().err
    assert words in err and err.count("\n") == 1
