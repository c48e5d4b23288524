"""One PostgreSQL for all tests of a process, on a port of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from reliability.engines import MISSING

from ledger.engines import Engines

#: What needs the server itself; see `tests/conftest.py`, which says so.
collect_ignore = ["test_postgresql.py"] if MISSING else []


@pytest.fixture(scope="session")
def engines() -> Iterator[Engines]:
    engines = Engines()
    yield engines
    engines.close()
