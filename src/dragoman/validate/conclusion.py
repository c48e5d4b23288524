"""Conclude a validation: a verdict in one sentence, the reasons, and advice. Pure: rules over the results.

A conclusion claims only what a probe has shown. What no probe has shown is called unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias, final

import msgspec

from dragoman.events import Failure, Reply
from dragoman.proofs import ProbeResult, Proof, disagreements
from dragoman.validate.probe import label_of, with_labels
from dragoman.validate.results import TargetRun, Trial

#: `limited`: another way of asking for tools works; `unsteady`: right in some trials.
Standing: TypeAlias = Literal["usable", "limited", "unsteady", "unusable", "unknown"]

#: What decides, in the order in which it is told.
DECIDING: Final = ("text", "tools-reach", "toolCall", "result-round-trip", "tool-choice-required")

#: By the kind of failure that a reason begins with.
_REMEDIES: Final = {
    "connection": "Start the server, or correct the provider's base_url.",
    "auth": "Check the provider's API key.",
    "permission": "Check what the provider's API key may do.",
    "quota": "Look at your account with the provider.",
    "rate": "Wait a little, or ask slower with --per-minute.",
    "overloaded": "Wait until the server has less to do.",
    "timeout": "Give the model more time with --timeout.",
    "not_found": "Check the model's name: dragoman models lists what there is.",
}


@final
class Conclusion(msgspec.Struct, frozen=True):
    """A verdict on a whole target. `why` and `advice` are sentences, the most serious first."""

    standing: Standing
    sentence: str
    why: tuple[str, ...]
    advice: tuple[str, ...]


def conclude(run: TargetRun) -> Conclusion:
    """Return the verdict on one target's results."""
    proof = run.proof
    if proof is None:
        problem = run.problem or "nothing was asked"
        again = f"Then validate it again: dragoman validate {run.target}"
        return Conclusion(
            "unknown", "Unknown as an agent: it could not be validated.", (problem,), (_remedy(problem), again)
        )
    standing, sentence = _judge(run, proof)
    return Conclusion(standing, sentence, tuple(_why(run, proof, standing)), tuple(_advice(run, proof, standing)))


def _judge(run: TargetRun, proof: Proof) -> tuple[Standing, str]:
    called = proof.probes.get("toolCall")
    if called is None or called.verdict == "error":
        return "unknown", "Unknown as an agent: whether it calls tools was not shown."
    if called.verdict == "passed":
        return _judge_results(run, proof)
    ways = _other_ways(proof)
    if ways:
        word = "reliable" if called.passes else "usable"
        said = f"{_call_fault(run, called)}; asked the {ways[0]} way, it calls the tool"
        return "limited", f"Not {word} as an agent with native tools: {said}."
    if called.passes:
        rate = f"{called.passes} of {called.trials} trials"
        return "unsteady", f"Not reliable as an agent: it called the tool rightly in {rate}."
    text = proof.probes.get("text")
    if text is not None and text.verdict == "failed" and not text.passes:
        return "unusable", "Not usable as an agent: it fails without tools, too."
    return "unusable", f"Not usable as an agent: {_call_fault(run, called)}."


def _judge_results(run: TargetRun, proof: Proof) -> tuple[Standing, str]:
    """Return the verdict on a target that calls the tool as asked."""
    returned = proof.probes.get("result-round-trip")
    if returned is None or returned.verdict == "error":
        unknown = "whether it answers from a tool's result was not shown"
        return "unknown", f"Unknown as an agent: it calls the tool as asked, but {unknown}."
    if returned.verdict == "passed":
        bad = sum(result.verdict == "failed" for result in proof.probes.values())
        but = f", but {bad} other probe{'s' * (bad != 1)} failed" if bad else ""
        return "usable", f"Usable as an agent: it calls the tool as asked and answers from its result{but}."
    if returned.passes:
        rate = f"{returned.passes} of {returned.trials} trials"
        return "unsteady", f"Not reliable as an agent: it called the tool and answered from its result in {rate}."
    return "unusable", f"Not usable as an agent: it calls the tool as asked, but {_result_fault(run)}."


def _call_fault(run: TargetRun, called: ProbeResult) -> str:
    """Describe what went wrong with the first call, from its answers."""
    kinds = {_kind(trial.turns[-1].reply) for trial in _missed(run, "toolCall")}
    kind = kinds.pop() if len(kinds) == 1 else ""
    if called.verdict == "unsupported":
        return "it refuses a request that offers tools" if kind == "failure" else "tools cannot be offered to it"
    if called.verdict == "not-used":
        return "it answers in prose instead of calling the tool" if kind == "prose" else "it does not call the tool"
    if called.passes:
        return f"it called the tool rightly in {called.passes} of {called.trials} trials"
    told = {"failure": "its answer to a request with tools failed", "call": "its call of the tool is wrong"}
    return told.get(kind, "it does not make the call that was asked for")


