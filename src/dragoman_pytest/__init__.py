"""The fixture `fake_model` for pytest. It lies outside the package `dragoman`, which only its users load."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from dragoman.testing import FakeModel, Turn


@pytest.fixture
def fake_model() -> Iterator[Callable[..., FakeModel]]:
    """`fake_model("Hello.", call("get_weather", city="Paris"))`: a `FakeModel` that answers until the test ends."""
    from dragoman.testing import FakeModel

    with ExitStack() as stack:

        def make(*turns: Turn) -> FakeModel:
            return stack.enter_context(FakeModel(*turns))

        yield make
