"""Made-up texts of 1 to 64 KiB for every reader of `places.py`: none takes over 20 × the median time of a byte.

    python -m reliability.fuzz_time --texts 100000 --seconds 60 --from 0

Processor time; what looks slow is timed three times and the best counts. A text is made from its reader's name and its
number, so a run that stopped goes on with `--from`. The quick readers come first. The exit status is 1 when
one was slow.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time

import reliability  # noqa: F401 - finds the tests' modules
from places import PLACES
from test_linear_time import MOST_TIMES, TOKENS, slow_texts, try_texts

#: Texts by which readers are put in order.
_FIRST = 20
#: Slow texts of a reader that are shown: those that grow most.
_SHOWN = 5
#: A power of growth that is no longer noise around 1.
_LINEAR = 1.3


def main() -> int:
    """A line a reader: texts that were tried, and the slow ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=100_000, help="for each reader")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the number of the first text")
    parser.add_argument("--seconds", type=float, default=60, help="of processor time for each reader, at most")
    parser.add_argument("--readers", default="", help="only those with this in their name")
    options = parser.parse_args()
    places = sorted((place for place in PLACES if options.readers in place), key=_cost)
    tried = slow = growing = 0
    for place in places:
        began = time.process_time()
        gc.collect()
        made = try_texts(place, range(options.first, options.first + options.texts), seconds=options.seconds)
        found = slow_texts(place, made)
        tried, slow = tried + len(made), slow + len(found)
        growing += sum(each.growth > _LINEAR for each in found)
        print(f"{place}: {len(made):,} texts, {sum(each.size for each in made):,} characters, "
              f"{time.process_time() - began:.0f} s, {len(found)} slow", flush=True)  # fmt: skip
        for each in sorted(found, key=lambda each: -each.growth)[:_SHOWN]:
            print(f"    {each}", flush=True)
    print(
        f"{tried:,} texts of {len(places)} readers, {slow} over {MOST_TIMES} × the median time of a byte; "
        f"{growing} of these grow by a power over {_LINEAR}"
    )
    return 1 if slow else 0


def _cost(place: str) -> float:
    """Seconds that a few texts take; the first fills caches."""
    PLACES[place](TOKENS[0])
    began = time.process_time()
    try_texts(place, range(_FIRST))
    return time.process_time() - began


if __name__ == "__main__":
    sys.exit(main())
