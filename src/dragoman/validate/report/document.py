"""A report as one JSON document."""

from __future__ import annotations

from typing import Any, Final, final

import msgspec

from dragoman import _json
from dragoman.events.event_lines import event_object
from dragoman.validate.ask import Asked
from dragoman.validate.probe import SUITE_VERSION
from dragoman.validate.results import Settings, TargetRun, Trial

FORMAT: Final = "dragoman-validation"


@final
class Report(msgspec.Struct, frozen=True):
    """One run over one or more targets. `started` in Unix seconds."""

    dragoman: str
    settings: Settings
    started: int
    seconds: float
    runs: tuple[TargetRun, ...]


def render_document(report: Report) -> bytes:
    """Render everything that is known of a run, the wire included."""
    return _json.encode(
        {
            "format": FORMAT,
            "version": 1,
            "suite_version": SUITE_VERSION,
            "dragoman": report.dragoman,
            "started": report.started,
            "seconds": round(report.seconds, 3),
            "settings": msgspec.structs.asdict(report.settings),
            "targets": [_target(run) for run in report.runs],
        }
    )


def _target(run: TargetRun) -> dict[str, Any]:
    return {
        "target": run.target,
        "problem": run.problem or None,
        "claims": run.claims,
        "proof": run.proof,
        "trials": [_trial(trial) for trial in run.trials],
    }


def _trial(trial: Trial) -> dict[str, Any]:
    return {
        "probe": trial.probe,
        "number": trial.number,
        "temperature": 0 if trial.at_zero else None,
        "way": trial.way,
        "verdict": trial.grade.verdict,
        "reason": trial.grade.reason,
        "turns": [_turn(turn) for turn in trial.turns],
    }


def _turn(turn: Asked) -> dict[str, Any]:
    return {
        "method": turn.method,
        "url": turn.url,
        "request": turn.request.decode("utf-8", "replace"),
        "status": turn.status,
        "response": turn.response.decode("utf-8", "replace"),
        "events": [event_object(event) for event in turn.events],
        "prompt_tokens_estimated": turn.estimate,
        "first_event_seconds": turn.first_event,
        "seconds": round(turn.seconds, 3),
    }
