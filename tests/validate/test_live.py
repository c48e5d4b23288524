"""Validation of real servers on this machine: the embedded model, and one that writes noise. The honest result."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman import embedded
from dragoman.cli.main import main
from dragoman.proofs import Proof, ProofStore, is_clean, is_proven

TINY = Path(__file__).parent.parent / "data" / "tiny-random.gguf"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProofStore:
    monkeypatch.setenv("DRAGOMAN_CONFIG", str(tmp_path / "dragoman.toml"))
    (tmp_path / "dragoman.toml").write_text('[validate]\nstore = "proofs.db"\n', encoding="utf-8")
    return ProofStore(tmp_path / "proofs.db", clock=time.time)


@pytest.fixture(scope="module")
def tiny() -> Iterator[embedded.EmbeddedServer]:
    with embedded.start(TINY) as running:
        yield running


def proof_of(store: ProofStore, target: str) -> Proof:
    proof = store.get(target)
    assert proof is not None
    return proof


def test_the_embedded_model_fails_auto_and_calls_when_it_must(
    store: ProofStore, capsys: pytest.CaptureFixture[str]
) -> None:
    """135 million parameters: it answers, it calls when a call is forced, it does not by itself."""
    assert main(["validate", "embedded/smollm2", "--seed", "1"]) == 1
    assert "embedded/smollm2: its tools are not proven" in capsys.readouterr().err
    proof = proof_of(store, "embedded/smollm2")
    assert proof.digest == f"sha256:{embedded.SMOLLM2.sha256}"
    assert proof.probes["toolCall"].verdict in ("not-used", "failed")
    assert proof.probes["tool-choice-required"].verdict == "passed"
    assert proof.probes["text"].verdict == "passed"
    assert "result-round-trip" in proof.skipped and proof.requests <= 8
    assert not is_proven(proof) and not is_clean(proof)
    assert proof.first_event is not None and proof.tokens_per_second is not None
    assert main(["models", "info", "embedded/smollm2"]) == 0
    assert "claims tools, but toolCall is" in capsys.readouterr().out


def test_noise_proves_nothing(store: ProofStore, tiny: embedded.EmbeddedServer, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(tiny.api_key, encoding="utf-8")
    (tmp_path / "dragoman.toml").write_text(
        f'[providers.noise]\nprotocol = "openai-chat"\nbase_url = "{tiny.url}/v1"\napi_key = "file:key"\nlocal = true\n'
        'dialect = { force_call_by_prefill = true }\n[validate]\nstore = "proofs.db"\n',
        encoding="utf-8",
    )
    assert main(["validate", f"noise/{tiny.model}", "--full-suite", "--seed", "1"]) == 1
    proof = proof_of(store, f"noise/{tiny.model}")
    passed = {name for name, result in proof.probes.items() if result.verdict == "passed"}
    assert not is_proven(proof)
    assert passed.isdisjoint({"toolCall", "reasoning", "structured-output", "long-context"})
    assert proof.digest is not None and "parameters" in proof.digest
    # What the server does, and not its model, is found out all the same.
    assert proof.probes["bad-key"].verdict == "passed"
    assert proof.probes["overflow"].verdict == "passed"
    assert proof.probes["unknown-model"].verdict == "not-used"
