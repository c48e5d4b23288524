"""Validation end to end: scripted providers that lie are found out, healthy ones pass, over five protocols."""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from answering import answering
from dragoman.config import Config, load_config
from dragoman.events import Failure
from dragoman.proofs import Verdict, is_clean, is_proven
from dragoman.protocols import PROTOCOLS
from dragoman.types import Part, Request, Text, Thinking
from dragoman.validate.ask import Asker
from dragoman.validate.limits import Budget, Pace
from dragoman.validate.probe import load_probes
from dragoman.validate.results import Settings, TargetRun
from dragoman.validate.runner import Runner
from validate import lies
from validate.scripted_model import KEY, MODEL, Lie, Scripted, scripted_model

#: Every run of the tests may ask other questions: DRAGOMAN_SEED names them.
SEEDS = ["1", os.environ.get("DRAGOMAN_SEED", "2")]
TARGET = f"lab/{MODEL}"


def configured(url: str, folder: Path, *, protocol: str = "openai-chat", more: str = "") -> Config:
    file = folder / "dragoman.toml"
    table = f'[providers.lab]\nprotocol = "{protocol}"\nbase_url = "{url}"\napi_key = "env:LAB_KEY"\n'
    auth = {"anthropic-messages": "x-api-key", "gemini-generate": "x-goog-api-key"}.get(protocol, "bearer")
    file.write_text(f'{table}auth = "{auth}"\n{more}', encoding="utf-8")
    return load_config(file, environ={"LAB_KEY": KEY}, home=folder)


def validated(config: Config, settings: Settings, *, target: str = TARGET) -> TargetRun:
    async def run() -> TargetRun:
        asker = Asker(config, timeout=60)
        try:
            runner = Runner(asker, settings, budget=Budget(None), pace=Pace(per_minute=600_000), version="0")
            return await runner.run(target)
        finally:
            await asker.close()

    return asyncio.run(run())


def verdicts(run: TargetRun) -> dict[str, Verdict]:
    assert run.proof is not None, run.problem
    return {name: result.verdict for name, result in run.proof.probes.items()}


def found(run: TargetRun) -> dict[str, str]:
    """The probes that were not passed, with their reasons."""
    assert run.proof is not None, run.problem
    return {
        name: f"{result.verdict}: {result.reason}"
        for name, result in run.proof.probes.items()
        if result.verdict != "passed"
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_a_healthy_model_passes_everything(seed: str, tmp_path: Path) -> None:
    with scripted_model() as model:
        run = validated(configured(model.url, tmp_path), Settings(suite="full", seed=seed))
    assert run.proof is not None
    assert (found(run), run.proof.skipped, run.problem) == ({}, {}, "")
    assert set(run.proof.probes) == {probe.name for probe in load_probes()}
    assert is_proven(run.proof) and is_clean(run.proof)
    assert run.proof.first_event is not None and run.proof.ways[0] == "native"


#: What a protocol has no words for, in requests (unsupported) and in answers.
UNSAYABLE = {
    "ollama-chat": {"tool-choice-required", "tool-choice-named", "parallel-off", "cache"},
    "openai-responses": {"stop"},
    "gemini-generate": {"parallel-off"},
}


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name != "openai-chat"])
def test_a_healthy_model_passes_over_every_protocol(protocol: str, tmp_path: Path) -> None:
    with scripted_model(protocol) as model:
        run = validated(configured(model.url, tmp_path, protocol=protocol), Settings(suite="full", seed=SEEDS[1]))
    assert run.proof is not None
    reasons = found(run)
    assert set(reasons) == UNSAYABLE.get(protocol, set()), reasons
    assert all(why.startswith("unsupported: ") for name, why in reasons.items() if name != "cache")
    assert is_proven(run.proof)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("lie", "own", "trials"),
    [
        (lies.writes_text, "toolCall", 1),
        (lies.ignores_tool_choice, "tool-choice-none", 1),
        (lies.drops_tools, "tools-reach", 1),
        (lies.gives_wrong_arguments, "toolCall", 1),
        (lies.truncates, "truncation", 1),
        (lies.answers_fourteen, "reasoning", 1),
        (lies.passes_once_in_three, "toolCall", 3),
    ],
)
def test_each_lie_is_found_out_by_its_own_probe(
    lie: Callable[[], Lie], own: str, trials: int, seed: str, tmp_path: Path
) -> None:
    with scripted_model(lie=lie()) as model:
        run = validated(configured(model.url, tmp_path), Settings(suite="full", seed=seed, trials=trials))
    reasons = found(run)
    assert own in reasons
    assert len(reasons) <= 3, reasons


def quick(model: Scripted, folder: Path) -> TargetRun:
    return validated(configured(model.url, folder), Settings(suite="quick", seed=SEEDS[1]))


def test_the_quick_suite_stops_early_for_a_healthy_model(tmp_path: Path) -> None:
    with scripted_model() as model:
        run = quick(model, tmp_path)
    assert run.proof is not None
    assert (len(model.requests), run.proof.requests) == (4, 4)
    assert set(verdicts(run)) == {"toolCall", "result-round-trip", "reasoning"}
    assert is_proven(run.proof)


@pytest.mark.parametrize("lie", [lies.writes_text, lies.drops_tools, lies.gives_wrong_arguments])
def test_the_quick_suite_asks_eight_times_at_most(lie: Callable[[], Lie], tmp_path: Path) -> None:
    with scripted_model(lie=lie()) as model:
        run = quick(model, tmp_path)
    assert len(model.requests) <= 8
    assert not is_proven(run.proof)
    assert verdicts(run)["text"] == "passed"


