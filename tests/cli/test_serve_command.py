"""What `dragoman serve` does before it serves: says what there is, picks a port, prints what to paste."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest

from dragoman.cli.commands.serve import pick_port
from dragoman.cli.local_servers import find_all, render_found
from dragoman.cli.main import main
from dragoman.cli.presets import find_preset
from dragoman.config import Config, ServerConfig, load_config
from dragoman.errors import ConfigError
from dragoman.providers.catalog import Model, Provider
from dragoman.secret import Secret
from warm_programs import Popen, run


def config_with(folder: Path, **environ: str) -> Config:
    return load_config(environ=environ, home=folder)


def look_like(models: dict[str, list[str]]) -> object:
    async def look(provider: Provider, key: Secret | None) -> list[Model]:
        return [Model(provider.name, name) for name in models.get(provider.name, [])]

    return look


def told(config: Config, models: dict[str, list[str]], **environ: str) -> str:
    found, keyed = asyncio.run(find_all(config, look_like(models)))  # type: ignore[arg-type]
    return render_found(found, keyed, config, environ)


def test_servers_and_keys_that_are_there_are_named(tmp_path: Path) -> None:
    environ = {"ANTHROPIC_API_KEY": "canary-key"}
    names = [f"m{number}" for number in range(7)]
    text = told(config_with(tmp_path, **environ), {"ollama": names, "vllm": ["qwen3"]}, **environ)
    assert text.splitlines() == [
        "found ollama at http://127.0.0.1:11434: ollama/m0, ollama/m1, ollama/m2, ollama/m3, ollama/m4 and 2 more",
        "found vllm at http://127.0.0.1:8000/v1: vllm/qwen3",
        "found a key for anthropic in ANTHROPIC_API_KEY: clients ask for anthropic/MODEL",
        "one model for every name: dragoman serve --provider ollama --model m0",
    ]
    assert "canary" not in text


def test_with_nothing_it_says_how_to_begin(tmp_path: Path) -> None:
    text = told(config_with(tmp_path), {})
    assert text.startswith("found no model server on this machine (ollama, lmstudio, llamacpp, vllm")
    for way in ("ollama pull", "ANTHROPIC_API_KEY", "dragoman serve --provider", "dragoman config init"):
        assert way in text
    assert [line for line in text.splitlines() if len(line) > 80] == []


def hang_up(listener: socket.socket) -> None:
    """Say nothing, and at once: who asks what listens would wait for a second each time."""
    with contextlib.suppress(OSError):
        while True:
            listener.accept()[0].close()


def test_only_an_apps_port_that_we_chose_gives_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taken = socket.create_server(("127.0.0.1", 0))
    port = taken.getsockname()[1]
    threading.Thread(target=hang_up, args=(taken,), daemon=True).start()
    try:
        zed = msgspec.structs.replace(find_preset("zed"), port=port)
        config = config_with(tmp_path)
        chosen = msgspec.structs.replace(config, server=ServerConfig(address=f"127.0.0.1:{port}"))
        for named, preset, settings in ((port, zed, config), (port, None, config), (None, None, chosen)):
            with pytest.raises(
                ConfigError, match=f"port {port} is taken by another program; --port 0 takes a free one"
            ):
                pick_port(named, preset, settings, host="127.0.0.1")
        usual = pick_port(None, zed, config, host="127.0.0.1")
        assert usual != port
        assert f"port {port} is taken" in capsys.readouterr().err
    finally:
        taken.shutdown(socket.SHUT_RDWR)
        taken.close()


@pytest.mark.parametrize("port", ["99999", "-1", "65536", "x", "1e3", "٣"])
def test_a_port_out_of_range_is_wrong_usage(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["serve", f"--port={port}"])
    assert ended.value.code == 2
    assert f"expected a port from 0 to 65535, got {port!r}" in capsys.readouterr().err


def test_a_taken_port_ends_the_command(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run(
            [sys.executable, "-m", "dragoman", "serve", "--provider", "ollama", "--model", "m", "--port", str(port)],
            text=True,
            env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path)},
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith(f"dragoman: port {port} is taken by another program; --port 0 takes a free one\n")


def test_an_app_is_told_what_to_paste(tmp_path: Path) -> None:
    program = Popen(
        [sys.executable, "-m", "dragoman", "serve", "--app", "claude-code", "--port", "0",
         "--provider", "ollama", "--model", "granite4"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path)},
    )  # fmt: skip
    assert program.stdout is not None
    url = program.stdout.readline().split()[-1]
    program.terminate()
    out, said = program.communicate(timeout=10)
    assert out == ""
    assert f'export ANTHROPIC_BASE_URL="{url}"' in said and 'export ANTHROPIC_MODEL="granite4"' in said


def test_an_app_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "dragoman", "serve", "--app", "claudecode"],
        capture_output=True, text=True, timeout=30, check=False, env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path)},
    )  # fmt: skip
    assert run.returncode == 2 and "nearest: claude-code" in run.stderr
