"""One PostgreSQL for all tests of a process, and machines that share it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from reliability.engines import MISSING, PostgreSQL

#: What needs the server itself; see `tests/conftest.py`, which says so.
collect_ignore_glob = ["test_*.py"] if MISSING else []

if not MISSING:
    from dragoman.gateway.storage import machines, moving, postgresql
    from gateway.shared.machines import Fleet

    @pytest.fixture(scope="session")
    def server() -> Iterator[PostgreSQL]:
        with PostgreSQL() as server:
            yield server

    @pytest.fixture
    def fleet(server: PostgreSQL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
        for module, name in (
            (postgresql, "PATIENCE"),
            (moving, "_PATIENCE"),
            (machines, "_WAIT"),
            (machines, "_SILENT"),
        ):
            monkeypatch.setattr(module, name, 60.0)  # no verdict by the clock
        fleet = Fleet(server, tmp_path)
        yield fleet
        fleet.close()
