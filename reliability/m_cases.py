"""M: what has tests of its own, run as they stand: budget, watchdog, reload, edge, keys, look-ups, store."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

from reliability import PROJECT
from reliability.row import Result, Scale

#: Goal → the tests that measure it.
CASES = {
    "past the budget of memory: 503 with Retry-After in the client's form": "tests/gateway/server/test_body_memory.py",
    "every bound is refused by its setting's name": "tests/test_bounds.py",
    "a worker whose loop stands still is replaced, no sleeping one": "tests/gateway/process/test_watchdog.py",
    "no file ends the watching or opens the gateway": "tests/gateway/process/test_reload.py",
    "trailers, Host and Upgrade as RFC 9110 and 9112 have them": (
        "tests/gateway/server/test_connection.py -k upgrade or trailer or host or origin or connect"
    ),
    "wrong keys, and only they, wait; weak ones are refused": "tests/gateway/server/test_client_addresses.py",
    "one slow name stops no other": "tests/client/test_dns_lookups.py",
    "what was not stored says store: false; a damaged page costs its own rows": "tests/gateway/storage/test_sqlite.py",
    "what is large is read apart, in order": "tests/gateway/test_threaded_reading.py",
}


def measure(scale: Scale) -> Iterator[Result]:
    """Each file's cases: how many passed."""
    for goal, chosen in CASES.items():
        path, _, names = chosen.partition(" -k ")
        command = [sys.executable, "-m", "pytest", "-q", "-o", "addopts=", "-p", "no:cacheprovider", path]
        run = subprocess.run([*command, *(["-k", names] if names else [])], cwd=PROJECT, capture_output=True, text=True)
        counts = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|error)", run.stdout)}
        count = counts.get("passed", 0)
        measured = f"{count} cases pass, {counts.get('failed', 0) + counts.get('error', 0)} fail"
        yield Result("M", goal, measured, run.returncode == 0 and count > 0)
