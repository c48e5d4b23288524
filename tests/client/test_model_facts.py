"""Claims and evidence: what servers and the catalogue say, what validation has shown, and what is made of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dragoman
from answering import answering
from dragoman.config import load_config
from dragoman.discovery.model_facts import ModelFacts, check_model, gather, is_of_a_family, pick_default
from dragoman.discovery.query_server import _read_row
from dragoman.proofs import ProbeResult, Proof
from dragoman.providers.catalog import Model
from dragoman.testing import FakeModel
from for_each import for_each

PASSED = ProbeResult("passed", "")
FAILED = ProbeResult("failed", "wrote its call as text")


def proof(target: str, *, works: bool, **more: Any) -> Proof:
    probes = {"toolCall": PASSED if works else FAILED, "result-round-trip": PASSED}
    fields: dict[str, Any] = {"protocol": "ollama-chat", "endpoint": "", "suite": "quick", "suite_version": 1}
    return Proof(target=target, dragoman="0", at=0, probes=probes, **(fields | more))


def facts(
    target: str, tools: bool | None, source: Any = "server", works: bool | None = None, **more: Any
) -> ModelFacts:
    shown = None if works is None else proof(target, works=works)
    return ModelFacts(target, tools=tools, tools_source=source if tools is not None else None, proof=shown, **more)


# ---------------------------------------------------------------- claims


@for_each(
    ("name", "is_one"),
    [
        ("llama3.2", True),
        ("llama3.2:3b", True),
        ("llama3.3:70b-instruct-q4_K_M", True),
        ("meta-llama/Llama-3.3-70B-Instruct", True),
        ("mistral", True),
        ("mistral:7b-instruct", True),
        ("mistral-nemo:12b", True),
        ("firefunction-v2", True),
        ("command-r", True),
        ("command-r-plus:104b", True),
        ("granite3.2:8b", True),
        ("granite3-dense:2b", True),
        ("granite4", True),
        ("granite4.1:tiny-h", True),
        ("granite10:8b", True),
        ("ibm/granite-4.0-h-tiny", True),
        ("llama3", False),
        ("llama3.1:8b", False),
        ("llama3.2-vision:11b", False),
        ("llama3.25", False),
        ("llama2", False),
        ("mistral-openorca", False),
        ("mistrallite", False),
        ("granite-code:8b", False),
        ("granite3-guardian:8b", False),
        ("granite-embedding", False),
        ("my-granite4", False),
        ("commander", False),
        ("", False),
    ],
)
def test_a_name_of_a_family(name: str, is_one: bool) -> None:
    assert is_of_a_family(name) is is_one


@for_each(
    ("told", "listed", "claim"),
    [
        (True, False, (True, "server")),
        (False, True, (False, "server")),  # a negative answer of the server is never overridden
        (False, None, (False, "server")),
        (None, False, (False, "catalogue")),
        (None, True, (True, "catalogue")),
        (None, None, (True, "family")),
    ],
)
def test_whose_claim_counts(told: bool | None, listed: bool | None, claim: tuple[bool, str]) -> None:
    found = gather(
        "ollama/granite4",
        told=Model("ollama", "granite4", tools=told),
        listed=Model("ollama", "granite4", 1_000, tools=listed),
        proof=None,
        is_local=True,
    )
    assert (found.tools, found.tools_source) == claim
    assert (found.context, found.context_source) == (1_000, "catalogue")


def test_what_nobody_knows_is_not_claimed() -> None:
    found = gather("lab/mine", told=None, listed=None, proof=None, is_local=False)
    assert (found.tools, found.tools_source, found.proven, found.is_there) == (None, None, None, None)


def test_where_claim_and_evidence_differ() -> None:
    assert facts("a/b", True, works=False).disagreement == "claims tools; validation has not seen them work"
    assert facts("a/b", False, works=True).disagreement == "claims no tools; validation has seen them work"
    assert facts("a/b", True, works=True).disagreement == facts("a/b", True).disagreement == ""


@for_each(
    ("row", "expected"),
    [
        ({"id": "openai/gpt-x", "context_length": 400_000, "supported_parameters": ["tools", "seed"],
          "architecture": {"input_modalities": ["text", "image", "file"]},
          "top_provider": {"max_completion_tokens": 128_000}},
         ("openai/gpt-x", 400_000, 128_000, ("text", "image", "document"), True)),
        ({"id": "no/tools", "context_length": 8_192, "supported_parameters": ["seed"]},
         ("no/tools", 8_192, None, None, False)),
        ({"id": "vllm-model", "max_model_len": 32_768}, ("vllm-model", 32_768, None, None, None)),
        ({"id": "lm", "max_context_length": 40_960, "loaded_context_length": 4_096, "capabilities": ["tool_use"]},
         ("lm", 4_096, None, None, True)),
        ({"id": "lm-silent", "capabilities": []}, ("lm-silent", None, None, None, None)),
        ({"id": "mistral-x", "max_context_length": 131_072, "capabilities": {"function_calling": False}},
         ("mistral-x", 131_072, None, None, False)),
        ({"id": "groq-x", "context_window": 131_072, "max_completion_tokens": 8_192},
         ("groq-x", 131_072, 8_192, None, None)),
        ({"id": "fire", "supports_tools": True, "context_length": 1}, ("fire", 1, None, None, True)),
        ({"name": "command-x", "features": ["tools", "logprobs"], "context_length": 256_000},
         ("command-x", 256_000, None, None, True)),
        ({"name": "models/gemini-x", "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536},
         ("gemini-x", 1_048_576, 65_536, None, None)),
        ({"id": "odd", "capabilities": [{"a": 1}, None], "supported_parameters": "tools", "max_model_len": "many"},
         ("odd", None, None, None, None)),
        ({"id": 7, "architecture": {"input_modalities": [[]]}}, ("", None, None, (), None)),
    ],
    ids=lambda value: str(value.get("id", value.get("name"))) if isinstance(value, dict) else "",
)  # fmt: skip
def test_extensions_of_model_lists(row: dict[str, Any], expected: tuple[Any, ...]) -> None:
    found = _read_row("lab", row)
    assert (found.id, found.context, found.max_output, found.input_modalities, found.tools) == expected


# ---------------------------------------------------------------- choosing


@for_each(
    ("facts", "picked"),
    [
        ([facts("o/a", True), facts("o/b", True, works=True)], "o/b"),
        ([facts("o/a", None), facts("o/b", False), facts("o/c", True)], "o/c"),
        ([facts("o/a", True, "family"), facts("o/b", True, "catalogue"), facts("o/c", True, "server")], "o/c"),
        ([facts("o/a", True), facts("o/b", True)], "o/a"),
        ([facts("o/a", True, works=False), facts("o/b", True, "family")], "o/b"),
        ([facts("o/a", False, works=True)], "o/a"),
        ([facts("o/a", False), facts("o/b", None), facts("o/c", True, works=False)], None),
        ([], None),
    ],
)
def test_the_default_model(facts: list[ModelFacts], picked: str | None) -> None:
    found = pick_default(facts)
    assert (found and found.target) == picked


HAVE = [
    facts("ollama/granite4:latest", True, is_there=True),
    facts("ollama/tiny:1b", False, is_there=True),
    facts("ollama/odd", None, is_there=True),
    facts("ollama/best", True, works=True, is_there=True),
    facts("zhipu/glm", True, "catalogue"),
]
ABLE = "with tools there are: ollama/best, ollama/granite4:latest"


@for_each(
    ("target", "said"),
    [
        ("ollama/granite4:latest", ""),
        ("ollama/granite4", ""),
        ("ollama/odd", ""),
        ("ollama/tiny:1b", f"ollama/tiny:1b takes no tools, its server says; {ABLE}"),
        ("ollama/none", f"ollama has no model 'none'; {ABLE}"),
        ("zhipu/new", ""),  # no server has said what it has
        ("lab/mine", ""),
    ],
)  # fmt: skip
def test_a_model_that_cannot_be_used_is_told_with_others_that_can(target: str, said: str) -> None:
    assert check_model(HAVE, target) == said


def test_where_the_server_has_none_others_are_named() -> None:
    have = [facts("ollama/tiny:1b", False, is_there=True), facts("zhipu/glm", True, "catalogue")]
    assert check_model(have, "ollama/tiny:1b").endswith("; with tools there is: zhipu/glm")
    assert check_model(have[:1], "ollama/tini:1b") == "ollama has no model 'tini:1b'; nearest: tiny:1b"
    assert check_model(have[:1], "ollama/granite4") == "ollama has no model 'granite4'; it has: tiny:1b"
    assert check_model(have[:1], "ollama/tiny:1b") == "ollama/tiny:1b takes no tools, its server says"


# ---------------------------------------------------------------- asking around

OLLAMA = {
    "/api/tags": {"models": [{"name": "granite4:latest"}, {"name": "llama3.2:3b"}, {"name": "tiny:1b"}]},
    "/api/show": lambda body: {
        "granite4:latest": {"capabilities": ["completion", "tools"], "model_info": {"x.context_length": 131_072}},
        "llama3.2:3b": {"capabilities": ["completion"]},
        "tiny:1b": {},
    }[body["model"]],
}


def test_the_client_tells_of_every_model_it_can_ask(tmp_path: Path) -> None:
    file = tmp_path / "dragoman.toml"
    with answering(OLLAMA) as url, answering({}) as unused:
        names = ("lmstudio", "llamacpp", "vllm", "sglang")
        tables = [f'[providers.{name}]\nbase_url = "{unused}/v1"' for name in names]
        file.write_text("\n".join([f'[providers.ollama]\nbase_url = "{url}"', *tables]))
        config = load_config(file, environ={"ZHIPU_API_KEY": "a key"}, home=tmp_path)

        with dragoman.Client(config) as client:
            found = client.models()
    of = {one.target: one for one in found}
    granite = of["ollama/granite4:latest"]
    assert (granite.tools, granite.tools_source, granite.context, granite.is_there) == (True, "server", 131_072, True)
    assert (of["ollama/llama3.2:3b"].tools, of["ollama/llama3.2:3b"].tools_source) == (False, "server")
    assert of["ollama/tiny:1b"].tools is None
    assert any(target.startswith("zhipu/") for target in of)
    assert not any(target.startswith("anthropic/") for target in of), "no key, nothing to ask"
    picked = pick_default(one for one in found if one.is_local)
    assert picked is not None and picked.target == "ollama/granite4:latest"
    assert check_model(found, "ollama/llama3.2:3b").endswith("with tools there is: ollama/granite4:latest")


def test_what_is_on_this_machine_is_told_by_its_address() -> None:
    with FakeModel("hi").serve() as here:
        lab = {"protocol": "openai-chat", "base_url": f"{here.url}/v1"}
        far = {"base_url": "http://gpu.invalid:11434"}
        with dragoman.Client(providers={"lab": lab, "ollama": far}) as client:
            assert [one.is_local for one in client.models("lab")] == [True]
            assert not any(one.is_local for one in client.models() if one.target.startswith("ollama/"))
        lab["base_url"] = f"{here.url}/v1".replace("127.0.0.1", "0.0.0.0")
        with dragoman.Client(providers={"lab": lab}) as client:
            assert [one.is_local for one in client.models("lab")] == [True]


def test_a_list_that_failed_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """By an error where one provider was asked, else in the log; an empty list says that there is none."""
    with answering({}) as url, answering({"/v1/models": {"data": []}}) as empty:
        lab = {"protocol": "openai-chat", "base_url": f"{url}/v1"}
        bare = {"protocol": "openai-chat", "base_url": f"{empty}/v1"}
        with dragoman.Client(providers={"lab": lab, "bare": bare}) as client:
            with pytest.raises(dragoman.CallFailed, match="lab gives no list of models: ") as caught:
                client.models("lab")
            assert caught.value.status == 404
            assert client.models("bare") == ()
            assert not any(one.target.startswith("lab/") for one in client.models())
    assert [record.name for record in caplog.records if "lab gives no list" in record.message] == ["dragoman.models"]
