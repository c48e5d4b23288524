"""`python reliability/holding.py FILE serve …`: dragoman, with a thread that sees how long the interpreter is held.

It wakes each half millisecond. What passed in between counts as held as far as the process used its processors (so the
system's stops of a thread that holds the interpreter do not count) and as this thread was not itself kept off them.
What lets go of the interpreter and works on counts all the same, so the figure is an upper bound. FILE gets the longest
so far, in seconds, whenever it grows; who writes 0 to it begins anew.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

from dragoman.cli.main import main

_STEP = 0.0005


def watch(file: Path) -> None:
    """See how long the interpreter is held, for ever."""
    delays = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY)
    longest, seen = 0.0, file.stat().st_mtime_ns
    wall, used, kept_off = time.monotonic(), time.process_time(), 0
    while True:
        time.sleep(_STEP)
        now, now_used, now_kept_off = time.monotonic(), time.process_time(), int(os.pread(delays, 100, 0).split()[1])
        if now - wall > 4 * _STEP:
            held = min(now - wall - _STEP - (now_kept_off - kept_off) / 1e9, now_used - used)
            if file.stat().st_mtime_ns != seen:
                longest = 0.0
            if held > longest:
                longest = held
                file.write_text(f"{held:.6f}", encoding="ascii")
            seen = file.stat().st_mtime_ns
        wall, used, kept_off = now, now_used, now_kept_off


if __name__ == "__main__":
    where = Path(sys.argv.pop(1))
    threading.Thread(target=watch, args=(where,), daemon=True).start()
    sys.exit(main())
