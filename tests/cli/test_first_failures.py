"""A provider's failure names the provider, its address and the fix; a key that is missing is told before a request."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import dragoman
from dragoman.cli.body_input import read_prompt
from dragoman.cli.local_servers import find_all, render_found
from dragoman.cli.main import main
from dragoman.config import Config, load_config
from dragoman.errors import ConfigError
from dragoman.gateway.model_names import ModelNames, UnknownModel
from dragoman.providers.catalog import Model, Provider
from dragoman.secret import Secret
from gateway.running import gateway
from scripted import serving, whole

LAB = '[providers.lab]\nprotocol = "openai-chat"\nbase_url = "{url}"\n'


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("ANTHROPIC_API_KEY", "ZHIPU_API_KEY", "ZAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def asked(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, target: str = "lab/m") -> str:
    """What `call` says on standard error, which is one line."""
    (tmp_path / "dragoman.toml").write_text(text)
    assert main(["call", target, "hi", "--config", str(tmp_path / "dragoman.toml")]) == 1
    out = capsys.readouterr()
    assert out.out == "" and out.err.count("\n") == 1 and out.err.startswith("dragoman: ")
    return out.err


@pytest.mark.parametrize(
    ("path", "reply", "words"),
    [
        ("", whole(b"404 page not found", 404, "text/plain"),
         ["lab: POST {url}/chat/completions answered 404", "does base_url end in /v1?"]),
        ("", whole(b'{"error": {"message": "The model `m` does not exist"}}', 404),
         ["The model `m` does not exist (lab: POST {url}/chat/completions answered 404)"]),
        ("/v1", whole(b"<html>It works!</html>", 200, "text/html"),
         ["lab at {url}/v1/chat", "a server that speaks openai-chat?"]),
        ("/v1", whole(b'{"error": {"message": "Incorrect API key provided: none"}}', 401),
         ["Incorrect API key provided: none (lab: POST {url}/v1/",
          "the key of lab, not a client's: check api_key under [providers.lab]"]),
        ("/v1", whole(b'{"error": {"message": "slow down"}}', 429),
         ["slow down (lab: POST {url}/v1/chat/completions answered 429)"]),
    ],
)  # fmt: skip
def test_a_failure_names_its_provider_its_address_and_the_fix(
    path: str, reply: Any, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(reply) as server:
        err = asked(tmp_path, capsys, LAB.format(url=server.url + path) + "[http]\nretries = 0\n")
        assert [word.format(url=server.url) in err for word in words] == [True] * len(words), err


def test_a_server_that_does_not_run_is_told_with_how_to_start_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    text = f'[providers.ollama]\nbase_url = "http://127.0.0.1:{port}"\n[http]\nretries = 0\n'
    err = asked(tmp_path, capsys, text, "ollama/granite4")
    assert f"127.0.0.1:{port}" in err and "ollama; start it: ollama serve, or set base_url" in err


def test_an_address_is_told_without_its_login_and_query(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(whole(b"{}", 404)) as server:
        url = server.url.replace("://", "://me:canary@") + "/v1"
        (tmp_path / "dragoman.toml").write_text(LAB.format(url=url) + 'query = { token = "canary" }\n')
        main(["call", "lab/m", "hi", "--config", str(tmp_path / "dragoman.toml")])
    assert "canary" not in capsys.readouterr().err


def test_through_the_gateway_a_refused_key_is_the_providers(tmp_path: Path) -> None:
    with serving(whole(b'{"error": {"message": "Incorrect API key provided: none"}}', 401)) as server:
        text = LAB.format(url=server.url + "/v1")
        with gateway(tmp_path, config=load(tmp_path, text)) as running:
            body = {"model": "lab/m", "messages": [{"role": "user", "content": "hi"}]}
            status, _, answer = running.request("POST", "/v1/chat/completions", json.dumps(body).encode())
    message = json.loads(answer)["error"]["message"]
    assert status == 401 and f"(lab: POST {server.url}/v1/chat/completions answered 401" in message
    assert "the key of lab, not a client's" in message


# ---------------------------------------------------------------- keys


def test_a_missing_key_is_told_with_its_variable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    err = asked(tmp_path, capsys, "", "anthropic/claude-sonnet-4-5")
    assert "anthropic needs a key: set ANTHROPIC_API_KEY, or api_key under [providers.anthropic]" in err
    (tmp_path / "empty.toml").write_text("")
    with dragoman.Client(tmp_path / "empty.toml") as client, pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
        client.reply("anthropic/claude-sonnet-4-5", "hi")


@pytest.mark.parametrize("table", ['base_url = "http://127.0.0.1:9"', 'headers = { x = "y" }', "client_login = true"])
def test_who_is_reached_in_a_way_of_the_users_needs_no_key(table: str, tmp_path: Path) -> None:
    config = load(tmp_path, f"[providers.anthropic]\n{table}\n")
    assert config.missing_key(config.catalog.provider("anthropic")) == ""
    assert load(tmp_path, "").missing_key(config.catalog.provider("ollama")) == ""


# ---------------------------------------------------------------- what the gateway finds and lists


def load(tmp_path: Path, text: str) -> Config:
    (tmp_path / "dragoman.toml").write_text(text)
    return load_config(tmp_path / "dragoman.toml", environ={}, home=tmp_path)


def test_a_configured_server_is_found(tmp_path: Path) -> None:
    config = load(
        tmp_path, LAB.format(url="http://10.0.0.5:8000/v1") + LAB.replace("lab", "far").format(url="http://x/v1")
    )

    async def look(provider: Provider, key: Secret | None) -> list[Model]:
        return [Model("lab", "m1"), Model("lab", "m2")] if provider.name == "lab" else []

    found, keyed = asyncio.run(find_all(config, look))
    said = render_found(found, keyed, config, {})
    assert "found lab at http://10.0.0.5:8000/v1: lab/m1, lab/m2\n" in said
    assert "configured: far at http://x/v1 gives no list of its models; clients ask for far/MODEL" in said
    assert "found no model server" not in said


def test_models_of_configured_providers_and_the_embedded_one_are_listed_and_asked(tmp_path: Path) -> None:
    text = LAB.format(url="http://127.0.0.1:9/v1") + '[routes.coder]\ntargets = ["ollama/granite4"]\n'
    names = ModelNames(load(tmp_path, text))
    assert "lab" in {provider.name for provider in names.servers()}
    names.tell("lab", [Model("lab", "m1")])
    assert [one.name for one in names.listed()] == ["coder", "lab/m1", "embedded/smollm2"]
    assert names.chain("embedded/smollm2").targets[0].name == "embedded/smollm2"
    with pytest.raises(UnknownModel, match="there are: coder, lab/m1, embedded/smollm2"):
        names.chain("nosuch")
    only = ModelNames(load(tmp_path, text), only_routes=True)
    only.tell("lab", [Model("lab", "m1")])
    assert [one.name for one in only.listed()] == ["coder"]
    with pytest.raises(UnknownModel):
        only.chain("embedded/smollm2")


def test_a_file_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`--tools /dev/zero` was read until the memory was full."""
    monkeypatch.setattr("dragoman.cli.body_input._LARGEST", 1 << 20)
    for option in ("--tools", "--schema", "--image"):
        assert main(["call", "ollama/m", "hi", option, "/dev/zero"]) == 2
        assert f"{option} /dev/zero: expected at most 1 MiB" in capsys.readouterr().err
    with Path("/dev/zero").open("rb") as endless:
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=endless))
        anthropic = ["explain", "--from", "anthropic", "--to", "anthropic/claude-sonnet-5"]
        for words in (
            ["call", "ollama/m", "-"],
            ["chat", "ollama/m", "-p", "-"],
            ["decode"],
            ["decode", "-"],
            anthropic,
        ):
            assert main(words) == 2, words
            assert "standard input: expected at most 1 MiB" in capsys.readouterr().err


def test_a_prompt_that_is_no_utf_8_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A prompt may have the character that takes the place of what is none."""
    for data, is_told in ((b"a \xff", True), ("a \ufffd".encode(), False)):
        (tmp_path / "prompt").write_bytes(data)
        with (tmp_path / "prompt").open("rb") as file:
            monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=file))
            assert read_prompt("-") == "a \ufffd"
            assert ("no UTF-8" in capsys.readouterr().err) == is_told
