"""Decide which probe is next, and which are skipped. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dragoman.proofs import ProbeResult, Suite
from dragoman.validate.probe import Probe


def probes_of(suite: Suite, probes: Iterable[Probe]) -> list[Probe]:
    """Return the probes of a suite in the order in which they are asked.

    The quick suite is a ladder: its first rungs are always asked, the others only to find out why the first one failed.
    """
    if suite == "full":
        return list(probes)
    return sorted((probe for probe in probes if probe.quick), key=lambda probe: probe.quick == "after-failure")


def reason_to_skip(
    probe: Probe, *, suite: Suite, results: Mapping[str, ProbeResult], skipped: Mapping[str, str]
) -> str | None:
    """Return in one line why a probe would say nothing now, or None to ask it."""
    if suite == "quick" and probe.quick == "after-failure" and _has_passed("toolCall", results):
        return "not needed: toolCall passed"
    for name in probe.unless_failed:
        if name in results and results[name].verdict == "failed":
            return f"{name} failed"
    for needed in probe.needs:
        if needed in results and not _has_passed(needed, results):
            return f"needs {needed}, which {_ended(results[needed])}"
        if needed in skipped and needed not in results and suite == "full":
            return f"needs {needed}, which was skipped"
    return None


def _has_passed(name: str, results: Mapping[str, ProbeResult]) -> bool:
    return name in results and results[name].verdict == "passed"


def _ended(result: ProbeResult) -> str:
    return {"failed": "failed", "unsupported": "is unsupported", "not-used": "was not used"}.get(
        result.verdict, "could not be asked"
    )
