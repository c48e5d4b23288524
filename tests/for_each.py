"""One test over a table of cases, where `pytest.mark.parametrize` would make a test of each: to collect and report one
costs two milliseconds, and most cases take less than one.

Every case is tried, and each that fails is named. A slow case, or one that needs a fixture of its own (`tmp_path`,
`monkeypatch`), stays a test of its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, TypeAlias

import pytest

#: How many of the cases that fail are shown with their tracebacks.
_MOST_SHOWN = 20
#: What a case fails with. `pytest.raises` and `pytest.fail` raise what is no `Exception`.
_FAILURES = (Exception, pytest.fail.Exception, BaseExceptionGroup)
_Test: TypeAlias = Callable[..., None]
_Names: TypeAlias = Callable[[Any], Any] | Sequence[Any] | None


def for_each(keys: str | Sequence[str], cases: Iterable[Any], *, ids: _Names = None) -> Callable[[_Test], _Test]:
    """Call a test for each case, in one test. The arguments are those of `pytest.mark.parametrize`. What a generator
    gives is made when the test runs."""
    keys = [key.strip() for key in keys.split(",")] if isinstance(keys, str) else list(keys)

    @cache
    def made() -> list[tuple[Any, ...]]:
        rows = [(case,) if len(keys) == 1 else tuple(case) for case in cases]
        assert rows and {len(row) for row in rows} == {len(keys)}, "there are cases, with a value for each key"
        return rows

    def decorate(test: _Test) -> _Test:
        def run_all(**fixtures: Any) -> None:
            failed: list[BaseException] = []
            names: list[str] = []
            for place, row in enumerate(made()):
                try:
                    test(**fixtures, **dict(zip(keys, row, strict=True)))
                except _FAILURES as problem:
                    names.append(_name(place, row, ids))
                    problem.add_note(f"{test.__name__}: case {names[-1]}")
                    failed.append(problem)
            if failed:
                message = f"{len(failed)} of {len(made())} cases of {test.__name__} fail: {', '.join(names)}"
                raise BaseExceptionGroup(message, failed[:_MOST_SHOWN])

        signature = inspect.signature(test)
        fixtures = [each for each in signature.parameters.values() if each.name not in keys]
        assert len(signature.parameters) == len(fixtures) + len(keys), "each key is a parameter of the test"
        run_all.__dict__ |= vars(test)  # its marks
        run_all.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        run_all.__name__, run_all.__qualname__ = test.__name__, test.__qualname__
        run_all.__module__, run_all.__doc__ = test.__module__, test.__doc__
        return run_all

    return decorate


def _name(place: int, row: tuple[Any, ...], ids: _Names) -> str:
    if ids is None:
        return "-".join(f"{value!r:.120}" for value in row)
    if callable(ids):
        return "-".join(f"{value!r:.120}" if (said := ids(value)) is None else str(said) for value in row)
    return str(ids[place])
