"""Which model answers where nobody named one that there is, and what a client is told of one that it cannot use."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from answering import answering
from dragoman.client.target_state import TargetStates
from dragoman.config import Config, load_config
from dragoman.gateway.model_names import ModelNames, UnknownModel
from dragoman.proofs import ProbeResult, Proof
from dragoman.providers.catalog import Model
from gateway.running import gateway

TOLD = (
    Model("ollama", "tiny:1b", tools=False),
    Model("ollama", "granite4:latest", tools=True),
    Model("ollama", "qwen3:8b", tools=True),
)
LAB = '[providers.lab]\nprotocol = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\n'
PASSED = {name: ProbeResult("passed", "") for name in ("toolCall", "result-round-trip")}


def config(folder: Path, text: str = "") -> Config:
    file = folder / "dragoman.toml"
    file.write_text(text)
    return load_config(file, environ={}, home=folder)


def names(folder: Path, text: str = "", **options: Any) -> ModelNames:
    found = ModelNames(config(folder, text), **options)
    found.tell("ollama", TOLD)
    return found


def prove(model: Model) -> Proof | None:
    if model.id != "qwen3:8b":
        return None
    return Proof(target=model.target, protocol="ollama-chat", endpoint="", suite="quick", suite_version=1, dragoman="0",
                 at=0, probes=PASSED)  # fmt: skip


def test_a_name_that_nobody_knows_gets_a_model_of_this_machine_that_takes_tools(tmp_path: Path) -> None:
    assert names(tmp_path).chain("claude-sonnet-4-5").targets[0].name == "ollama/granite4:latest"


def test_a_proven_one_comes_first(tmp_path: Path) -> None:
    assert names(tmp_path, proof=prove).chain("gpt-5").targets[0].name == "ollama/qwen3:8b"


@pytest.mark.parametrize(
    ("text", "options"),
    [('[routes.coder]\ntargets = ["ollama/qwen3:8b"]', {}), ("", {"only_routes": True})],
    ids=["routes", "only-routes"],
)
def test_where_names_are_configured_others_are_unknown(text: str, options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UnknownModel):
        names(tmp_path, text, **options).chain("gpt-5")


def test_a_server_without_tools_leaves_the_name_unknown(tmp_path: Path) -> None:
    found = ModelNames(config(tmp_path))
    found.tell("ollama", TOLD[:1])
    with pytest.raises(UnknownModel) as problem:
        found.chain("gpt-5")
    assert problem.value.failure.message == "model 'gpt-5' not found; there are: ollama/tiny:1b, embedded/smollm2"


@pytest.mark.parametrize(
    ("name", "text", "options", "told"),
    [
        ("openai/gpt-5", "", {}, "; openai needs a key: set OPENAI_API_KEY, or api_key under [providers.openai]"),
        ("openai/gpt-5", '[routes.a]\ntargets = ["ollama/b"]', {}, "; openai needs a key: set OPENAI_API_KEY"),
        ("opnai/gpt-5", "", {}, "; there are: "),
        ("openai/gpt-5", "", {"only_routes": True}, ""),
        ("gpt-5", LAB, {}, "; there are: embedded/smollm2, lab/MODEL"),
        ("lab", LAB, {}, "; nearest: lab/MODEL"),
        ("gpt-5", LAB + '[routes.a]\ntargets = ["lab/b"]', {}, "; there are: a, embedded/smollm2, lab/MODEL"),
    ],
)
def test_a_model_whose_provider_has_no_key_is_told_which(
    name: str, text: str, options: dict[str, Any], told: str, tmp_path: Path
) -> None:
    with pytest.raises(UnknownModel) as problem:
        ModelNames(config(tmp_path, text), **options).chain(name)
    message = problem.value.failure.message
    assert message.startswith(f"model '{name}' not found{told}") and ("needs a key" in message) == ("key" in told)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(
    ("status", "words"),
    [(404, "model 'qwen3' not found"), (400, "registry.ollama.ai/library/qwen3 does not support tools")],
)
def test_a_model_that_cannot_be_used_is_told_with_those_that_can(
    status: int, words: str, stream: bool, tmp_path: Path
) -> None:
    with answering({"/api/chat": (status, {"error": words})}) as url:
        text = f'[providers.ollama]\nbase_url = "{url}"\n[models."ollama/granite4"]\n[models."ollama/qwen3"]\n'
        with gateway(tmp_path, config=config(tmp_path, text)) as running:
            running.gateway._names.tell("ollama", TOLD)
            body = json.dumps(
                {"model": "ollama/qwen3", "messages": [{"role": "user", "content": "Hi"}], "stream": stream}
            ).encode()
            seen, _, answer = running.request("POST", "/api/chat", body)
    place = f"(ollama: POST {url}/api/chat answered {status})"
    told = f"{words} {place}; with tools there are: ollama/granite4, ollama/qwen3:8b"
    assert (seen, json.loads(answer)["error"]) == (status, told)


def test_a_proof_of_other_weights_does_not_count(tmp_path: Path) -> None:
    text = f'[routes.r]\ntargets = ["ollama/qwen3:8b"]\n[validate]\nstore = "{tmp_path}/proofs.db"\n'
    found, target_states = names(tmp_path, text), TargetStates(config(tmp_path, text))
    [target] = found.chain("r").targets
    proof = Proof(target=target.name, protocol="ollama-chat", endpoint=target.provider.base_url, suite="quick",
                  suite_version=1, dragoman="0", at=int(time.time()), probes=PASSED, digest="old")  # fmt: skip
    assert target_states.proofs.put(proof)
    assert target_states.proof(target) == proof, "nobody has told which weights there are"
    found.tell("ollama", [Model("ollama", "qwen3:8b", digest="new")])
    assert target_states.proof(found.chain("r").targets[0]) is None
