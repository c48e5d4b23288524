"""The details that a mark of the page opens: each trial's answer in words, with folded request, response and events.

Everything that a server sent is escaped.
"""

from __future__ import annotations

from contextlib import suppress
from html import escape
from typing import Final

from dragoman import _json
from dragoman.events import Failure, Reply
from dragoman.events.event_lines import event_object
from dragoman.proofs import ProbeResult
from dragoman.validate.ask import Asked
from dragoman.validate.probe import label_of, load_probes
from dragoman.validate.report.table import MARK
from dragoman.validate.results import TargetRun, Trial

_LONGEST: Final = 20_000  # characters of a body or of all events that are shown
_LONGEST_ANSWER: Final = 2_000
#: Characters before a line, two a level; what is deeper stands on one line.
_DEEPEST: Final = 64


def render_cells(run: TargetRun, place: int) -> str:
    """Render a section for each probe of a target that was asked. `place` is the target's number."""
    results = run.proof.probes if run.proof is not None else {}
    return "".join(_opened(run, place, name, result) for name, result in results.items())


def _opened(run: TargetRun, place: int, name: str, result: ProbeResult) -> str:
    title = next((probe.title for probe in load_probes() if probe.name == name), "")
    trials = [trial for trial in run.trials if trial.probe == name]
    return (
        f'<section class="cell" id="cell-{place}-{escape(name)}"><a class="close" href="#probes">back to the probes</a>'
        f"<h3>{escape(run.target)}: {escape(label_of(name))}</h3>"
        f"<p>A model that passes {escape(title)}.</p>"
        f'<p class="{result.verdict}"><strong>{MARK[result.verdict]} {result.verdict}</strong>: '
        f"{escape(result.reason)}</p>{''.join(_trial(trial) for trial in trials)}</section>\n"
    )


def _trial(trial: Trial) -> str:
    heat = "temperature 0" if trial.at_zero else "the model's own temperature"
    way = "" if trial.way == "native" else f", tools asked for the {trial.way} way"
    head = f"Trial {trial.number + 1}, {heat}{way}: {trial.grade.verdict}: {trial.grade.reason}"
    turns = "".join(_turn(turn, number) for number, turn in enumerate(trial.turns, 1))
    return f"<h4>{escape(head)}</h4>{turns}"


def _turn(turn: Asked, number: int) -> str:
    events = "\n".join(_json.to_text(event_object(event)) for event in turn.events)
    first = f"{turn.first_event:.2f} s to the first event, " if turn.first_event is not None else ""
    return (
        f'<p class="turn">Turn {number}: {escape(turn.method)} {escape(turn.url)} → {turn.status or "no answer"}, '
        f"{first}{turn.seconds:.2f} s in all</p>"
        f'<pre class="answer">{escape(_answer(turn.reply))}</pre>'
        + _folded("Request", _pretty(turn.request))
        + _folded("Response, as it came", turn.response.decode("utf-8", "replace"))
        + _folded(f"Events ({len(turn.events)})", events)
    )


def _answer(reply: Reply) -> str:
    """Render the answer as a person reads it."""
    said = [reply.text] if reply.text.strip() else []
    said += [f"calls {call.name} with {call.arguments}" for call in reply.tool_calls]
    said += [f"a call of {call.name or 'an unnamed tool'} failed: {call.message}" for call in reply.failed_calls]
    if isinstance(reply.error, Failure):
        said.append(f"{reply.error.kind}: {reply.error.message}")
    text = "\n".join(said) or ("(thinking only)" if reply.thinking else "(nothing)")
    return text if len(text) <= _LONGEST_ANSWER else f"{text[:_LONGEST_ANSWER]} …"


def _folded(title: str, text: str) -> str:
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}\n… {len(text) - _LONGEST:,} more characters"
    return f"<details><summary>{title}</summary><pre>{escape(text)}</pre></details>"


def _pretty(body: bytes) -> str:
    """Return a JSON body indented, as deep as people read; any other body as it is."""
    value = _json.decode(body)
    if not isinstance(value, _json.Malformed):
        with suppress(RecursionError):
            return _indented(value, "\n")
    return body.decode("utf-8", "replace")


def _indented(value: _json.Json, line: str) -> str:
    inner = line + "  "
    if len(line) > _DEEPEST:
        return _json.to_text(value)
    if isinstance(value, dict) and value:
        items = [f"{_json.to_text(key)}: {_indented(item, inner)}" for key, item in value.items()]
        return "{" + inner + f",{inner}".join(items) + line + "}"
    if isinstance(value, list) and value:
        return "[" + inner + f",{inner}".join(_indented(item, inner) for item in value) + line + "]"
    return _json.to_text(value)
