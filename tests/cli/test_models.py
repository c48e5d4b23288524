"""`dragoman models`: the catalogue's models, and those that a server on this machine tells of."""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from answering import answering
from dragoman.cli.main import main
from dragoman.proofs import ProbeResult, Proof, ProofStore

OLLAMA: dict[str, Any] = {
    "/api/tags": {"models": [{"name": "granite4:latest"}, {"name": "tiny:1b", "model": "tiny:1b"}]},
    "/api/show": lambda body: {
        "granite4:latest": {
            "capabilities": ["completion", "tools", "vision"],
            "model_info": {"general.architecture": "granite", "granite.context_length": 131072},
        },
        "tiny:1b": {"capabilities": ["completion", "thinking"], "model_info": {"llama.context_length": 2048}},
    }[body["model"]],
}
LLAMACPP: dict[str, Any] = {
    "/v1/models": {"object": "list", "data": [{"id": "mine.gguf", "meta": {"n_ctx_train": 32768}}]},
    "/props": {"default_generation_settings": {"n_ctx": 4096}, "chat_template_caps": {"supports_tool_calls": False}},
}
LMSTUDIO: dict[str, Any] = {
    "/v1/models": {"data": [{"id": "qwen3"}, {"id": "old"}]},
    "/api/v0/models": {"data": [{"id": "qwen3", "max_context_length": 40960, "capabilities": ["tool_use"]}]},
}


