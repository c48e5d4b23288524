"""The admin listener, and what a client may see of others: nothing."""

from __future__ import annotations

import hashlib
import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from conversations import reply
from dragoman.config import load_config
from dragoman.errors import ConfigError
from dragoman.gateway.telemetry.log import Log
from dragoman.gateway.telemetry.record import Observer
from gateway.recording import recording
from gateway.running import Running, gateway, provider_config, stream_of
from gateway.telemetry.test_metrics import samples

FIRST, SECOND, ADMIN = (f"{name}-key-3f9a7c51b2d8e604f7a19c" for name in ("first", "second", "admin"))


def digest(key: str) -> str:
    return f'"sha256:{hashlib.sha256(key.encode()).hexdigest()}"'


SETTINGS = f"""[server]
keys = [{digest(FIRST)}, {digest(SECOND)}]
[admin]
address = "127.0.0.1:0"
keys = [{digest(ADMIN)}]
"""


def get(port: int, path: str, key: str = "", **headers: str) -> tuple[int, bytes]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        connection.request("GET", path, headers=({"x-api-key": key} if key else {}) | headers)
        response = connection.getresponse()
        return response.status, response.read()


@contextmanager
def listening(port: int, key: str) -> Iterator[Any]:
    """A call that reads the next line of /tail that is not empty."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        connection.request("GET", "/tail", headers={"x-api-key": key} if key else {})
        response = connection.getresponse()
        assert response.status == 200

        def following() -> dict[str, Any]:
            while not (line := response.readline().strip()):
                pass
            found: dict[str, Any] = json.loads(line)
            return found

        yield following


def ask(running: Running, key: str, name: str) -> None:
    running.answer(stream_of("openai-chat", reply("text")))
    body = {"model": "via-openai-chat", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
    headers = {"x-api-key": key, "x-client-request-id": name} if key else {"x-client-request-id": name}
    assert running.request("POST", "/v1/chat/completions", json.dumps(body).encode(), headers)[0] == 200


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with gateway(tmp_path, SETTINGS, observer=Observer(None, Log(None))) as found:
        yield found


def test_a_client_sees_its_own_lines_alone(running: Running) -> None:
    port = running.gateway.port
    with (
        listening(port, FIRST) as first,
        listening(port, SECOND) as second,
        listening(running.gateway.admin_port, ADMIN) as admin,
    ):
        get(port, "/api/tags")  # refused: a line that is about no client
        for number in range(3):
            ask(running, FIRST, f"first-{number}")
            ask(running, SECOND, f"second-{number}")
        assert [first()["client_id"] for _ in range(3)] == ["first-0", "first-1", "first-2"]
        assert [second()["client_id"] for _ in range(3)] == ["second-0", "second-1", "second-2"]
        told = [admin() for _ in range(7)]
    assert [line["kind"] for line in told].count("refused") == 1
    assert {line.get("client_id") for line in told} >= {"first-2", "second-2"}


def test_numbers_of_all_are_for_admins(running: Running) -> None:
    ask(running, FIRST, "x")
    status, body = get(running.gateway.port, "/metrics", FIRST)
    assert status == 403 and b"[admin]" in body and b"dragoman_requests" not in body
    status, body = get(running.gateway.admin_port, "/metrics", ADMIN)
    assert status == 200 and samples(body)["dragoman_ready_workers"] == 1


def test_the_admin_listener_has_keys_of_its_own_and_no_models(running: Running) -> None:
    port = running.gateway.admin_port
    for path in ("/metrics", "/tail", "/v1/models", "/"):
        for key in ("", FIRST, "wrong"):
            assert get(port, path, key)[0] == 401
        assert get(port, path, ADMIN, host="evil.example")[0] == 403
        assert get(port, path, ADMIN, origin="https://evil.example")[0] == 403
    for path in ("/v1/models", "/v1/chat/completions", "/api/tags", "/"):
        assert get(port, path, ADMIN)[0] == 404
    assert [get(port, path)[0] for path in ("/livez", "/readyz", "/startupz")] == [200] * 3
    assert get(running.gateway.port, "/api/tags", ADMIN)[0] == 401


def test_without_client_keys_there_is_one_client(tmp_path: Path) -> None:
    with gateway(tmp_path) as running:
        assert running.gateway.admin_port == 0
        with listening(running.gateway.port, "") as following:
            thread = threading.Thread(target=ask, args=(running, "", "mine"))
            thread.start()
            assert following()["client_id"] == "mine"
            thread.join(10)
        assert get(running.gateway.port, "/metrics")[0] == 200


def test_admin_keys_change_and_are_never_lost(running: Running, tmp_path: Path) -> None:
    other = SETTINGS.replace(digest(ADMIN), f'{{ key = {digest("another-key-3f9a7c51b2d8e604")}, roles = ["read"] }}')
    running.gateway.take(provider_config(tmp_path, running.provider.url, other))
    assert get(running.gateway.admin_port, "/metrics", ADMIN)[0] == 401
    assert get(running.gateway.admin_port, "/metrics", "another-key-3f9a7c51b2d8e604")[0] == 200
    without = SETTINGS.partition("[admin]")[0]
    for text in (without, without + '[admin]\naddress = "127.0.0.1:0"\n'):
        with pytest.raises(ConfigError, match=r"admin\.keys: there were keys"):
            running.gateway.take(provider_config(tmp_path, running.provider.url, text))
    assert get(running.gateway.admin_port, "/metrics")[0] == 401


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ('address = "0.0.0.0:4142"', r"admin\.address: 0\.0\.0\.0 can be reached"),
        ('address = "nowhere"', r"admin\.address: expected HOST:PORT"),
        ('address = "127.0.0.1:1"\nkeys = ["a key itself"]', r"admin\.keys\[0\]: expected env:NAME"),
        ('address = "127.0.0.1:1"\nkeys = [{ key = "env:X", roles = ["root"] }]', r"admin\.keys\[0\]\.roles"),
        ("keys = [1]", r"admin\.keys"),
    ],
)
def test_wrong_settings_are_named(tmp_path: Path, table: str, problem: str) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text(f"[admin]\n{table}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=problem):
        load_config(file, environ={}, home=tmp_path)


API = """[server]
keys = [{client}]
[admin]
address = "127.0.0.1:0"
keys = [{reader}, {{ key = {keeper}, roles = ["keys"], name = "keeper" }}]
"""
READER, KEEPER = (f"{name}-key-3f9a7c51b2d8e604f7a19c" for name in ("reader", "keeper"))


def send(port: int, method: str, path: str, key: str, body: bytes = b"", **headers: str) -> tuple[int, Any]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        usual = {"authorization": f"Bearer {key}"} | ({"content-type": "application/json"} if body else {})
        connection.request(method, path, body or None, usual | headers)
        response = connection.getresponse()
        assert response.getheader("content-type") == "application/json"
        assert response.getheader("access-control-allow-origin") is None
        return response.status, json.loads(response.read())


def test_a_key_of_the_api_lets_a_client_in(tmp_path: Path) -> None:
    settings = API.format(client=digest(FIRST), reader=digest(READER), keeper=digest(KEEPER))
    with recording(tmp_path, settings) as recorded:
        running = recorded.running
        port = running.gateway.admin_port
        status, made = send(port, "POST", "/admin/v1/keys", KEEPER, b'{"name":"ci"}')
        assert status == 201 and made["key"]["name"] == "ci"
        until = time.monotonic() + 30
        while get(running.gateway.port, "/v1/models", made["secret"])[0] != 200:
            assert time.monotonic() < until
            time.sleep(0.05)
        assert [key["name"] for key in send(port, "GET", "/admin/v1/keys", READER)[1]["keys"]] == ["ci"]
        assert send(port, "GET", "/admin/v1/keys", KEEPER)[0] == 403  # a role gives nothing else
        assert get(port, "/metrics", KEEPER)[0] == 403 and get(port, "/metrics", READER)[0] == 200
        for key in (FIRST, made["secret"], ""):
            assert send(port, "GET", "/admin/v1/keys", key)[0] == 401
        assert send(port, "GET", "/admin/v1/keys", READER, host="evil.example")[0] == 403
        assert send(port, "GET", "/admin/v1/keys", READER, origin="https://evil.example")[0] == 403
        assert send(port, "POST", "/admin/v1/keys", KEEPER, b" " * 70_000)[0] == 413
        assert send(port, "OPTIONS", "/admin/v1/keys", KEEPER, origin="http://localhost")[0] == 405
        assert get(running.gateway.port, "/admin/v1/keys", FIRST)[0] == 404


def test_the_api_needs_keys_a_ledger_and_off_this_machine_tls(tmp_path: Path) -> None:
    with gateway(tmp_path, '[admin]\naddress = "127.0.0.1:0"\n') as running:
        assert get(running.gateway.admin_port, "/metrics")[0] == 200
        assert send(running.gateway.admin_port, "GET", "/admin/v1/keys", "anything")[0] == 401
    with gateway(tmp_path, SETTINGS) as running:
        assert send(running.gateway.admin_port, "GET", "/admin/v1/keys", ADMIN)[1]["error"]["code"] == "no_ledger"
    for more, status in (("", 403), ("behind_tls = true\n", 200)):
        with recording(tmp_path, SETTINGS.replace("127.0.0.1:0", "0.0.0.0:0") + more) as recorded:
            assert send(recorded.running.gateway.admin_port, "GET", "/admin/v1/keys", ADMIN)[0] == status
            assert get(recorded.running.gateway.admin_port, "/metrics", ADMIN)[0] == 200


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ('{ key = "env:A", name = "a b" }', "admin.keys[0].name"),
        ('{ key = "env:A", team = "a/b" }', "admin.keys[0].team"),
        ('{ key = "env:A", name = "a" }, { key = "env:B", name = "a" }', "admin.keys[1].name"),
        ('{ key = "env:A", roles = ["root"] }', "admin.keys[0].roles[0]"),
        ('{ key = "env:A", role = "read" }', "admin.keys[0]"),
    ],
)  # fmt: skip
def test_wrong_admin_keys_are_refused(tmp_path: Path, keys: str, problem: str) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text(f'[admin]\naddress = "127.0.0.1:0"\nkeys = [{keys}]\n', encoding="utf-8")
    with pytest.raises(ConfigError) as told:
        load_config(file, environ={}, home=tmp_path)
    assert problem in str(told.value)
