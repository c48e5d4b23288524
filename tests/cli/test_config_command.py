"""`dragoman config`: where, what is wrong, what is in force, a first file."""

import json
import os
import stat
import tomllib
from pathlib import Path

import pytest

from dragoman.cli.commands.config import render_toml
from dragoman.cli.main import main
from dragoman.config import load_config


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration file of the test's own, not there yet."""
    for name in list(os.environ):
        if name.endswith(("_KEY", "_TOKEN")):
            monkeypatch.delenv(name)
    file = tmp_path / "folder" / "dragoman.toml"
    monkeypatch.setenv("DRAGOMAN_CONFIG", str(file))
    return file


def write(file: Path, text: str) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)


def test_path_is_printed_whether_the_file_is_there_or_not(settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "path"]) == 0
    assert main(["config", "path", "--config", "elsewhere.toml"]) == 0
    assert capsys.readouterr().out == f"{settings}\nelsewhere.toml\n"


def test_init_writes_a_first_file_once_for_its_owner_only(settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "init"]) == 0
    if os.name != "nt":
        assert stat.S_IMODE(settings.stat().st_mode) == 0o600
    assert load_config(settings, environ={}, home=settings.parent).path == settings
    settings.write_text("# mine\n")
    assert main(["config", "init"]) == 1
    assert settings.read_text() == "# mine\n"
    assert "it is left as it is" in capsys.readouterr().err


def test_everything_that_init_suggests_is_good(settings: Path) -> None:
    assert main(["config", "init"]) == 0
    lines = settings.read_text().splitlines()
    active = [
        line.removeprefix("# ") if (line.startswith(("# [", "# ")) and "=" in line) or "# [" in line else ""
        for line in lines
    ]
    authority = settings.parent / "lab.pem"
    authority.write_text("")
    settings.write_text("\n".join(active).replace("/etc/ssl/certs/lab.pem", str(authority)))
    config = load_config(settings, environ={"LAB_KEY": "x"}, home=settings.parent)
    assert set(config.providers) == {"ollama", "lab"}
    assert config.prices and config.models and config.http.ca_file == authority


def test_check_names_what_is_wrong(settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(settings, "[http]\nproxi = 'x'\n")
    assert main(["config", "check"]) == 1
    assert capsys.readouterr().err == f"dragoman: {settings}: http.proxi: unknown key; nearest: proxy\n"
    write(settings, "[providers.openai]\napi_key = 'env:NOT_SET'\n")
    assert main(["config", "check"]) == 1
    assert "NOT_SET is not set" in capsys.readouterr().err
    write(settings, "[routes.a]\ntargets = ['ollama/x']\n")
    assert main(["config", "check"]) == 0
    assert "good (0 providers, 1 route," in capsys.readouterr().out


SECRETS = """
[providers.openai]
api_key = "env:MINE"
headers = { x-tenant = "hidden-tenant" }
[providers.lab]
protocol = "openai-chat"
base_url = "http://10.0.0.5:8000/v1"
api_key = "file:key"
query = { token = "hidden-token" }
dialect = { usage_in_stream = false }
[http]
proxy = "http://me:hidden-password@proxy:3128"
[models."lab/a.b"]
options = { temperature = 0.5, stop = ["</s>", "\\n"] }
[prices."lab/a.b"]
input = 0.1
output = 0.25
[routes."*"]
targets = ["lab/a.b"]
"""


def test_show_masks_every_secret(
    settings: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(settings, SECRETS)
    (settings.parent / "key").write_text("hidden-file")
    monkeypatch.setenv("MINE", "hidden-variable")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "hidden-usual")
    assert main(["config", "show"]) == 0
    text = capsys.readouterr().out
    assert main(["config", "show", "--json"]) == 0
    as_json = capsys.readouterr().out
    assert "hidden" not in text + as_json
    shown = tomllib.loads(text)
    assert shown == {key: value for key, value in json.loads(as_json).items() if key != "path"}
    assert shown["providers"]["openai"]["api_key"] == "env:MINE"
    assert shown["providers"]["openai"]["key_found"] is True
    assert shown["providers"]["anthropic"]["api_key"] == "env:ANTHROPIC_API_KEY"
    assert shown["providers"]["lab"]["dialect"] == {"usage_in_stream": False}
    assert shown["http"]["proxy"] == "***"
    assert shown["models"]["lab/a.b"]["options"] == {"temperature": 0.5, "stop": ["</s>", "\n"]}
    assert shown["prices"]["lab/a.b"] == {"input": 0.1, "output": 0.25}
    assert shown["routes"]["*"]["targets"] == ["lab/a.b"]


def test_toml_is_written_as_it_is_read() -> None:
    tables = {
        "server": {"address": 'a"b\\c', "keys": ["x", "é"]},
        "models": {"p/q.r": {"options": {"a b": [1, 2.5, True]}}},
    }
    assert tomllib.loads(render_toml(tables)) == tables
