"""Client keys: as long as they must be, known by their digest alone."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import pytest

from dragoman.cli.main import main
from dragoman.config import load_config
from dragoman.gateway.auth import Guard
from dragoman.gateway.messages import Head
from dragoman.ledger.keys import new_secret
from dragoman.secret import Secret


def test_a_key_has_256_bits_and_its_digest_lets_it_in(tmp_path: Path) -> None:
    key, sha256 = new_secret()
    digest = f"sha256:{sha256.hex()}"
    assert len(base64.urlsafe_b64decode(key.partition("-")[2] + "=")) == 32
    assert digest == f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"
    file = tmp_path / "dragoman.toml"
    file.write_text(f'[server]\naddress = "0.0.0.0:4141"\nkeys = ["{digest}"]\n', encoding="utf-8")
    server = load_config(file, environ={}, home=tmp_path).server
    guard = Guard(allowed_hosts=(), keys=server.keys)
    for headers in ({"authorization": f"Bearer {key}"}, {"x-api-key": key}, {"x-goog-api-key": key}):
        head = Head("GET", "/", {"host": "localhost", **headers})
        assert guard.judge(head) is None
        assert guard.owner(head) == digest.removeprefix("sha256:")
    for wrong in (key[:-1], key + "a", digest, digest.removeprefix("sha256:"), "", key.upper()):
        head = Head("GET", "/", {"host": "localhost", "x-api-key": wrong})
        failure = guard.judge(head)
        assert failure is not None and failure.status == 401
        assert guard.owner(head) == ""


def test_keys_differ_and_are_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert len({new_secret()[0] for _ in range(1_000)}) == 1_000
    assert main(["keys", "new"]) == 0
    shown = capsys.readouterr()
    key, digest = shown.out.splitlines()
    assert key not in shown.err and digest in shown.err
    assert main(["keys", "new", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"key", "digest"} and found["key"] != key


def test_a_guard_takes_new_keys() -> None:
    guard = Guard(allowed_hosts=("box.lan",), keys=())
    head = Head("GET", "/", {"host": "box.lan"})
    assert guard.judge(head) is None
    guard.take(allowed_hosts=(), keys=(Secret("one"), Secret("two")))
    assert guard.judge(head) is not None
    keyed = Head("GET", "/", {"host": "localhost", "authorization": "Bearer two"})
    assert guard.judge(keyed) is None
    assert guard.judge(Head("GET", "/livez", {"host": "localhost"}), needs_key=False) is None


def test_no_keys_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text(f'[server]\nstate = "{tmp_path}"\n', encoding="utf-8")
    assert main(["keys", "list", "--config", str(file)]) == 0
    shown = capsys.readouterr()
    assert shown.out == "" and "there are no keys with names: dragoman keys new NAME makes one" in shown.err
    assert main(["keys", "new", "ci", "--config", str(file)]) == 0
    assert main(["keys", "list", "--config", str(file)]) == 0
    shown = capsys.readouterr()
    assert "ci  " in shown.out and "there are no keys" not in shown.err


def test_keys_of_the_configuration_are_seen_and_changed_there_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One hides its name in the ledger: a key that was made or disabled there under that name changed nothing."""
    file = tmp_path / "dragoman.toml"
    file.write_text(
        f'[server]\nstate = "{tmp_path}"\n[keys.ci]\ndigests = ["sha256:{"1" * 64}"]\nteam = "research"\n'
        f'[keys.old]\ndigests = ["sha256:{"2" * 64}"]\ndisabled = true\n'
        '[[quotas]]\nscope = "team:research"\nusd = 5\nper = "day"\n',
        encoding="utf-8",
    )

    def typed(*words: str) -> tuple[int, str, str]:
        status = main([*words, "--config", str(file)])
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    for action in ("new", "rotate", "disable", "enable"):
        status, _, problem = typed("keys", action, "ci")
        assert status == 2 and f"[keys.ci] stands in {file}: change it there" in problem, action
    status, out, problem = typed("keys", "new", "alice", "--team", "research")
    assert status == 0 and out and "the first one" not in problem
    _, out, _ = typed("keys", "list")
    assert [line.split()[0] for line in out.splitlines()] == ["alice", "ci", "old"] and "disabled  (file)" in out
    _, out, _ = typed("keys", "show", "ci", "--json")
    assert json.loads(out)["from"] == "file" and json.loads(out)["team"] == "research"
    status, _, problem = typed("budget", "remove", "team:research")
    assert status == 2 and f"there is none for team:research but the one in {file}: change it there" in problem
    _, _, problem = typed("budget", "show", "key:alice")
    assert "there is no quota for key:alice; one of a wider scope may hold" in problem


def test_a_key_beside_the_listeners_is_not_the_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text(f'[server]\nstate = "{tmp_path}"\nkeys = ["sha256:{"1" * 64}"]\n', encoding="utf-8")
    assert main(["keys", "new", "ci", "--config", str(file)]) == 0
    assert "the first one" not in capsys.readouterr().err
