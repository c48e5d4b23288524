"""One gateway for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gateway.running import Running, gateway


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with gateway(tmp_path_factory.mktemp("gateway")) as found:
        yield found
