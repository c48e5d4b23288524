"""Made-up texts of 1 to 64 KiB for every reader of `places.py`: none takes over 20 × the median time of a byte.

    python -m reliability.fuzz_time --texts 100000 --seconds 60

Processor time; what looks slow is timed three times and the best counts. The exit status is 1 when one was slow.
"""

from __future__ import annotations

import argparse
import sys
import time

import reliability  # noqa: F401 - finds the tests' modules
from places import PLACES
from test_linear_time import MOST_TIMES, slow_texts


def main() -> int:
    """A line a reader: texts that were tried, and the slow ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=100_000, help="for each reader")
    parser.add_argument("--seconds", type=float, default=60, help="for each reader, at most")
    parser.add_argument("--readers", default="", help="only those with this in their name")
    options = parser.parse_args()
    tried = slow = 0
    for place in PLACES:
        if options.readers in place:
            began = time.process_time()
            found, count = slow_texts(place, options.texts, seconds=options.seconds)
            tried, slow = tried + count, slow + len(found)
            print(f"{place}: {count:,} texts, {time.process_time() - began:.0f} s, {len(found)} slow", flush=True)
            for times, text in found:
                print(f"    {times:.0f} × the median: {text!r}", flush=True)
    print(f"{tried:,} texts, {slow} over {MOST_TIMES} × the median time of a byte")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
