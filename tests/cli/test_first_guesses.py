"""What somebody who knows the documents alone tries first on the command line, and what they are told."""

from __future__ import annotations

import io
import shlex
from pathlib import Path
from typing import Final

import pytest

from dragoman.cli.main import main

EMBEDDED: Final = "unknown embedded model 'nope': it is smollm2, or the path of a GGUF file"


@pytest.fixture
def config(tmp_path: Path) -> str:
    file = tmp_path / "dragoman.toml"
    file.write_text(f'[server]\nstate = "{tmp_path / "state"}"\n', encoding="utf-8")
    return str(file)


def test_the_first_key_says_that_it_closes_the_gateway(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = []
    for name in ("one", "two"):
        assert main(["keys", "new", name, "--config", config]) == 0
        told.append("from now on the gateway refuses requests without a key" in capsys.readouterr().err)
    assert told == [True, False]


def test_a_budget_of_a_key_that_is_not_there_says_so(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["keys", "new", "ci", "--config", config])
    told = {}
    for scope in ("key:ci", "key:cy", "key:*", "team:research"):
        capsys.readouterr()
        assert main(["budget", "set", scope, "5/month", "--config", config]) == 0
        told[scope] = "yet; the quota waits for it" in capsys.readouterr().err
    assert told == {"key:ci": False, "key:cy": True, "key:*": False, "team:research": False}


def test_an_adjustment_says_what_an_id_is(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "adjust", "invoice 7", "--usd", "1", "--reason", "x", "--config", config]) == 2
    assert "32 hexadecimal digits" in capsys.readouterr().err


ATTEMPT: Final = f"0199f6{0:026x}"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        *((f"{command} nowhere/m", "unknown provider 'nowhere'") for command in ("call", "chat -p x", "validate")),
        ("models info nowhere/m", "unknown provider 'nowhere'"),
        ("serve --provider nowhere --model m", "unknown provider 'nowhere'"),
        ("explain --from ollama --to nowhere/m", "unknown provider 'nowhere'"),
        ("record nowhere", "unknown provider 'nowhere'"),
        *((f"{command} embedded/nope", EMBEDDED) for command in ("call", "chat -p x", "validate")),
        ("models info embedded/nope", "embedded has no model 'nope'; it has: smollm2"),
        ("serve --provider embedded --model nope", EMBEDDED),
        ("explain --from ollama --to embedded/nope", EMBEDDED),
        *((f"{command} nope", "got 'nope'") for command in ("call", "chat -p x", "validate", "models info", "env")),
        *((f"{command} ''", "got ''") for command in ("call", "chat -p x", "validate")),
        ("models --provider ''", "unknown provider ''"),
        ("serve --app nope", "got 'nope'"),
        ("chat -p x --resume nope", "no session 'nope'"),
        *((f"keys {action} nope", "there is no key nope") for action in ("show", "disable", "enable", "rotate")),
        ("budget remove key:nope", "there is none for key:nope"),
        (f"ledger adjust {ATTEMPT} --usd 1 --reason x", "there is no such attempt"),
    ],
)
def test_a_name_that_there_is_not_is_wrong_usage(
    line: str, told: str, config: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    body = b'{"model": "m", "messages": [{"role": "user", "content": "hi"}]}'
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(body)))
    words = shlex.split(line)
    prompt = ["hi"] if words[0] == "call" else []
    assert main([*words, *prompt, "--config", config]) == 2
    assert told in capsys.readouterr().err
