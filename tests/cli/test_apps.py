"""Clients as data: every preset is whole, and what is printed points at the gateway."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from dragoman import _json
from dragoman.cli.commands.serve import read_protocols
from dragoman.cli.main import main
from dragoman.cli.presets import A_KEY, NO_KEY, load_presets, render_preset, values_for
from dragoman.config import Config, load_config

URL = "http://127.0.0.1:4141"
ASKED_FOR = {
    "zed", "claude-code", "codex", "gemini-cli", "opencode", "vscode", "aider", "qwen-code", "cline", "continue",
    "copilot", "pi", "jetbrains", "home-assistant", "open-webui",
    "claude-desktop", "codex-desktop", "openclaw", "kilo", "goose", "xcode", "cursor", "n8n", "librechat", "hermes",
}  # fmt: skip


@pytest.fixture
def config(tmp_path: Path) -> Config:
    file = tmp_path / "dragoman.toml"
    file.write_text('[routes.coder]\ntargets = ["ollama/qwen3-coder"]\n', encoding="utf-8")
    return load_config(file, environ={}, home=tmp_path)


def test_every_client_that_is_named_has_a_preset() -> None:
    assert set(load_presets()) >= ASKED_FOR


@pytest.mark.parametrize("name", list(load_presets()))
def test_a_preset_is_whole(name: str, config: Config) -> None:
    preset = load_presets()[name]
    assert read_protocols(",".join(preset.speaks), config)
    text = render_preset(preset, values_for(config, url=URL))
    assert "4141" in text
    assert not re.search(r"\{(url|v1|model|key)\}", text)
    assert bool(preset.file) == bool(preset.text)


def test_what_is_put_into_files_can_be_read_there(config: Config) -> None:
    from dragoman.cli.presets import fill

    values = values_for(config, url=URL)
    read = 0
    for preset in load_presets().values():
        text = fill(preset.text, values)
        if preset.file.endswith(".toml"):
            tables = tomllib.loads(text)
            assert tables["model_providers"]["dragoman"]["base_url"] == f"{URL}/v1"
        elif preset.file.endswith(".json") and text.startswith(("{", "\n{")):
            assert not isinstance(_json.decode(text.encode()), _json.Malformed)
        elif preset.file.endswith(".json"):
            assert not isinstance(_json.decode(f"{{{text}}}".encode()), _json.Malformed)
        else:
            continue
        read += 1
    assert read >= 5


def test_shell_lines_are_for_a_shell(config: Config) -> None:
    for preset in load_presets().values():
        text = render_preset(preset, values_for(config, url=URL))
        if preset.shell and not preset.file:
            run = subprocess.run(["sh", "-n"], input=text, capture_output=True, text=True, timeout=10, check=False)
            assert (run.returncode, run.stderr) == (0, "")


def test_env_prints_variables_for_eval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert main(["env", "claude-code", "--shell", "--url", "http://box.lan:8080/", "--model", "coder"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        'export ANTHROPIC_BASE_URL="http://box.lan:8080"',
        f'export ANTHROPIC_API_KEY="{NO_KEY}"',
        'export ANTHROPIC_MODEL="coder"',
        'export ANTHROPIC_DEFAULT_HAIKU_MODEL="coder"',
        'export CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY="1"',
    ]
    assert main(["env", "zed", "--json", "--url", "http://box.lan:8080"]) == 0
    assert json.loads(capsys.readouterr().out)["url"] == "http://box.lan:8080"
    assert main(["env", "zod"]) == 2
    assert "nearest: zed" in capsys.readouterr().err


def test_the_key_of_a_client_is_asked_for_where_keys_stand_in_the_ledger_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text(f'[server]\nstate = "{tmp_path / "state"}"\n', encoding="utf-8")
    monkeypatch.setenv("DRAGOMAN_CONFIG", str(file))
    shell = ["env", "claude-code", "--shell", "--url", "http://box.lan:8080"]
    assert main(shell) == 0
    assert NO_KEY in capsys.readouterr().out
    assert not (tmp_path / "state").exists()  # looking makes nothing
    assert main(["keys", "new", "laptop"]) == 0
    capsys.readouterr()
    assert main(shell) == 0
    assert A_KEY in capsys.readouterr().out


def test_apps_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["apps"]) == 0
    table = capsys.readouterr().out
    assert table.splitlines()[0].split() == ["NAME", "CLIENT", "SPEAKS", "PORT"]
    assert main(["apps", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["name"]: row["port"] for row in rows}["zed"] == 11434
    assert len(rows) == len(table.splitlines()) - 1
