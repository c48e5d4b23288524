"""A report as JUnit XML, for continuous integration: a suite for each target, a test case for each probe."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from dragoman.proofs import ProbeResult, Proof, Verdict
from dragoman.validate.report.document import Report
from dragoman.validate.results import TargetRun

#: How a verdict is said there. What a server need not do is no failure.
_ELEMENT: Final[dict[Verdict, str]] = {
    "failed": "failure", "error": "error", "unsupported": "skipped", "not-used": "skipped",
}  # fmt: skip
#: Characters that XML 1.0 does not have, not even escaped.
_NOT_IN_XML: Final = (*range(9), 11, 12, *range(14, 32), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF)
_NO_XML: Final = dict.fromkeys(_NOT_IN_XML, "�")


def render_junit(report: Report) -> bytes:
    """Render the report as XML."""
    suites = "".join(_suite(run, report.started) for run in report.runs)
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="dragoman validate">\n{suites}</testsuites>\n'
    return text.translate(_NO_XML).encode()


def _suite(run: TargetRun, started: int) -> str:
    name, proof = quoteattr(run.target), run.proof
    if proof is None:
        return (
            f'<testsuite name={name} tests="1" failures="0" errors="1" skipped="0">'
            f'<testcase classname={name} name="validate"><error message={quoteattr(run.problem)}/></testcase>'
            "</testsuite>\n"
        )
    elements = [_ELEMENT.get(result.verdict) for result in proof.probes.values()]
    counts = " ".join(f'{plural}="{elements.count(one)}"' for one, plural in _COUNTED)
    when = datetime.fromtimestamp(started, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    skipped = elements.count("skipped") + len(proof.skipped)
    head = f'<testsuite name={name} timestamp="{when}" tests="{len(elements) + len(proof.skipped)}" {counts}'
    return f'{head} skipped="{skipped}" time="{_seconds(run):.3f}">\n{_cases(run, proof)}</testsuite>\n'


_COUNTED: Final = (("failure", "failures"), ("error", "errors"))


def _cases(run: TargetRun, proof: Proof) -> str:
    cases = [_case(run, name, result) for name, result in proof.probes.items()]
    cases += [
        f"<testcase classname={quoteattr(run.target)} name={quoteattr(name)}>"
        f"<skipped message={quoteattr(reason)}/></testcase>\n"
        for name, reason in proof.skipped.items()
        if name not in proof.probes
    ]
    return "".join(cases)


def _case(run: TargetRun, name: str, result: ProbeResult) -> str:
    element = _ELEMENT.get(result.verdict)
    head = f'<testcase classname={quoteattr(run.target)} name={quoteattr(name)} time="{_seconds(run, name):.3f}">'
    said = f"{result.verdict}: {result.reason}"
    inner = (
        f"<{element} message={quoteattr(said)}/>" if element else f"<system-out>{escape(result.reason)}</system-out>"
    )
    return f"{head}{inner}</testcase>\n"


def _seconds(run: TargetRun, probe: str | None = None) -> float:
    return sum(turn.seconds for trial in run.trials if probe in (None, trial.probe) for turn in trial.turns)
