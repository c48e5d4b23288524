"""Made-up texts of 1 to 64 KiB for every reader of `places.py`: which take over 20 × the median time of a byte, why.

    python -m reliability.fuzz_time --texts 100000 --seconds 60 --from 0 --part 1/2

Processor time, once for each text; what looks slow is timed three times and the best counts. Then texts of its kind
that are 4 and 16 times as long tell whether it is at fault: it grows by more than its length, or takes over 4 µs a
byte. The others are read where most texts of their reader are refused at their first characters.
A text is made from its reader's name and its number, so a run that stopped goes on with `--from`. The quick readers
come first, with `--dearest-first` the dear ones; `--part 1/2` takes each second one; `--round 5000` gives each reader
so many texts in turn, so that a run that is ended has tried all; `--budget 3600` ends the run after so many seconds of
processor, between two readers. `--plan` tries few texts of each reader and says how long all take.
A run that begins with the first text writes what it found into `bench/FUZZ.md`, by the reader's name, after each round.
The exit status is 1 when one was at fault.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import math
import statistics
import sys
import time
from collections.abc import Sequence
from datetime import date
from subprocess import run

import reliability  # noqa: F401 - finds the tests' modules
from places import PLACES
from reliability.fuzz_record import RECORD, FuzzRow, keep_row
from test_linear_time import MOST_TIMES, TOKENS, Made, Slow, numbered_text, slow_texts, try_texts

#: Texts by which readers are put in order.
_FIRST = 20
#: Texts at fault of a reader that are shown: those that grow most.
_SHOWN = 5


def main() -> int:
    """A line a reader: texts that were tried, and the slow ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=100_000, help="for each reader")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the number of the first text")
    parser.add_argument("--seconds", type=float, default=60, help="of processor time for each reader, at most")
    parser.add_argument("--readers", default="", help="only those with this in their name")
    parser.add_argument("--round", type=int, default=0, help="texts of a reader before the next one has its turn")
    parser.add_argument("--part", default="1/1", help="2/3: the second of each three readers")
    parser.add_argument("--dearest-first", action="store_true", help="begin with the readers that take longest a byte")
    parser.add_argument("--budget", type=float, default=math.inf, help="seconds of processor for all readers")
    parser.add_argument("--plan", action="store_true", help="only say how long so many texts would take")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    costs = {
        place: _cost(place)
        for place in sorted(place for place in PLACES if options.readers in place)[part - 1 :: parts]
    }
    places = sorted(costs, key=costs.__getitem__, reverse=options.dearest_first)
    if options.plan:
        print(_plan(costs, options.texts))
        return 0
    commit = run(["git", "rev-parse", "--short=8", "HEAD"], cwd=RECORD.parent, capture_output=True, text=True).stdout
    rows: dict[str, FuzzRow] = {}
    gc.collect()
    gc.freeze()  # what was imported is no work of a text
    size = options.round or options.texts
    last = options.first + options.texts
    for first, place in itertools.product(range(options.first, last, size), places):
        if time.process_time() > options.budget:
            print(f"the budget of {options.budget:.0f} s is used up: not tried from {place} {first:,} on")
            break
        found = _try(place, range(first, min(first + size, last)), options.seconds, commit.strip())
        rows[place] = rows[place] + found if place in rows else found
        if options.first == 0:
            keep_row(rows[place])
    tried, slow, faults = (sum(getattr(row, name) for row in rows.values()) for name in ("texts", "slow", "fault"))
    print(
        f"{tried:,} texts of {len(places)} readers, {slow} over {MOST_TIMES} × the median time of a byte; "
        f"{faults} of these grow by more than their length or are dear"
    )
    return 1 if faults else 0


def _try(place: str, numbers: range, seconds: float, commit: str) -> FuzzRow:
    """What these texts tell of the reader, and a line of it."""
    began = time.process_time()
    made = try_texts(place, numbers, seconds=seconds)
    found = slow_texts(place, made)
    wrong = [each for each in found if each.is_at_fault]
    shares = [each.share * 1e9 for each in made]
    print(f"{place}: {len(made):,} texts, {sum(each.size for each in made):,} characters, "
          f"{time.process_time() - began:.0f} s, {statistics.median(shares):.0f} ns a byte, "
          f"at most {max(shares):.0f}; {len(found)} slow, {len(wrong)} at fault", flush=True)  # fmt: skip
    for each in sorted(wrong, key=lambda each: -each.growth)[:_SHOWN]:
        print(f"    {each}", flush=True)
    return _row(place, commit, made, found)


def _row(place: str, commit: str, made: Sequence[Made], found: Sequence[Slow]) -> FuzzRow:
    """The reader's row in the record."""
    usual = statistics.median(each.share for each in made)
    worst = max((each.times for each in found), default=min(MOST_TIMES, max(each.share for each in made) / usual))
    characters, faults = sum(each.size for each in made), sum(each.is_at_fault for each in found)
    return FuzzRow(
        place,
        date.today().isoformat(),
        commit,
        len(made),
        characters,
        round(usual * 1e9),
        round(worst, 1),
        len(found),
        faults,
    )


def _cost(place: str) -> float:
    """Seconds that a few texts take, with making them; the first fills caches."""
    PLACES[place](TOKENS[0])
    began = time.process_time()
    try_texts(place, range(_FIRST))
    return time.process_time() - began


def _plan(costs: dict[str, float], texts: int) -> str:
    """How long so many texts of every reader take, as they are made and in other sizes, by what a few took."""
    seconds = sum(costs.values()) / _FIRST * texts
    size = statistics.mean(len(numbered_text(place, number)) for place in costs for number in range(_FIRST))
    lines = [
        f"{texts:,} texts of {len(costs)} readers: {seconds / 3600:.1f} h of processor, {size / 1024:.1f} KiB each"
    ]
    for how, mean in (("every order of size as often", 63 / math.log(64)), ("every size as often", 32.5)):
        hours = seconds / 3600 * mean * 1024 / size
        lines.append(f"with {how} ({mean:.1f} KiB each): {hours:.0f} h, as far as the time grows with the bytes")
    dear = sorted(costs, key=costs.__getitem__)[-5:]
    lines.append("dearest: " + ", ".join(f"{place} {costs[place] / _FIRST * 1e3:.1f} ms a text" for place in dear))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
