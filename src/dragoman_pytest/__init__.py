"""The fixtures `fake_model` and `recording` for pytest, outside the package `dragoman`, which only its users load."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from dragoman.testing import FakeModel, Recording, Turn


@pytest.fixture
def fake_model() -> Iterator[Callable[..., FakeModel]]:
    """`fake_model("Hello.", call("get_weather", city="Paris"))`: a `FakeModel` that answers until the test ends."""
    from dragoman.testing import FakeModel

    with ExitStack() as stack:

        def make(*turns: Turn) -> FakeModel:
            return stack.enter_context(FakeModel(*turns))

        yield make


@pytest.fixture
def recording(request: pytest.FixtureRequest) -> Iterator[Recording]:
    """Return a `Recording` in `recordings/MODULE/TEST` beside the test's file: made in the first run, replayed later.

    `DRAGOMAN_RECORD=1 pytest` records again. A test that fails leaves the folder as it was.
    """
    from dragoman.testing import Recording

    name = re.sub(r"[^\w.-]+", "-", request.node.name)
    failed = request.session.testsfailed
    with (
        contextlib.suppress(_TestFailed),
        Recording(request.path.parent / "recordings" / request.path.stem / name) as made,
    ):
        yield made
        if request.session.testsfailed > failed:
            raise _TestFailed


class _TestFailed(Exception):
    """Tells a recording that its test has failed."""
