"""Providers for the tests of a module."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

from chains import Bench, running_bench

#: What needs pyright; see `tests/conftest.py`, which says so.
collect_ignore = [] if importlib.util.find_spec("basedpyright") else ["test_pyright.py"]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with running_bench(tmp_path_factory.mktemp("bench")) as found:
        yield found