def test_the_questions_vary_with_the_seed(tmp_path: Path) -> None:
    def asked(seed: str) -> list[str]:
        with scripted_model() as model:
            validated(configured(model.url, tmp_path), Settings(suite="quick", seed=seed))
        return [request.messages[0].text for request in model.requests]

    assert asked("1") == asked("1")
    assert not set(asked("1")) & set(asked("2"))


@pytest.mark.parametrize(
    ("lie", "own"),
    [
        (lies.ignores("stop", ()), "stop"),
        (lies.ignores("max_tokens"), "max-tokens"),
        (lies.ignores("parallel_tools"), "parallel-off"),
        (lies.ignores("reasoning"), "thinking"),
        (lies.forgets_results, "result-round-trip"),
        (lies.loses_line_breaks, "text-in-arguments"),
        (lies.fences_its_json, "structured-output"),
        (lies.calls_for_everything, "no-tool-fits"),
        (lies.sends_text_in_one_piece, "streams"),
    ],
)
def test_smaller_lies_are_found_out_too(lie: Callable[[], Lie], own: str, tmp_path: Path) -> None:
    with scripted_model(lie=lie()) as model:
        run = validated(configured(model.url, tmp_path), Settings(suite="full", seed=SEEDS[1]))
    reasons = found(run)
    assert own in reasons
    assert len(reasons) <= 3, reasons


def test_what_dragoman_mends_passes_and_is_not_clean(tmp_path: Path) -> None:
    with scripted_model(lie=lies.numbers_as_text()) as model:
        run = validated(configured(model.url, tmp_path), Settings(suite="full", seed=SEEDS[1]))
    assert run.proof is not None
    assert (found(run), is_proven(run.proof), is_clean(run.proof)) == ({}, True, False)
    assert "coerced-arguments" in run.proof.deviations


# ---------------------------------------------------------------- faults that are not the model's


def test_a_busy_provider_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.validate.sending._USUAL_WAIT", 0.01)
    left = [Failure("rate", "slow down", 429), Failure("overloaded", "later", 503)]
    with scripted_model(lie=Lie(refuses=lambda request: left.pop() if left else None)) as model:
        run = quick(model, tmp_path)
    assert is_proven(run.proof)
    assert run.proof is not None and run.proof.requests == 6


def test_a_model_that_takes_no_temperature_is_asked_without(tmp_path: Path) -> None:
    def refuses(request: Request) -> Failure | None:
        if request.params.temperature is None:
            return None
        return Failure("bad_request", "Unsupported parameter: 'temperature' is not supported with this model.", 400)

    with scripted_model(lie=Lie(refuses=refuses)) as model:
        run = quick(model, tmp_path)
    assert is_proven(run.proof)
    assert run.proof is not None and run.proof.requests == 5


def test_a_thought_that_was_cut_is_given_more_room(tmp_path: Path) -> None:
    def says(request: Request, parts: list[Part]) -> list[Part]:
        if (request.params.max_tokens or 0) < 1000:
            return [Thinking("Let me see. " * 400, "sealed"), Text("x" * 4000)]
        return [Thinking("Let me see.", "sealed"), *parts]

    with scripted_model(lie=Lie(says=says)) as model:
        run = quick(model, tmp_path)
    assert is_proven(run.proof)
    assert {request.params.max_tokens for request in model.requests} == {300, 2400}


def test_a_server_that_keeps_failing_is_given_up(tmp_path: Path) -> None:
    def refuses(request: Request) -> Failure | None:
        return Failure("internal", "broken", 500) if request.tools else None

    with scripted_model(lie=Lie(refuses=refuses)) as model:
        run = validated(configured(model.url, tmp_path), Settings(suite="full", seed="1"))
    assert run.problem is not None and run.problem.startswith("internal: broken (lab: POST http://127.0.0.1:")
    assert len(model.requests) < 12


def test_an_answer_without_end_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.validate.ask._BODY_LIMIT", 100)
    with scripted_model() as model:
        run = quick(model, tmp_path)
    assert run.proof is not None
    result = run.proof.probes["toolCall"]
    assert result.verdict == "failed"
    assert result.reason is not None
    assert result.reason.startswith("wire: the answer is longer than 100 bytes (lab at http://127.0.0.1:")


DEEP = '{"a":' * 900 + "1" + "}" * 900
CALL = '{"choices":[{"message":{"tool_calls":[{"id":"c","function":{"name":"get_weather","arguments":%s}}]}}]}'


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x00\xff\xfe" * 50,
        b"<html><body>It works!</body></html>",
        b"[]",
        b'{"choices":[]}',
        b'{"choices":[{"message":{"content":null}}],"usage":{"prompt_tokens":"many","completion_tokens":-5}}',
        b'data: {"choices":[{"delta":{"content":"\x1b[2J4"}}]}\n\n',
        (CALL % json.dumps(DEEP)).encode(),
        (CALL % json.dumps('{"city": 1e999, "unit": NaN}')).encode(),
    ],
)
def test_no_server_passes_or_breaks_validation_with_nonsense(body: bytes, tmp_path: Path) -> None:
    with answering({"/v1/chat/completions": (200, body), "/v1/models": (200, body)}) as url:
        run = validated(configured(f"{url}/v1", tmp_path), Settings(suite="full", seed=SEEDS[1]))
    assert run.proof is None or not is_proven(run.proof)
    passed = [name for name, result in (run.proof.probes if run.proof else {}).items() if result.verdict == "passed"]
    assert set(passed) <= {"text", "abort", "tool-choice-none", "tool-choice-required"}
    assert all("\x1b" not in result.reason for result in (run.proof.probes if run.proof else {}).values())
