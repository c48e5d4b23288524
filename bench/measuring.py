"""How figures are taken and told. All times are CPU seconds of one process; both sides of a ratio take turns."""

import gc
import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

REPEATS = 15
#: One sample lasts at least this long, so that the clock's grain and a single collection do not count.
SAMPLE_SECONDS = 0.01


class Row(NamedTuple):
    """One line of the table. `target` is a bound on `measured`: at most, or at least when `at_least` is set."""

    goal: str
    what: str
    target: float | None
    measured: float
    unit: str = "×"
    at_least: bool = False
    note: str = ""

    def verdict(self) -> str:
        if self.target is None:
            return "–"
        is_ok = self.measured >= self.target if self.at_least else self.measured <= self.target
        return "ok" if is_ok else "NOT ok"


def fastest(*variants: Callable[[], object], repeats: int = REPEATS) -> list[float]:
    """CPU seconds of one run of each variant: the least of samples that take turns, since neighbours only add."""
    times = [_runs_per_sample(variant) for variant in variants]
    samples: list[list[float]] = [[] for _ in variants]
    for _ in range(repeats):
        for variant, runs, taken in zip(variants, times, samples, strict=True):
            gc.collect()
            before = time.process_time()
            for _ in range(runs):
                variant()
            taken.append((time.process_time() - before) / runs)
    return [min(taken) for taken in samples]


def _runs_per_sample(variant: Callable[[], object]) -> int:
    before = time.process_time()
    variant()
    once = time.process_time() - before
    return max(1, math.ceil(SAMPLE_SECONDS / max(once, 1e-6)))


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """Growth between the smallest and the largest size: 1 is linear, 2 quadratic."""
    return math.log(seconds[-1] / seconds[0]) / math.log(sizes[-1] / sizes[0])


def print_header() -> None:
    print("| goal | what | target | measured | |\n|---|---|--:|--:|---|", flush=True)


def print_row(row: Row) -> None:
    sign = "≥" if row.at_least else "≤"
    target = "" if row.target is None else f"{sign} {row.target:g} {row.unit}"
    note = f" ({row.note})" if row.note else ""
    print(f"| {row.goal} | {row.what}{note} | {target} | {row.measured:.3g} {row.unit} | {row.verdict()} |", flush=True)
