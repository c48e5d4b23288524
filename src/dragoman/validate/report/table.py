"""Render a target's results for a terminal: the verdict, then one line for each probe, with a bar for its pass rate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from textwrap import wrap
from typing import Final, Literal, TypeAlias

from dragoman.proofs import ProbeResult, Proof, Verdict, is_clean, is_proven, wire_deviations
from dragoman.validate.conclusion import Standing, conclude
from dragoman.validate.probe import label_of, with_labels
from dragoman.validate.results import TargetRun
from dragoman.validate.statistics import wilson

_BAR: Final = 10  # characters
_NARROW: Final = 64  # columns: below it there is no bar
_LEAST: Final = 20  # columns: a narrower terminal breaks the lines by itself
_REASON_LINES: Final = 3
MARK: Final[dict[Verdict, str]] = {"passed": "✓", "failed": "✗", "unsupported": "–", "not-used": "○", "error": "!"}
Colour: TypeAlias = Literal["bold", "dim", "red", "green", "yellow"]
COLOUR: Final[dict[Verdict, Colour]] = {
    "passed": "green", "failed": "red", "unsupported": "dim", "not-used": "yellow", "error": "red",
}  # fmt: skip

STANDING_COLOUR: Final[dict[Standing, Colour]] = {
    "usable": "green", "limited": "yellow", "unsteady": "yellow", "unusable": "red", "unknown": "yellow",
}  # fmt: skip

#: Colours a text.
Paint: TypeAlias = Callable[[Colour, str], str]


def render_target(run: TargetRun, *, paint: Paint, width: int = 120) -> str:
    """Render the results of one target for a terminal of `width` columns.

    Reasons may contain a model's words: the caller removes control characters.
    """
    proof, width = run.proof, max(width, _LEAST)
    if proof is None:
        return "".join(f"{line}\n" for line in _concluded(run, paint, width))
    asked = "1 request" if proof.requests == 1 else f"{proof.requests} requests"
    lines = [*_concluded(run, paint, width), paint("dim", f"  {proof.protocol}, {proof.suite} suite, {asked}")]
    names = max(len(label_of(name)) for name in (*proof.probes, *proof.skipped))
    for name, result in proof.probes.items():
        lines += _probe(label_of(name).ljust(names), result, paint, width)
    lines += [paint("dim", line) for line in _skipped(proof, names, width)]
    lines += [each for line in summary(proof) for each in _wrapped(line, "  ", width)]
    return "\n".join(lines) + "\n"


def _skipped(proof: Proof, names: int, width: int) -> Iterator[str]:
    """Yield a line for each skipped probe; those with one reason share it."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in proof.skipped.items():
        if name not in proof.probes:
            by_reason.setdefault(with_labels(reason), []).append(label_of(name))
    for reason, labels in by_reason.items():
        head = labels[0].ljust(names) if len(labels) == 1 else f"{len(labels)} probes".ljust(names)
        yield from wrap(f"  · {head}  skipped: {reason}", width, subsequent_indent=" " * 6)
        if len(labels) > 1:
            yield from _wrapped(", ".join(labels), " " * 6, width)


def _concluded(run: TargetRun, paint: Paint, width: int) -> Iterator[str]:
    """Yield the verdict, the reasons and the advice, no line wider than the terminal."""
    conclusion = conclude(run)
    yield paint("bold", run.target)
    yield from (
        paint(STANDING_COLOUR[conclusion.standing], line) for line in _wrapped(conclusion.sentence, "  ", width)
    )
    for word, sentences in (("why", conclusion.why), ("do", conclusion.advice)):
        for place, sentence in enumerate(sentences):
            yield from _wrapped(sentence, f"  {word if not place else '':<4} ", width)


def _wrapped(text: str, head: str, width: int) -> list[str]:
    return wrap(text, width, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False)


def _probe(name: str, result: ProbeResult, paint: Paint, width: int) -> list[str]:
    share = result.passes / max(result.trials, 1)
    bar = "█" * round(share * _BAR) + "░" * (_BAR - round(share * _BAR)) + " " if width >= _NARROW else ""
    mark = MARK[result.verdict]
    head = f"  {mark} {name}  {bar}{result.passes}/{result.trials}  "
    reason = " ".join(f"{'' if result.verdict == 'passed' else f'{result.verdict}: '}{result.reason}".split())
    first, *more = wrap(head + reason, width, subsequent_indent=" " * 6, max_lines=_REASON_LINES, placeholder="…")
    return [first.replace(mark, paint(COLOUR[result.verdict], mark), 1), *more]


def summary(proof: Proof) -> list[str]:
    """Return the results of the probes in a few lines."""
    trials, passes = (sum(getattr(one, name) for one in proof.probes.values()) for name in ("trials", "passes"))
    low, high = wilson(passes, trials)
    deviations = ", ".join(f"{code} ×{count}" for code, count in wire_deviations(proof).items())
    figures = [
        f"first event {proof.first_event:.2f} s" if proof.first_event is not None else "",
        f"{proof.tokens_per_second:,.0f} tokens/s" if proof.tokens_per_second is not None else "",
        f"${proof.cost.usd:.4f}" if proof.cost is not None else "",
    ]
    said = "; ".join(filter(None, figures)) or "no figures"
    return [
        _verdict(proof),
        f"{passes} of {trials} trials passed ({low:.0%} to {high:.0%}); {said}",
        f"deviations: {deviations or 'none'}",
    ]


def _verdict(proof: Proof) -> str:
    """Describe whether tools can be called, and how."""
    tools = "proven" if is_proven(proof) else "not proven"
    stream = "clean" if is_clean(proof) else "not yet clean"
    ways = (
        f"Ways of calling tools that worked: {', '.join(proof.ways)}" if proof.ways else "No way of calling them worked"
    )
    return f"Tool calling: {tools}. Stream: {stream}. {ways}."