def _result_fault(run: TargetRun) -> str:
    """Describe what went wrong with a tool's result, from its answers."""
    missed = _missed(run, "result-round-trip")
    depths = {len(trial.turns) for trial in missed}
    kinds = {_kind(trial.turns[-1].reply) for trial in missed}
    if depths == {1}:
        return "did not when it was asked again"
    if depths == {2} and kinds == {"failure"}:
        return "the request with the tool's result failed"
    if depths == {2}:
        return "does not answer from the tool's result"
    return "did not come through the round trip of a tool's result"


def _missed(run: TargetRun, probe: str) -> list[Trial]:
    """Return the native trials of a probe that were asked and not passed."""
    return [
        trial
        for trial in run.trials
        if trial.probe == probe and trial.way == "native" and trial.turns and trial.grade.verdict != "passed"
    ]


def _kind(reply: Reply) -> str:
    if isinstance(reply.error, Failure):
        return "failure"
    if reply.tool_calls or reply.failed_calls:
        return "call"
    return "prose" if reply.text.strip() else "silence"


def _other_ways(proof: Proof) -> Sequence[str]:
    return [way for way in proof.ways if way != "native"]


# ---------------------------------------------------------------- why


def _why(run: TargetRun, proof: Proof, standing: Standing) -> Iterator[str]:
    for name in DECIDING:
        result, is_core = proof.probes.get(name), name in ("toolCall", "result-round-trip")
        if result is not None:
            if is_core or standing != "usable" or result.verdict != "passed":
                yield f"{label_of(name)} {result.verdict}: {result.reason}"
        elif is_core:
            reason = proof.skipped.get(name, "")
            yield f"{label_of(name)} was not asked" + (f": {with_labels(reason)}" if reason != run.problem else ".")
    tried = {
        trial.way: trial.grade.verdict for trial in run.trials if trial.probe == "toolCall" and trial.way != "native"
    }
    for way, verdict in tried.items():
        if verdict == "passed":
            yield f"Asked the {way} way, it called the tool as asked."
        elif verdict != "error" and "native" not in proof.ways:
            yield f"Asked the {way} way, it did not call the tool as asked."
    others = {name: result for name, result in proof.probes.items() if name not in DECIDING}
    for verdict, words in (("failed", "Failed too"), ("error", "Unknown, because it could not be asked")):
        names = [label_of(name) for name, result in others.items() if result.verdict == verdict]
        if names:
            yield f"{words}: {', '.join(names)}."
    if run.claims is not None:
        for line in disagreements(proof, tools=run.claims.tools, thinking=run.claims.thinking):
            claim, colon, reason = line.partition(":")
            yield f"It {with_labels(claim)}{colon}{reason}"
    if run.problem:
        yield f"The run ended early: {run.problem}"
    if proof.suite == "quick":
        yield "The quick suite leaves most unknown, parallel calls and long prompts among it."


# ---------------------------------------------------------------- what to do


def _advice(run: TargetRun, proof: Proof, standing: Standing) -> Iterator[str]:
    called, again = proof.probes.get("toolCall"), f"dragoman validate {run.target}"
    if standing == "unknown":
        judged = called if called is not None and called.verdict == "error" else proof.probes.get("result-round-trip")
        yield _remedy(judged.reason if judged is not None else run.problem)
        yield f"Then validate it again: {again}"
    elif standing == "usable":
        if run.problem:
            yield f"Validate it again: {again}. The results of this run are not kept."
        elif proof.suite == "quick" or called is None or called.trials == 1:
            yield f"See how far that goes: {again} --full-suite --trials 3"
        else:
            yield "Use it: a route with only_validated = true takes it."
    elif standing == "limited":
        way = _other_ways(proof)[0]
        if run.problem:
            yield f"Validate it again: {again}. The results of this run are not kept."
        yield f'Set tools = "auto" in [models."{run.target}"]: by its proof, dragoman then asks the {way} way.'
        yield "Try a whole task before you rely on it: this way was asked for a call, not for what follows its result."
    else:
        yield from _advice_against(proof)


def _advice_against(proof: Proof) -> Iterator[str]:
    """Yield advice for a target that no way of asking makes usable."""
    called, forced = proof.probes["toolCall"], proof.probes.get("tool-choice-required")
    unsteady = called if called.verdict != "passed" else proof.probes["result-round-trip"]
    if called.verdict == "unsupported":
        yield "Turn tools on in its server: vLLM needs --enable-auto-tool-choice, Ollama a template with tools."
    if called.verdict == "not-used" and forced is not None and forced.verdict == "passed":
        yield "It calls a tool when it must: tool_choice = required gets calls of it."
    reached = proof.probes.get("tools-reach")
    if reached is not None and reached.verdict == "failed":
        yield "See why tools-reach failed: the server may not show the model its tools."
    if unsteady.passes and unsteady.passes_at_zero == unsteady.trials_at_zero > 0:
        yield "Ask it at temperature 0: there it was right each time."
    yield "Choose another model for an agent."


def _remedy(problem: str) -> str:
    """Return what to do about a failure, by its kind."""
    found = [(problem.find(f"{kind}:"), kind) for kind in _REMEDIES if f"{kind}:" in problem]
    return _REMEDIES[min(found)[1]] if found else "Fix what stopped the validation."
