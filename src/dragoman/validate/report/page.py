"""Render a report as one self-contained HTML page: the verdict, the models side by side, and a mark for each probe that
opens its exchange.

It has no script and loads nothing: a mark is a link, whose target is shown by `:target`. Everything that a server sent
is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Final

from dragoman.proofs import Proof, Verdict, wire_deviations
from dragoman.validate.conclusion import Conclusion, conclude
from dragoman.validate.probe import Probe, label_of, load_probes, with_labels
from dragoman.validate.report.document import Report
from dragoman.validate.report.opened_cells import render_cells
from dragoman.validate.report.table import MARK
from dragoman.validate.results import TargetRun

_WORDS: Final[dict[Verdict, str]] = {
    "passed": "it was right each time", "failed": "it gave a wrong answer",
    "unsupported": "it, or its protocol, cannot", "not-used": "it did without", "error": "nothing could be told",
}  # fmt: skip


def render_page(report: Report) -> bytes:
    """Render the report as a page."""
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    when = datetime.fromtimestamp(report.started, UTC).strftime("%Y-%m-%d %H:%M UTC")
    conclusions = [conclude(run) for run in report.runs]
    level = "h1" if len(report.runs) == 1 else "h2"
    targets = "".join(_target(run, conclusions[place], place, level) for place, run in enumerate(report.runs))
    probes = _legend() + (_single(report.runs[0]) if len(report.runs) == 1 else _matrix(report.runs))
    if len(report.runs) == 1:
        body = f"{targets}{probes}"
    else:
        body = f"{_headline(conclusions)}{_comparison(report.runs, conclusions)}{probes}{targets}"
    settings = report.settings
    how = (
        f"{when}, dragoman {escape(report.dragoman)}, {settings.suite} suite, {settings.trials} trial"
        f"{'s' * (settings.trials != 1)} of each probe, seed {escape(settings.seed)}, {report.seconds:.0f} s."
    )
    cells = "".join(render_cells(run, place) for place, run in enumerate(report.runs))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>dragoman: validation, {when}</title>\n<style>\n{style}</style></head>\n<body>\n"
        f"{body}{cells}<footer>{how}</footer>\n</body></html>\n"
    ).encode("utf-8", "replace")


def _headline(conclusions: Sequence[Conclusion]) -> str:
    usable = sum(one.standing == "usable" for one in conclusions)
    unknown = sum(one.standing == "unknown" for one in conclusions)
    rest = f"; {unknown} unknown" if unknown else ""
    return f"<h1>{usable} of {len(conclusions)} models usable as an agent{rest}</h1>\n"


# ---------------------------------------------------------------- one target


def _target(run: TargetRun, conclusion: Conclusion, place: int, level: str) -> str:
    """Render the verdict on a target, the reasons, the advice, and its figures."""
    why = "".join(f"<li>{escape(line)}</li>" for line in conclusion.why)
    advice = "".join(f"<li>{escape(line)}</li>" for line in conclusion.advice)
    facts = "".join(
        f"<div><dt>{name}</dt><dd>{escape(value)}</dd></div>" for name, value in _facts(run).items() if value
    )
    return (
        f'<section class="target {conclusion.standing}" id="target-{place}"><p class="name">{escape(run.target)}</p>'
        f"<{level}>{escape(conclusion.sentence)}</{level}>\n"
        f"<h3>Why</h3><ul>{why}</ul>\n<h3>What to do</h3><ul>{advice}</ul>\n"
        f"<dl>{facts}</dl></section>\n"
    )


def _facts(run: TargetRun) -> dict[str, str]:
    """Return what is known of a target beside its probes; "" is unknown."""
    proof = run.proof
    if proof is None:
        return {}
    deviations = ", ".join(f"{code} ×{count}" for code, count in wire_deviations(proof).items())
    return {
        **_figures(proof),
        "ways of calling tools that worked": ", ".join(proof.ways) or "none",
        "deviations": deviations or "none",
        "asked": f"{proof.protocol} at {proof.endpoint or 'a server that dragoman starts'}",
        "model": proof.digest or proof.version or "without a digest",
    }


def _figures(proof: Proof) -> dict[str, str]:
    """Return the figures that people compare; "" is unknown."""
    trials, passes = (sum(getattr(one, name) for one in proof.probes.values()) for name in ("trials", "passes"))
    return {
        "trials passed": f"{passes} of {trials}",
        "first event": f"{proof.first_event:.2f} s" if proof.first_event is not None else "",
        "speed": f"{proof.tokens_per_second:,.0f} tokens/s" if proof.tokens_per_second is not None else "",
        "cost": f"${proof.cost.usd:.4f}" if proof.cost is not None else "",
        "requests": str(proof.requests),
    }


# ---------------------------------------------------------------- several beside each other


def _comparison(runs: Sequence[TargetRun], conclusions: Sequence[Conclusion]) -> str:
    figures = [_figures(run.proof) if run.proof is not None else {} for run in runs]
    names = list(dict.fromkeys(name for one in figures for name, value in one.items() if value))
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("model", "verdict", *names))
    rows = "".join(
        f'<tr><th scope="row"><a href="#target-{place}">{escape(run.target)}</a></th>'
        f'<td class="{conclusions[place].standing}">{escape(conclusions[place].sentence)}</td>'
        + "".join(f'<td data-name="{name}">{escape(figures[place].get(name) or "unknown")}</td>' for name in names)
        + "</tr>\n"
        for place, run in enumerate(runs)
    )
    return f'<table class="comparison"><thead><tr>{heads}</tr></thead><tbody>\n{rows}</tbody></table>\n'


def _legend() -> str:
    marks = " ".join(
        f'<span class="key"><span class="{name}">{MARK[name]} {name}</span>: {words}</span>'
        for name, words in _WORDS.items()
    )
    marks += ' <span class="key"><span class="skipped">· skipped</span>: it was not asked</span>'
    head = '<h2 id="probes">Probes</h2><p>Open a mark to see what was asked and answered.</p>'
    return f'{head}\n<p class="legend">{marks}</p>\n'


def _asked(runs: Sequence[TargetRun]) -> list[Probe]:
    """Return the probes that were asked of at least one target, or skipped."""
    names = {name for run in runs if run.proof for name in (*run.proof.probes, *run.proof.skipped)}
    return [probe for probe in load_probes() if probe.name in names]


def _matrix(runs: Sequence[TargetRun]) -> str:
    heads = "".join(
        f'<th scope="col"><a href="#target-{place}"><span>{escape(run.target)}</span></a></th>'
        for place, run in enumerate(runs)
    )
    rows = "".join(
        f'<tr><th scope="row" title="{escape(probe.title)}">{escape(label_of(probe.name))}</th>'
        f"{''.join(_cell(run, place, probe.name) for place, run in enumerate(runs))}</tr>\n"
        for probe in _asked(runs)
    )
    return f'<div class="matrix"><table><thead><tr><td></td>{heads}</tr></thead><tbody>\n{rows}</tbody></table></div>\n'


def _cell(run: TargetRun, place: int, probe: str) -> str:
    """Render a probe's mark, which opens its exchange."""
    result = run.proof.probes.get(probe) if run.proof is not None else None
    if result is None:
        reason = run.proof.skipped.get(probe, "") if run.proof is not None else run.problem
        return f'<td class="skipped" title="{escape(with_labels(reason))}">·</td>'
    rate = f" {result.passes}/{result.trials}" if result.trials > 1 else ""
    said = escape(f"{result.verdict}: {result.reason}")
    return (
        f'<td><a class="mark {result.verdict}" href="#cell-{place}-{escape(probe)}" title="{said}">'
        f"{MARK[result.verdict]}{rate}</a></td>"
    )


