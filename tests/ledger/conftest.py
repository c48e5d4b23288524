"""One PostgreSQL and one Valkey for all tests of a process, on ports of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from reliability.engine_valkey import MISSING as NO_VALKEY
from reliability.engines import MISSING
from reliability.process import Gateway

from ledger.counting_engines import CountingEngines
from ledger.engines import Engines
from warm_programs import Popen

#: What needs the server itself; see `tests/conftest.py`, which says so.
collect_ignore = [
    *(
        ["test_postgresql.py", "test_silent_postgresql.py", "test_replica.py", "test_growth_tutorial.py"]
        if MISSING
        else []
    ),
    *(["test_shared_counters.py"] if MISSING or NO_VALKEY else []),
]


@pytest.fixture(scope="session")
def engines() -> Iterator[Engines]:
    engines = Engines()
    yield engines
    engines.close()


@pytest.fixture(scope="session")
def counting(engines: Engines) -> Iterator[CountingEngines]:
    counting = CountingEngines(engines)
    yield counting
    counting.close()


@pytest.fixture
def warm_gateways(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gateways that have imported what they need when they begin."""
    monkeypatch.setattr(Gateway, "begin", Popen)
