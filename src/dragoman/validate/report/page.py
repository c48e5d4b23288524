"""A report as one HTML page that needs nothing else: a matrix of models and probes, each cell opens what was said.

No script and nothing from elsewhere: a cell is a link, and what it leads to is shown by `:target`. All that a server
sent is escaped.
"""

from __future__ import annotations

from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Final

from dragoman import _json
from dragoman.codec.event_lines import event_object
from dragoman.proofs import ProbeResult, Verdict
from dragoman.validate.ask import Asked
from dragoman.validate.probe import load_probes
from dragoman.validate.report.document import Report
from dragoman.validate.report.table import MARK, summary
from dragoman.validate.results import TargetRun, Trial

_LONGEST: Final = 20_000  # characters of a body or of all events that are shown
_WORDS: Final[dict[Verdict, str]] = {
    "passed": "it passed", "failed": "it gave a wrong answer", "unsupported": "it, or its protocol, cannot",
    "not-used": "it did without", "error": "nothing could be told",
}  # fmt: skip


def render_page(report: Report) -> bytes:
    """The report as a page."""
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    when = datetime.fromtimestamp(report.started, UTC).strftime("%Y-%m-%d %H:%M UTC")
    settings = report.settings
    legend = " ".join(f'<span class="{name}">{MARK[name]} {name}</span> {words};' for name, words in _WORDS.items())
    body = (
        f"<h1>Validation of {len(report.runs)} model{'s' * (len(report.runs) != 1)}</h1>\n"
        f"<p>{when}, dragoman {escape(report.dragoman)}, {settings.suite} suite, {settings.trials} trial"
        f"{'s' * (settings.trials != 1)} of each probe, seed {escape(settings.seed)}, {report.seconds:.0f} s.</p>\n"
        f'<p class="legend">{legend} <span class="skipped">· skipped</span>.</p>\n'
        f"{_matrix(report)}{''.join(_target(run, place) for place, run in enumerate(report.runs))}"
        f"{''.join(_cells(run, place) for place, run in enumerate(report.runs))}"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>dragoman: validation, {when}</title>\n<style>\n{style}</style></head>\n<body>\n{body}</body></html>\n"
    ).encode("utf-8", "replace")


def _matrix(report: Report) -> str:
    asked = {name for run in report.runs if run.proof for name in (*run.proof.probes, *run.proof.skipped)}
    probes = [probe for probe in load_probes() if probe.name in asked]
    heads = "".join(
        f'<th scope="col" title="{escape(probe.title)}"><span>{escape(probe.name)}</span></th>' for probe in probes
    )
    rows = []
    for place, run in enumerate(report.runs):
        cells = "".join(_cell(run, place, probe.name) for probe in probes)
        rows.append(f'<tr><th scope="row"><a href="#target-{place}">{escape(run.target)}</a></th>{cells}</tr>\n')
    head = f"<thead><tr><td></td>{heads}</tr></thead>"
    return f'<div class="matrix"><table>{head}<tbody>\n{"".join(rows)}</tbody></table></div>\n'


def _cell(run: TargetRun, place: int, probe: str) -> str:
    result = run.proof.probes.get(probe) if run.proof is not None else None
    if result is None:
        reason = run.proof.skipped.get(probe, "") if run.proof is not None else run.problem
        return f'<td class="skipped" title="{escape(reason)}">·</td>'
    rate = f"<small>{result.passes}/{result.trials}</small>" if result.trials > 1 else ""
    said = escape(f"{result.verdict}: {result.reason}")
    return (
        f'<td class="{result.verdict}"><a href="#cell-{place}-{escape(probe)}" title="{said}">'
        f"{MARK[result.verdict]}{rate}</a></td>"
    )


def _target(run: TargetRun, place: int) -> str:
    proof = run.proof
    head = f'<section id="target-{place}"><h2>{escape(run.target)}</h2>\n'
    if proof is None:
        return f'{head}<p class="error">Not validated: {escape(run.problem)}</p></section>\n'
    told = [
        f"{proof.protocol} at {proof.endpoint or 'a server that dragoman starts'}",
        f"model {proof.digest or proof.version or 'without a digest'}",
        *summary(proof),
        *([f"ended early: {run.problem}"] if run.problem else []),
    ]
    lines = "".join(f"<li>{escape(line)}</li>" for line in told)
    return f"{head}<ul>{lines}</ul></section>\n"


# ---------------------------------------------------------------- what a cell opens


def _cells(run: TargetRun, place: int) -> str:
    results = run.proof.probes if run.proof is not None else {}
    return "".join(_opened(run, place, name, result) for name, result in results.items())


def _opened(run: TargetRun, place: int, name: str, result: ProbeResult) -> str:
    title = next((probe.title for probe in load_probes() if probe.name == name), "")
    trials = [trial for trial in run.trials if trial.probe == name]
    return (
        f'<section class="cell" id="cell-{place}-{escape(name)}"><a class="close" href="#target-{place}">close</a>'
        f"<h3>{escape(run.target)}: {escape(name)}</h3><p>{escape(title)}</p>"
        f'<p class="{result.verdict}">{MARK[result.verdict]} {result.verdict}: {escape(result.reason)}</p>'
        f"{''.join(_trial(trial) for trial in trials)}</section>\n"
    )


def _trial(trial: Trial) -> str:
    heat = "temperature 0" if trial.at_zero else "the model's own temperature"
    way = "" if trial.way == "native" else f", tools asked for as {trial.way}"
    head = f"Trial {trial.number + 1}, {heat}{way}: {trial.grade.verdict}: {trial.grade.reason}"
    turns = "".join(_turn(turn, number) for number, turn in enumerate(trial.turns, 1))
    return f"<h4>{escape(head)}</h4>{turns}"


def _turn(turn: Asked, number: int) -> str:
    events = "\n".join(_json.to_text(event_object(event)) for event in turn.events)
    first = f"{turn.first_event:.2f} s to the first event, " if turn.first_event is not None else ""
    return (
        f"<p>Turn {number}: {escape(turn.method)} {escape(turn.url)} → {turn.status or 'no answer'}, "
        f"{first}{turn.seconds:.2f} s in all</p>"
        + _folded("Request", _pretty(turn.request))
        + _folded("Response, as it came", turn.response.decode("utf-8", "replace"))
        + _folded("Events", events, is_open=True)
    )


def _folded(title: str, text: str, *, is_open: bool = False) -> str:
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}\n… {len(text) - _LONGEST:,} more characters"
    return f"<details{' open' * is_open}><summary>{title}</summary><pre>{escape(text)}</pre></details>"


def _pretty(body: bytes) -> str:
    """A JSON body with its structure shown; any other as it is."""
    value = _json.decode(body)
    return body.decode("utf-8", "replace") if isinstance(value, _json.Malformed) else _indented(value, "\n")


def _indented(value: _json.Json, line: str) -> str:
    inner = line + "  "
    if isinstance(value, dict) and value:
        items = [f"{_json.to_text(key)}: {_indented(item, inner)}" for key, item in value.items()]
        return "{" + inner + f",{inner}".join(items) + line + "}"
    if isinstance(value, list) and value:
        return "[" + inner + f",{inner}".join(_indented(item, inner) for item in value) + line + "]"
    return _json.to_text(value)
