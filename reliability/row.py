"""What a row is: a function that measures, and the lines that it gives."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple


class Result(NamedTuple):
    """One line: what was promised, what was seen, whether that is enough."""

    id: str
    goal: str
    measured: str
    passed: bool

    def __str__(self) -> str:
        return f"| {self.id} | {self.goal} | {self.measured} | {'pass' if self.passed else 'MISS'} |"


class Scale(NamedTuple):
    """How much is tried. `quick` is for a look in between: its figures are scaled down and say so."""

    quick: bool

    def pick(self, full: int, quick: int) -> int:
        """The number of tries."""
        return quick if self.quick else full


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that so large a share of the values does not exceed; nan of none."""
    if not values:
        return math.nan
    return sorted(values)[max(0, math.ceil(len(values) * share) - 1)]


def milliseconds(seconds: float) -> str:
    """For the tables."""
    return f"{seconds * 1000:.0f} ms" if seconds >= 0.01 else f"{seconds * 1000:.1f} ms"


def run_alone(words: str | None, measure: Callable[..., Iterable[Result]], sizes: Mapping[str, float]) -> int:
    """A row as a program of its own, in full: its options are the sizes that it takes behind the scale, in order. Gives
    the status to end with."""
    parser = argparse.ArgumentParser(description=words)
    for name, usual in sizes.items():
        parser.add_argument(f"--{name}", type=type(usual), default=usual)
    missed = 0
    for result in measure(Scale(False), *vars(parser.parse_args()).values()):
        print(result, flush=True)
        missed += not result.passed
    return 1 if missed else 0
