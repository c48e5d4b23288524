"""What somebody who knows the documents alone tries first on the command line, and what they are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.cli.main import main


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


def test_an_embedded_model_that_is_not_known_is_told_which_is(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", "embedded/nope", "hi", "--config", config]) == 1
    assert "unknown embedded model 'nope': it is smollm2, or the path of a GGUF file" in capsys.readouterr().err
