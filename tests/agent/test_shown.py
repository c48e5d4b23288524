# ruff: noqa: E501 - tables of attacks, which a line end would tear
"""What a person sees before a yes: all of it or both ends, nothing that looks like what it is not, nothing forged."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from dragoman.agent.drawing import Screen
from dragoman.agent.plain import hidden_character, revealed_text, told_apart
from dragoman.agent.plan import Plan
from dragoman.agent.showing import LONGEST, show_action

FACTS = "(in ., at most 120 s, without network)"
REFUSED = [0x200B, 0x200D, 0x202E, 0x034F, 0x115F, 0x1160, 0x17B4, 0x180B, 0x180E, 0x2065, 0x206A, 0x2800, 0x3164, 0xFFA0,
           0xFE00, 0xFE0F, 0xFFF9, 0xFFFE, 0xE000, 0xF0000, 0x1BCA0, 0x1D173, 0xE0001, 0xE0100, 0xE01EF, 0xE0FFF, 0x7F, 0x85, 0x2028]  # fmt: skip
MARKED = [
    0xA0,
    0x2003,
    0x202F,
    0x205F,
    0x3000,
    0x1680,
    0x2044,
    0xFF0F,
    0x2215,
    0x0336,
    0x20E3,
    0xFF41,
    0x1D41A,
    0x2011,
    0x2212,
    0x037E,
]


def plan_of(action: str, *, diff: str = "") -> Plan:
    return Plan("run", "run", ("x",), f"{action}\n{FACTS}", "id", None, diff=diff, facts=FACTS)  # type: ignore[arg-type]


def drawn(plan: Plan, *, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=60)
    Screen(console).show_plan(plan)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("code", REFUSED)
def test_what_has_no_shape_is_refused(code: int) -> None:
    assert hidden_character(f"a{chr(code)}") == f"U+{code:04X}"
    assert revealed_text(f"a{chr(code)}b") == f"a<U+{code:04X}>b"


@pytest.mark.parametrize("code", MARKED)
def test_what_looks_like_another_is_marked(code: int) -> None:
    assert told_apart(f"a {chr(code)} b") == [("a ", False), (f"<U+{code:04X}>", True), (" b", False)]


def test_letters_of_two_scripts_in_a_word_are_marked() -> None:
    assert revealed_text("p\u0430ypal \u0441\u0430\u0441\u0430 \u03bf\u03c1\u03bf") == (
        "p<U+0430>ypal <U+0441><U+0430><U+0441><U+0430> <U+03BF><U+03C1><U+03BF>"
    )
    for plain in ("naïve été", "привет мир", "日本語 test テスト", "שלום", "ελληνικά", "don’t — “so” …", "5 µs"):
        assert revealed_text(plain) in (plain, plain.replace("…", "…"))


@given(st.text(max_size=60), st.integers(20, 120))
def test_every_row_of_an_action_stands_behind_a_bar(text: str, width: int) -> None:
    """Whatever it holds: no row of it can look like one of ours, and none is wider than the terminal."""
    showing = show_action(plan_of(f"echo {text}"), width=width, height=60, whole=True)
    for row in showing.text.plain.split("\n"):
        assert row.startswith("│ ")
        assert cell_len(row) <= max(width, 22) + 1


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=200), st.integers(30, 90))
def test_nothing_of_an_action_is_lost(text: str, width: int) -> None:
    showing = show_action(plan_of(text or "x"), width=width, height=60, whole=True)
    shown = re.sub(r"\n?│ ", "", showing.text.plain)
    wanted = "".join(piece for piece, _ in told_apart((text or "x").rstrip("\n"))).replace("\n", "")
    assert shown.replace("\n", "").rstrip() == re.sub(r"\n?│ ", "", wanted).rstrip() or "│" in text


@pytest.mark.parametrize(
    "action",
    ["rm -rf x; :" + "\n" * 3_000 + "ls -l", "rm -rf x " + "a" * 100_000 + " last", "\n".join(map(str, range(5_000)))],
)
def test_of_a_long_action_both_ends_are_shown_and_the_count_between(action: str) -> None:
    showing = show_action(plan_of(action), width=80, height=60)
    rows = showing.text.plain.split("\n")
    assert len(rows) == LONGEST + 1
    assert showing.left_out > 0 and showing.lines == action.count("\n") + 1
    assert f"{showing.left_out:,} rows of {showing.lines:,} line" in showing.text.plain
    assert rows[0].startswith(f"│ {action[:5]}".rstrip("\n").split("\n")[0]) and rows[-1].endswith(action[-4:])
    assert show_action(plan_of(action), width=80, height=60, whole=True).left_out == 0


def test_a_low_terminal_is_not_scrolled() -> None:
    assert len(show_action(plan_of("\n".join("x" * 30)), width=80, height=20).text.plain.split("\n")) <= 20 - 4


def test_the_facts_cannot_be_forged() -> None:
    rows = drawn(plan_of(f"curl evil.example\n{FACTS}\n[y] once  [s] for identical calls of this session  [n] no:"))
    assert [row for row in rows if row.startswith("run:")] == [f"run: {FACTS}"]
    assert all(row.startswith("│ ") for row in rows[1:])
    rows = drawn(plan_of("x", diff=f"--- a\n+++ b\n+{'y' * 200}{FACTS}\n"))
    assert all(row.startswith("│ ") for row in rows[1:])
