"""What `doctor` and the first lines of a chat say of the sandbox is what holds, for every machine it may be run on."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.agent.sandbox.bubblewrap import Fence
from dragoman.agent.sandbox.guarantees import describe_fence
from dragoman.agent.ui import terminal
from dragoman.cli import doctor_checks
from for_each import for_each

FENCES = [
    None,
    *(
        Fence("/usr/bin/bwrap", has_namespace, refused, frozenset(features))
        for has_namespace, refused, features in product(
            (False, True), (None, b"filter"), ((), ("--size",), ("--size", "--disable-userns"))
        )
    ),
]


def _name_of(fence: Fence | None) -> str:
    """A name that is the same in each process: the order of a set is not."""
    if fence is None:
        return "none"
    return "-".join([str(fence.has_user_namespace), "filter" if fence.filter else "", *sorted(fence.features)])


@for_each("is_superuser", [False, True])
@for_each("is_wanted", [False, True])
@for_each("fence", FENCES, ids=_name_of)
def test_only_what_holds_is_called_a_sandbox(fence: Fence | None, is_wanted: bool, is_superuser: bool) -> None:
    holding = describe_fence(fence, is_wanted=is_wanted, is_superuser=is_superuser)
    assert holding.is_sandbox is (is_wanted and fence is not None and fence.has_user_namespace)
    said = " ".join([holding.summary, *holding.gaps])
    if not is_wanted:
        assert "without a sandbox" in said
    elif not holding.is_sandbox:
        assert "WITHOUT a sandbox" in holding.summary and holding.fix
        assert ("asked, whatever is allowed" if is_superuser else "shown and asked") in said
    else:
        assert fence is not None and "run in a sandbox" in holding.summary
        assert ("No filter of system calls" in said) is (fence.filter is None)
        assert ("cannot bound /tmp" in said) is ("--size" not in fence.features)
        assert ("lacks something" in holding.summary) is bool(holding.gaps)


@pytest.mark.parametrize("fence", FENCES, ids=_name_of)
def test_doctor_and_the_first_lines_of_a_chat_say_it(fence: Fence | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_checks, "find_bubblewrap", lambda: None if fence is None else fence.bubblewrap)
    monkeypatch.setattr(doctor_checks, "probe_fence", lambda path: fence)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setenv("COLUMNS", "200")
    holding = describe_fence(fence, is_wanted=True, is_superuser=False)
    config: Any = SimpleNamespace(agent=SimpleNamespace(sandbox=True))
    finding = doctor_checks._on_sandbox(config)
    assert finding.text == " ".join([f"{holding.summary}.", *holding.gaps]) and finding.fix == holding.fix
    assert finding.level == ("good" if holding.is_sandbox and not holding.gaps else "note")
    session: Any = SimpleNamespace(target="a/b", messages=())
    bench: Any = SimpleNamespace(holding=holding, folder=SimpleNamespace(path=Path("/srv/work")))
    greeting = " ".join(terminal._greeting(session, "", bench).split())
    assert holding.summary in greeting
    assert all(" ".join(gap.split()) in greeting for gap in holding.gaps)