# ---------------------------------------------------------------- one target's probes


def _single(run: TargetRun) -> str:
    """Render the probes of one target, each with its result and its time."""
    taken: dict[str, float] = {}
    for trial in run.trials:
        taken[trial.probe] = taken.get(trial.probe, 0.0) + sum(turn.seconds for turn in trial.turns)
    longest = max(taken.values(), default=0.0)
    rows = "".join(
        f'<tr>{_cell(run, 0, probe.name)}<th scope="row">{escape(label_of(probe.name))}'
        f"<small>{escape(probe.title)}</small></th><td>{escape(_said(run, probe.name))}</td>"
        f"<td>{_time(taken.get(probe.name), longest)}</td></tr>\n"
        for probe in _asked([run])
    )
    return f'<table class="probes"><tbody>\n{rows}</tbody></table>\n' if rows else "<p>None was asked.</p>\n"


def _said(run: TargetRun, probe: str) -> str:
    assert run.proof is not None  # else none was asked
    result = run.proof.probes.get(probe)
    if result is None:
        return f"skipped: {with_labels(run.proof.skipped.get(probe, ''))}"
    return f"{result.verdict}: {result.reason}"


def _time(seconds: float | None, longest: float) -> str:
    if seconds is None:
        return ""
    share = round(100 * seconds / longest) if longest else 0
    return f'<span class="time">{seconds:.2f} s<span class="bar" style="width:{max(share, 1)}%"></span></span>'