@pytest.fixture
def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes a configuration in which only the named servers of this machine can be reached."""
    file = tmp_path / "dragoman.toml"
    monkeypatch.setenv("DRAGOMAN_CONFIG", str(file))

    def write(**urls: str) -> None:
        with answering({}) as unused:  # a port where nothing listens once the block has ended
            pass
        names = ("ollama", "lmstudio", "llamacpp", "vllm", "sglang")
        tables = [f'[providers.{name}]\nbase_url = "{urls.get(name, unused)}"\n' for name in names]
        tables.append('[validate]\nstore = "proofs.db"\n')
        file.write_text("\n".join(tables))

    return write


def rows(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_ollamas_models_come_with_context_and_claims(configure: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with answering(OLLAMA) as url:
        configure(ollama=url)
        assert main(["models", "list", "--provider", "ollama", "--json"]) == 0
    granite, tiny = rows(capsys)
    assert (granite["target"], granite["context"], granite["tools"]) == ("ollama/granite4:latest", 131072, True)
    assert granite["input_modalities"] == ["text", "image"]
    assert (tiny["target"], tiny["tools"], tiny["thinking"], tiny["proven"]) == ("ollama/tiny:1b", False, True, None)


def test_a_llama_server_says_its_true_context_and_whether_its_template_has_tools(
    configure: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(LLAMACPP) as url:
        configure(llamacpp=f"{url}/v1")
        assert main(["models", "--provider", "llamacpp", "--json"]) == 0
    (row,) = rows(capsys)
    assert (row["target"], row["context"], row["tools"]) == ("llamacpp/mine.gguf", 4096, False)


def test_a_server_that_tells_of_some_models_only(configure: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with answering(LMSTUDIO) as url:
        configure(lmstudio=f"{url}/v1")
        assert main(["models", "--provider", "lmstudio", "--json"]) == 0
    known, unknown = rows(capsys)
    assert (known["id"], known["context"], known["tools"]) == ("qwen3", 40960, True)
    assert (unknown["id"], unknown["context"], unknown["tools"]) == ("old", None, None)


def test_a_server_of_the_users_own_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "dragoman.toml"
    monkeypatch.setenv("DRAGOMAN_CONFIG", str(file))
    with answering({"/v1/models": {"data": [{"id": "mine"}]}}) as url:
        file.write_text(f'[providers.lab]\nprotocol = "openai-chat"\nbase_url = "{url}/v1"\n')
        assert main(["models", "--provider", "lab", "--json"]) == 0
        assert [row["target"] for row in rows(capsys)] == ["lab/mine"]
        assert main(["models", "info", "lab/mine"]) == 0
        assert "lab/mine" in capsys.readouterr().out
        assert main(["models", "info", "lab/other"]) == 2


def test_what_can_be_asked_now_and_all(
    configure: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    with answering(OLLAMA) as url:
        configure(ollama=url)
        assert main(["models"]) == 0
        out = capsys.readouterr()
        lines = out.out.splitlines()
        assert lines[0].split() == ["target", "context", "most", "output", "price", "claims", "proven"]
        assert [line.split()[0] for line in lines[1:]] == [
            "ollama/granite4:latest",
            "ollama/tiny:1b",
            "embedded/smollm2",
        ]
        assert lines[1].split()[1:4] == ["131,072", "?", "–"]
        assert "3 models that you can ask now" in out.err and "dragoman models --all" in out.err
        monkeypatch.setenv("ANTHROPIC_API_KEY", "a key that is not sent")
        assert main(["models"]) == 0
        names = {line.split()[0].partition("/")[0] for line in capsys.readouterr().out.splitlines()[1:]}
        assert names == {"ollama", "embedded", "anthropic"}
        assert main(["models", "--all"]) == 0
        out = capsys.readouterr()
        assert any(line.startswith("openai/") for line in out.out.splitlines())
        assert f"{len(out.out.splitlines()) - 1} models" in out.err


@pytest.mark.parametrize(
    ("words", "targets"),
    [
        (["ollama"], ["ollama/granite4:latest", "ollama/tiny:1b"]),
        (["list", "ollama"], ["ollama/granite4:latest", "ollama/tiny:1b"]),
        (["granite"], ["ollama/granite4:latest"]),
        (["GRANITE"], ["ollama/granite4:latest"]),
        (["--provider", "ollama", "tiny"], ["ollama/tiny:1b"]),
        (["ollama/tiny"], ["ollama/tiny:1b"]),
    ],
)
def test_a_word_picks(configure: Any, capsys: pytest.CaptureFixture[str], words: list[str], targets: list[str]) -> None:
    with answering(OLLAMA) as url:
        configure(ollama=url)
        assert main(["models", *words, "--json"]) == 0
    assert [row["target"] for row in rows(capsys)] == targets


def test_a_word_that_picks_nothing_says_so(configure: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with answering(OLLAMA) as url:
        configure(ollama=url)
        assert main(["models", "granit5"]) == 1
        out = capsys.readouterr()
    *silent, last = out.err.splitlines()
    assert out.out == "" and all(": no connection to http://" in line for line in silent)
    assert "has 'granit5' in its name; nearest: granite4:latest; " in last and "dragoman models --all granit5" in last


def test_a_catalogued_provider_that_is_named_is_listed_without_a_key(
    configure: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    configure()
    assert main(["models", "anthropic", "--json"]) == 0
    prices = {row["target"]: row["price"] for row in rows(capsys)}
    assert prices["anthropic/claude-sonnet-4-5"] == {"input": "3", "output": "15"}
    assert main(["models", "info", "anthropic/claude-sonnet-4-5"]) == 0
    assert "price        3 / 15" in capsys.readouterr().out


def test_the_catalogue_needs_no_extra(
    configure: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    configure()
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    monkeypatch.setitem(sys.modules, "httptools", None)
    for module in ("dragoman.http.transport", "dragoman.discovery.query_server"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    assert main(["models", "--all"]) == 0
    out = capsys.readouterr()
    assert "anthropic/" in out.out
    assert 'pip install "dragoman[proxy]", to ask the servers on this machine too' in out.err
    assert main(["models", "--provider", "ollama"]) == 1
    assert capsys.readouterr().err.endswith('pip install "dragoman[proxy]"\n')


def test_claims_stand_beside_proofs_and_info_says_where_they_disagree(
    configure: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now = int(time.time())
    store = ProofStore(tmp_path / "proofs.db", clock=time.time)
    wrote_text = ProbeResult("not-used", "answered without calling the tool: “I would”")
    with answering(OLLAMA) as url:
        configure(ollama=url)
        proof = Proof(
            target="ollama/granite4", protocol="ollama-chat", endpoint=url, suite="quick", suite_version=1,
            dragoman="0.1.0", at=now, probes={"toolCall": wrote_text}, ways=("prompted",), deviations={"missing-id": 2},
        )  # fmt: skip
        store.put(proof, msgspec.structs.replace(proof, target="ollama/tiny:1b", at=now - 40 * 86_400))
        assert main(["models", "--provider", "ollama"]) == 0
        granite, tiny = capsys.readouterr().out.splitlines()[1:]
        assert "no tools, 20" in granite and granite.endswith(" !")
        assert tiny.endswith("–")  # it has expired
        assert main(["models", "info", "ollama/granite4"]) == 0
        told = capsys.readouterr().out
        assert "0 of 1 probes passed" in told and "missing-id ×2" in told
        assert "claims tools, but toolCall is not-used: answered without calling" in told
        assert main(["models", "info", "ollama/granite4", "--json"]) == 0
        (row,) = rows(capsys)
        assert (row["proven"]["tools"], row["proven"]["ways"]) == (False, ["prompted"])
        configure(ollama=url.replace("127.0.0.1", "localhost"))  # another endpoint
        assert main(["models", "info", "ollama/granite4", "--json"]) == 0
        assert rows(capsys)[0]["proven"] is None


@pytest.mark.parametrize("words", [["--provider", "ollama"], ["info", "ollama/granite4"]], ids=lambda words: words[0])
def test_a_server_that_is_not_there_is_said_with_what_to_do(
    words: list[str], configure: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    configure()
    assert main(["models", *words]) == 1
    out = capsys.readouterr()
    assert out.out == ""
    assert out.err.startswith("dragoman: ollama: no connection to ")
    assert out.err.endswith("; start it: ollama serve, or set base_url under [providers.ollama]\n")


def test_each_configured_server_that_fails_is_said_beside_the_models_of_others(
    configure: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dragoman.discovery.query_server.LOCAL_SECONDS", 0.3)
    is_over = threading.Event()
    hanging: dict[str, Any] = {"/v1/models": lambda body: is_over.wait(20)}
    slow: dict[str, Any] = {"/api/tags": OLLAMA["/api/tags"], "/api/show": lambda body: is_over.wait(20)}
    with answering(slow) as ollama, answering(hanging) as far, answering({}, key="another") as closed:
        configure(ollama=ollama)
        with (tmp_path / "dragoman.toml").open("a") as file:
            for name, url in (("far", far), ("shut", closed)):
                file.write(f'[providers.{name}]\nprotocol = "openai-chat"\nbase_url = "{url}/v1"\n')
        assert main(["models", "ollama/", "--json"]) == 0
        is_over.set()
    out = capsys.readouterr()
    assert [json.loads(line)["target"] for line in out.out.splitlines()] == ["ollama/granite4:latest", "ollama/tiny:1b"]
    told = {line.split()[0].rstrip(":"): line for line in out.err.splitlines()}
    assert told.keys() == {"lmstudio", "llamacpp", "vllm", "sglang", "far", "shut"}
    assert f"no answer from {far}/v1 in 0.3 s" in told["far"]
    assert f"at {closed}/v1: invalid key" in told["shut"] and "api_key under [providers.shut]" in told["shut"]
    assert "no connection to http://127.0.0.1" in told["vllm"]


def test_a_server_that_refuses_the_key_is_said_with_where_the_key_stands(
    configure: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(OLLAMA, key="another") as url:
        configure(ollama=url)
        assert main(["models", "info", "ollama/granite4"]) == 1
    assert "check OLLAMA_API_KEY, or api_key under [providers.ollama]" in capsys.readouterr().err


def test_info_tells_of_a_catalogue_model_and_of_a_local_one(configure: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with answering(OLLAMA) as url:
        configure(ollama=url)
        assert main(["models", "info", "ollama/granite4"]) == 0
        local = capsys.readouterr().out
        assert main(["models", "info", "ollama/nothing"]) == 2
        assert "it has: granite4:latest, tiny:1b" in capsys.readouterr().err
    assert "context      131,072" in local and "tools        yes" in local and "proven       –" in local
    configure()
    assert main(["models", "info", "embedded/smollm2"]) == 0
    assert "address      starts when it is asked" in capsys.readouterr().out
    assert main(["models", "info", "anthropic/claude-sonnet-4-5", "--json"]) == 0
    (row,) = rows(capsys)
    assert row["target"] == "anthropic/claude-sonnet-4-5" and row["context"] >= 200_000


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["models", "info"], "expected a target"),
        (["models", "info", "claude"], "expected a target provider/model, got 'claude'"),
        (["models", "info", "antropic/x"], "unknown provider 'antropic'; nearest: anthropic"),
        (["models", "info", "anthropic/claude-sonet-4-5"], "nearest: claude-sonnet-4-5"),
        (["models", "ollama", "x"], "expected one word, got 'x' too"),
        (["models", "--provider", "olama"], "unknown provider 'olama'"),
    ],
)
def test_wrong_names_are_wrong_usage(
    configure: Any, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    configure()
    assert main(words) == 2
    assert said in capsys.readouterr().err
