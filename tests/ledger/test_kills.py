"""A few of the kills of `make ledger`."""

import sys

import pytest
from reliability.r25_ledger import measure
from reliability.row import Scale


@pytest.mark.skipif(sys.platform != "linux", reason="children are found in /proc")
@pytest.mark.usefixtures("warm_gateways")
def test_whoever_is_killed_each_request_has_one_row() -> None:
    found = list(measure(Scale(True), kills=2))
    assert len(found) == 3
    assert [result.measured for result in found if not result.passed] == []
