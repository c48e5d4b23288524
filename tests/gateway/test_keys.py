"""Virtual keys: who is let in, what they may ask, and how soon a change holds."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from reliability.caller import spoken

from conversations import reply
from dragoman.cli.main import main
from dragoman.gateway.accounting import Ledger
from dragoman.gateway.server import client_addresses
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.key_ring import KeyRing
from dragoman.ledger.keys import VirtualKey
from dragoman.ledger.reports.checking import check
from gateway.recording import Recording, recording, rows
from gateway.running import Running, gateway, stream_of

CHAT = "openai-chat"


def ask(running: Running, key: str, model: str = f"{CHAT}/model-1") -> int:
    path, body = spoken(CHAT, model, stream=True)
    return running.request("POST", path, body, {"authorization": f"Bearer {key}"})[0]


def asked_until(status: int, running: Running, key: str) -> None:
    """A gateway looks for changed keys every quarter of a second."""
    until = time.monotonic() + 30
    while (seen := ask(running, key)) != status:
        assert time.monotonic() < until, f"the key gets {seen}, not {status}"
        time.sleep(0.01)


def rows_of(key: str, folder: LedgerFolder, count: int) -> list[dict[str, Any]]:
    until = time.monotonic() + 30
    while len(found := [row for row in rows(folder) if row["key"] == key]) < count:
        assert time.monotonic() < until, f"{len(found)} rows of the key, not {count}"
        time.sleep(0.02)
    return found


class Commands:
    """`dragoman` with the configuration of a folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.file = folder / "commands.toml"
        self.file.write_text(f'[server]\nstate = "{folder / "state"}"\n')
        self.capsys = capsys

    def __call__(self, *words: str, status: int = 0) -> str:
        assert main([*words, "--config", str(self.file)]) == status
        return self.capsys.readouterr().out

    def new(self, name: str, *words: str) -> str:
        return str(json.loads(self("keys", "new", name, *words, "--json"))["key"])


@pytest.fixture
def commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(tmp_path, capsys)


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Recording]:
    with recording(tmp_path) as found:
        found.running.answer(stream_of(CHAT, reply("text")))
        yield found


def test_a_key_of_the_command_lets_in_and_names_its_rows(recorded: Recording, commands: Commands) -> None:
    running, folder, _ = recorded
    assert ask(running, "anything") == 200  # there are no keys yet
    key = commands.new("ci", "--team", "research", "--owner", "anna", "--label", "cost=4711")
    asked_until(401, running, "anything")
    assert ask(running, key) == 200
    assert [(row["owner"], row["team"]) for row in rows_of("ci", folder, 1)] == [("anna", "research")]
    assert {(row["owner"], row["team"]) for row in rows_of("", folder, 1)} == {("", "")}
    assert key not in commands("keys", "list")
    assert not any(key.encode() in path.read_bytes() for path in folder.root.rglob("*") if path.is_file())


def test_a_disabled_key_ends_at_once(recorded: Recording, commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_addresses, "LONGEST_PAUSE", 0.0)  # else wrong keys are answered ever later
    running, folder, _ = recorded
    key = commands.new("ci")
    asked_until(401, running, "anything")
    for action, status in (("disable", 401), ("enable", 200), ("disable", 401)):
        commands("keys", action, "ci")
        asked_until(status, running, key)
        assert [ask(running, key) for _ in range(5)] == [status] * 5
    assert check(folder).is_sound  # the audit's chain


