"""Each drift that `make mutants` plants still has its place in the code."""

from __future__ import annotations

import pytest
from scripts import mutants

PLANTED = list(mutants.mutants())


@pytest.mark.parametrize("path", sorted({mutant.path for mutant in PLANTED}))
def test_each_drift_of_a_file_has_its_place_and_is_python(path: str) -> None:
    for mutant in PLANTED:
        if mutant.path == path:
            compile(mutants.planted(mutant), mutant.name, "exec")


def test_what_is_called_harmless_is_planted() -> None:
    assert set(mutants.HARMLESS) <= {f"{mutant.protocol} {mutant.name}" for mutant in PLANTED}
