"""`dragoman serve`: the process, its options, how it starts and how it ends."""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from conversations import reply
from dragoman.cli.commands.serve import add_arguments, read_protocols, with_one_model
from dragoman.config import load_config
from dragoman.errors import ConfigError, UsageError
from dragoman.providers.catalog import Model, Provider
from dragoman.secret import Secret
from gateway.running import gateway, stream_of, wire
from scripted import Scripted, chunk, head, serving, whole
from warm_programs import Popen, run


@contextmanager
def serve(folder: Path, *words: str, **variables: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The running program and its port."""
    environ = {
        **os.environ,
        "XDG_CONFIG_HOME": str(folder),
        "XDG_STATE_HOME": str(folder),
        "NO_COLOR": "1",
        **variables,
    }
    program = Popen(
        [sys.executable, "-m", "dragoman", "serve", "--port", "0", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ,
    )  # fmt: skip
    try:
        assert program.stdout is not None
        line = program.stdout.readline()
        assert line.startswith("listening on http://127.0.0.1:"), line or program.communicate(timeout=10)[1]
        yield program, int(line.rpartition(":")[2])
    finally:
        program.kill()
        program.communicate(timeout=10)


def ask(port: int, model: str, *, stream: bool = False) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    body = {"model": model, "stream": stream, "messages": [{"role": "user", "content": "Hi"}]}
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def is_ready(port: int) -> bool:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200


def configured(folder: Path, url: str, *, local: bool = False) -> Path:
    file = folder / "gateway.toml"
    lines = [
        "[providers.lab]", 'protocol = "ollama-chat"', f'base_url = "{url}"', f"local = {str(local).lower()}",
        "[routes.coder]", 'targets = ["lab/qwen3"]',
        "[server]", f'state = "{folder / "state"}"',  # keys of this machine's own ledger do not close the gateway
    ]  # fmt: skip
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


def asked_models(provider: Scripted) -> list[str]:
    return [seen.json["model"] for seen in provider.requests if seen.path == "/api/chat"]


def test_one_model_answers_to_every_name(tmp_path: Path) -> None:
    with serving(stream_of("ollama-chat", reply("text"))) as provider:
        config = configured(tmp_path, provider.url)
        words = ("--config", str(config), "--provider", "lab", "--model", "granite4", "--api-key-env", "LAB_KEY")
        with serve(tmp_path, *words, LAB_KEY="lab-key") as (_, port):
            for name in ("gpt-4o", "openai/gpt-4o", "lab/other", "coder"):
                assert ask(port, name)[0] == 200
        assert set(asked_models(provider)) == {"granite4"}
        assert {seen.headers["authorization"] for seen in provider.requests} == {"Bearer lab-key"}


def test_a_servers_own_word_of_its_models_is_shown(tmp_path: Path) -> None:
    tags = whole(json.dumps({"models": [{"name": "qwen3:latest"}, {"name": "granite4"}]}).encode())
    shown = {"capabilities": ["completion", "vision"], "model_info": {"x.context_length": 54_321}}
    with serving(tags, whole(json.dumps(shown).encode())) as provider:
        with serve(tmp_path, "--config", str(configured(tmp_path, provider.url, local=True))) as (_, port):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request("POST", "/api/show", b'{"model":"coder"}')
            found = json.loads(connection.getresponse().read())
            connection.close()
    assert found["model_info"]["dragoman.context_length"] == 54_321
    assert found["capabilities"] == ["completion", "vision"]


def test_without_routes_what_servers_have_is_listed(tmp_path: Path) -> None:
    config = load_config(environ={}, home=tmp_path)
    asked: list[str] = []

    async def look(provider: Provider, key: Secret | None) -> list[Model]:
        asked.append(provider.name)
        return [Model("ollama", "granite4:latest", 8_192)] if provider.name == "ollama" else []

    with gateway(tmp_path, look=look, config=config) as running:
        _, _, body = running.request("GET", "/api/tags")
    assert [(tag["name"], tag["details"]["context_length"]) for tag in json.loads(body)["models"]] == [
        ("ollama/granite4:latest", 8_192),
        ("embedded/smollm2", 2_048),
    ]
    assert "anthropic" not in asked


def test_routes_and_targets_of_a_configuration(tmp_path: Path) -> None:
    with serving(stream_of("ollama-chat", reply("text"))) as provider:
        with serve(tmp_path, "--config", str(configured(tmp_path, provider.url)), "--protocols", "openai") as (_, port):
            assert [ask(port, name)[0] for name in ("coder", "lab/granite4", "gpt-4o")] == [200, 200, 404]
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request("GET", "/api/tags")
            assert connection.getresponse().status == 404
            connection.close()
        assert asked_models(provider) == ["qwen3", "granite4"]


def test_a_stream_under_way_ends_whole_after_the_signal(tmp_path: Path) -> None:
    data = wire("ollama-chat", reply("text"))
    rest = threading.Semaphore(0)  # leaves when the gateway has seen the signal
    steps = [head(200, "application/x-ndjson"), chunk(data[:150]), rest, chunk(data[150:]), b"0\r\n\r\n"]
    with serving(steps) as provider:
        with serve(tmp_path, "--config", str(configured(tmp_path, provider.url))) as (program, port):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            body = {"model": "coder", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
            connection.request("POST", "/v1/chat/completions", json.dumps(body))
            response = connection.getresponse()
            program.send_signal(signal.SIGTERM)
            while is_ready(port):
                assert program.poll() is None
            rest.release(100)  # from now on nothing is held
            assert response.read().endswith(b"data: [DONE]\n\n")
            connection.close()
            assert program.wait(20) == 0
            with pytest.raises(ConnectionRefusedError):
                ask(port, "coder")


def test_other_machines_are_not_served_without_keys(tmp_path: Path) -> None:
    done = run(
        [sys.executable, "-m", "dragoman", "serve", "--host", "0.0.0.0", "--port", "0"],
        text=True, env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path)},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert "set server.keys first" in done.stderr


def test_a_key_on_the_command_line_is_refused(tmp_path: Path) -> None:
    done = run(
        [sys.executable, "-m", "dragoman", "serve", "--llm-api-key", "my-key"],
        text=True, env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 2
    assert "process list" in done.stderr and "--api-key-env" in done.stderr and "my-key" not in done.stderr


def test_wrong_options_are_named(tmp_path: Path) -> None:
    config = load_config(environ={}, home=tmp_path)
    with pytest.raises(UsageError, match="both --provider"):
        with_one_model(config, "zhipu", None, variable=None)
    with pytest.raises(UsageError, match="nearest: zhipu"):
        with_one_model(config, "zhipo", "glm", variable=None)
    with pytest.raises(ConfigError, match="NO_SUCH_VARIABLE is not set"):
        with_one_model(config, "zhipu", "glm", variable="NO_SUCH_VARIABLE")
    with pytest.raises(UsageError, match="expected all or some of"):
        read_protocols("ollama,soap", config)
    assert read_protocols("gemini,ollama-chat,ollama", config) == ("gemini-generate", "ollama-chat")
    assert len(read_protocols(None, config)) == len(read_protocols("all", config)) == 5
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    assert parser.parse_args([]).port is None


def test_what_goes_on_too_long_is_told_so_when_the_gateway_ends(tmp_path: Path) -> None:
    with gateway(tmp_path) as running:
        running.answer([head(200), chunk(wire("openai-chat", reply("text"))[:430]), "hold"])
        connection = http.client.HTTPConnection("127.0.0.1", running.gateway.port, timeout=20)
        body = {"model": "via-openai-chat", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        response = connection.getresponse()
        running.run(running.gateway.drain(0.1))
        assert running.provider.client_gone.wait(20)
        data = response.read()
        connection.close()
        assert b'"error"' in data and b"shut down" in data and b"[DONE]" not in data


def loopbacks() -> list[str]:
    """The addresses that this machine has for itself."""
    found = ["127.0.0.1"]
    with contextlib.suppress(OSError), closing(socket.socket(socket.AF_INET6)) as one:
        one.bind(("::1", 0))
        found.append("::1")
    return found


def test_localhost_is_both_loopback_addresses(tmp_path: Path) -> None:
    with gateway(tmp_path, host="localhost") as running:
        assert running.url == f"http://localhost:{running.gateway.port}"
        for address in loopbacks():
            connection = http.client.HTTPConnection(address, running.gateway.port, timeout=10)
            with closing(connection):
                connection.request("GET", "/", headers={"host": f"localhost:{running.gateway.port}"})
                assert connection.getresponse().read() == b"Ollama is running"