def test_no_key_is_let_in_before_its_limits_hold(
    recorded: Recording, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway reads a key that it did not know, and its quotas by the second: what came between was not counted."""
    monkeypatch.setattr(client_addresses, "LONGEST_PAUSE", 0.0)
    monkeypatch.setattr(Ledger, "tick", lambda ledger: None)  # so that no second passes
    running, _, _ = recorded
    commands.new("first")
    asked_until(401, running, "anything")
    for number in range(3):
        commands("budget", "set", f"team:t{number}", "1/hour", "--unit", "requests")
        key = commands.new(f"k{number}", "--team", f"t{number}")
        asked_until(200, running, key)
        assert ask(running, key) == 429


def test_rotating_keeps_the_one_before_for_a_stated_time(recorded: Recording, commands: Commands) -> None:
    running, _, _ = recorded
    first = commands.new("ci")
    second = str(json.loads(commands("keys", "rotate", "ci", "--keep", "1h", "--json"))["key"])
    asked_until(401, running, "anything")
    assert [ask(running, key) for key in (first, second)] == [200, 200]
    third = str(json.loads(commands("keys", "rotate", "ci", "--keep", "1s", "--json"))["key"])
    asked_until(200, running, third)
    asked_until(401, running, second)
    assert ask(running, third) == 200


def test_what_a_key_may_ask(tmp_path: Path) -> None:
    secret = "a-key-of-some-length-and-chance-0123456789"
    digest = hashlib.sha256(secret.encode()).hexdigest()
    more = f'[keys.ci]\ndigests = ["sha256:{digest}"]\nmodels = ["{CHAT}/*"]\nroutes = ["via-openai-*"]\n'
    with recording(tmp_path, more) as (running, _, _):
        running.answer(stream_of(CHAT, reply("text")))
        asked = {model: ask(running, secret, model) for model in (
            f"{CHAT}/model-1", f"via-{CHAT}", "anthropic-messages/model-1", "via-ollama-chat")}  # fmt: skip
        assert list(asked.values()) == [200, 200, 403, 403]
        before = len(running.provider.requests)
        body = json.dumps({"model": "ollama-chat/model-1", "input": "words"}).encode()
        headers = {"authorization": f"Bearer {secret}"}
        assert running.request("POST", "/v1/embeddings", body, headers)[0] == 403
        assert len(running.provider.requests) == before


LISTS = {
    "/v1/models": {}, "/api/tags": {}, "/v1beta/models": {}, "/v1/models?limit=9": {"anthropic-version": "2023-06-01"},
    "/": {"accept": "text/html"},
}  # fmt: skip


def test_a_refused_key_is_told_in_the_form_of_the_page_that_was_asked(tmp_path: Path) -> None:
    more = f'[keys.one]\ndigests = ["sha256:{hashlib.sha256(b"right").hexdigest()}"]\n'
    asked: list[tuple[str, dict[str, str], dict[str, Any]]] = [
        ("/v1/models", {"authorization": "Bearer wrong"}, {"code": "invalid_api_key"}),
        ("/v1/models/via-openai-chat", {"authorization": "Bearer wrong"}, {"code": "invalid_api_key"}),
        ("/v1/models/qwen3:8b", {"authorization": "Bearer wrong"}, {"code": "invalid_api_key"}),
        ("/v1/models/x", {"x-api-key": "wrong", "anthropic-version": "1"}, {"type": "authentication_error"}),
        ("/v1/models/x?key=wrong", {}, {"status": "UNAUTHENTICATED"}),
        ("/v1beta/models/x", {"authorization": "Bearer wrong"}, {"status": "UNAUTHENTICATED"}),
    ]
    with gateway(tmp_path, more) as running:
        for path, headers, told in asked:
            status, _, body = running.request("GET", path, b"", headers)
            assert (status, told.items() <= json.loads(body)["error"].items()) == (401, True), (path, body)


def test_a_client_is_shown_the_models_that_its_key_may_ask_for(tmp_path: Path) -> None:
    secret, all_secret = "a-key-of-some-length-and-chance-0123456789", "another-key-of-some-length-and-chance-987654"
    digests = [hashlib.sha256(each.encode()).hexdigest() for each in (secret, all_secret)]
    more = (
        f'[keys.few]\ndigests = ["sha256:{digests[0]}"]\nmodels = ["{CHAT}/small-*"]\nroutes = ["fast"]\n'
        f'[keys.all]\ndigests = ["sha256:{digests[1]}"]\n'
        f'[routes.fast]\ntargets = ["{CHAT}/small-1"]\n[routes.dear]\ntargets = ["{CHAT}/large-1"]\n'
        f'[models."{CHAT}/small-1"]\ntools = "auto"\n[models."{CHAT}/large-1"]\ntools = "auto"\n'
    )
    with recording(tmp_path, more) as (running, _, _):
        for path, headers in LISTS.items():
            seen = running.request("GET", path, b"", {"authorization": f"Bearer {all_secret}", **headers})[2]
            assert all(name in seen for name in (b"dear", b"large-1", b"fast", b"small-1")), path
            seen = running.request("GET", path, b"", {"authorization": f"Bearer {secret}", **headers})[2]
            assert b"fast" in seen and b"small-1" in seen, path
            assert b"dear" not in seen and b"large-1" not in seen, path
        few = {"authorization": f"Bearer {secret}"}
        for name, status in ((f"{CHAT}/small-1", 200), ("fast", 200), (f"{CHAT}/large-1", 404), ("dear", 404)):
            body = json.dumps({"model": name}).encode()
            assert running.request("GET", f"/v1/models/{name}", b"", few)[0] == status
            assert running.request("POST", "/api/show", body, few)[0] == status
        unknown = running.request("GET", "/v1/models/nothing-of-this-name", b"", few)[2]
        assert b"dear" not in unknown and b"large-1" not in unknown  # what may be meant is said of what it may ask


def test_a_client_sees_what_its_key_has_used(recorded: Recording, commands: Commands) -> None:
    running, folder, _ = recorded
    key, other = commands.new("ci", "--team", "research"), commands.new("other")
    asked_until(401, running, "anything")
    for shown in (key, key, other):
        assert ask(running, shown) == 200
    rows_of("ci", folder, 2)
    status, _, body = running.request("GET", "/v1/key", b"", {"authorization": f"Bearer {key}"})
    data = json.loads(body)["data"]
    assert (status, data["label"], data["team"], data["unpriced"], data["usage"]) == (200, "ci", "research", 2, 0)
    assert running.request("GET", "/v1/key")[0] == 401


def test_an_expired_key_is_none() -> None:
    now = 100.0
    digest = bytes(32)
    ring = KeyRing(None, {digest: VirtualKey(name="ci", expires=200)}, now=lambda: now)
    assert ring.find(digest) is not None and ring.find(b"x" * 32) is None
    now = 200.0
    assert ring.find(digest) is None


def test_hostile_keys_get_the_same_answer(recorded: Recording, commands: Commands) -> None:
    running, _, _ = recorded
    commands.new("ci")
    asked_until(401, running, "anything")
    hostile = [
        "' OR 1=1 --",
        "x" * 4_000,
        "%00",
        "ci",
        '"; DROP TABLE virtual_key; --',
        "sha256:" + "0" * 64,
        "\\",
        "*",
    ]
    answers = set()
    for words in hostile:
        found = running.request("GET", "/v1/models", b"", {"authorization": f"Bearer {words}"})
        answers.add((found[0], found[2]))
    assert len(answers) == 1 and {status for status, _ in answers} == {401}


def test_mistakes_are_told(commands: Commands) -> None:
    commands.new("ci")
    commands("keys", "new", "ci", status=1)
    commands("keys", "new", "two words", status=2)
    commands("keys", "disable", "nobody", status=2)
    commands("keys", "disable", status=2)
    commands("keys", "rotate", "ci", "--keep", "soon", status=2)


def test_spend_and_the_ledger_by_command(recorded: Recording, commands: Commands, tmp_path: Path) -> None:
    running, folder, _ = recorded
    assert "sound" in commands("ledger", "check")
    for _ in range(3):
        assert ask(running, "") == 200
    found = rows_of("", folder, 3)
    [line] = commands("spend", "--by", "target,state", "--json").splitlines()
    assert json.loads(line) == {
        "target": f"{CHAT}/model-1", "state": "settled", "nano": 0, "unpriced": 3, "input": 360, "output": 102,
        "cache_read": 0, "cache_write": 0, "reasoning": 0, "attempts": 3,
    }  # fmt: skip
    assert f"{CHAT}/model-1" in commands("spend", "--since", "1h")
    commands("spend", "--since", "2000-01-01", "--by", "nothing", status=2)
    commands("ledger", "adjust", found[0]["id"].hex(), "--usd", "0.12", "--reason", "invoice 7")
    commands("ledger", "adjust", found[0]["id"].hex(), "--usd", "0.12", "--reason", "invoice 7")
    assert "3 attempts cost 0.12 US dollars, 2 unpriced" in commands("ledger", "check")
    commands("ledger", "export", str(tmp_path / "rows.csv"))
    lines = (tmp_path / "rows.csv").read_text().splitlines()
    assert len(lines) == 4 and lines[1].endswith(",120000000")
    until = time.monotonic() + 30  # the position follows the rows in a moment
    while (status := json.loads(commands("ledger", "status", "--json")))["journals"][0]["waiting"]:
        assert time.monotonic() < until, status
        time.sleep(0.1)
    assert [(journal["is_live"], journal["waiting"]) for journal in status["journals"]] == [(True, 0)]
    commands("ledger", "adjust", "0" * 32, "--usd", "1", "--reason", "x", status=2)
    commands("ledger", "adjust", "zz", "--usd", "1", "--reason", "x", status=2)
