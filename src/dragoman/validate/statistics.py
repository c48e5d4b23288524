"""Combine several trials of one probe into a result with a confidence interval. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from dragoman.proofs import ProbeResult, Verdict
from dragoman.validate.grade import Grade


def sum_up(grades: Sequence[Grade], *, at_zero: Iterable[bool]) -> ProbeResult:
    """Return the result of all trials of a probe: passed only if every one passed.

    Args:
        grades: one for each trial.
        at_zero: whether it was asked at temperature 0.
    """
    passed = [one.verdict == "passed" for one in grades]
    zero = [hit for hit, is_zero in zip(passed, at_zero, strict=True) if is_zero]
    counts = (sum(passed), len(passed), sum(zero), len(zero))
    worst = next((one for one in grades if one.verdict != "passed"), grades[0])
    if len(grades) == 1 or all(passed):
        return ProbeResult(worst.verdict, worst.reason, *counts)
    is_alike = not any(passed) and len({one.verdict for one in grades}) == 1
    if is_alike and worst.verdict != "failed":
        return ProbeResult(worst.verdict, f"each time: {worst.reason}", *counts)
    low, high = wilson(sum(passed), len(passed))
    rate = f"passed {sum(passed)} of {len(passed)} ({low:.0%} to {high:.0%}): {worst.reason}"
    return ProbeResult(worst.verdict if is_alike else _mixed(grades), rate, *counts)


def _mixed(grades: Sequence[Grade]) -> Verdict:
    found = {one.verdict for one in grades}
    return "error" if "error" in found and "failed" not in found else "failed"


def wilson(passes: int, trials: int) -> tuple[float, float]:
    """Return the interval that contains the true pass rate with 95 % confidence (Wilson's score interval)."""
    if not trials:
        return 0.0, 1.0
    z, rate = 1.959964, passes / trials
    centre = rate + z * z / (2 * trials)
    spread = z * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)
