"""Counters that several threads use at once."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dragoman.ledger.counters.sqlite import SqliteCounters


def test_threads_that_share_counters_take_turns(tmp_path: Path) -> None:
    """One closes the connection that others use; without turns the process ends."""
    counters = SqliteCounters(
        tmp_path / "counters.sqlite", seeds=lambda accounts: {}, adjusted=lambda account: 0, live=set, leasing=set
    )
    until = time.monotonic() + 1

    def use(number: int) -> int:
        calls = 0
        while time.monotonic() < until and calls < 2_000:
            assert counters.totals(["an account"]) == {}
            if number == 0 and calls % 5 == 0:
                counters.close()
            calls += 1
        return calls

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(use, range(4)))
    counters.close()
