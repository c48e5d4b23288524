# ruff: noqa: E501 - tables of attacks, which a line end would tear
"""What a person sees before a yes: all of it or both ends, nothing that looks like what it is not, nothing forged."""

from __future__ import annotations

import io
import re
import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from dragoman.agent.safe_text import hidden_character, revealed_text, told_apart
from dragoman.agent.tool_plan import Plan
from dragoman.agent.ui.approval_view import LONGEST, _in_order, show_action
from dragoman.agent.ui.drawing import Screen
from for_each import for_each

FACTS = "(in ., at most 120 s, without network)"
REFUSED = [0x200B, 0x200D, 0x202E, 0x034F, 0x115F, 0x1160, 0x17B4, 0x180B, 0x180E, 0x2065, 0x206A, 0x2800, 0x3164, 0xFFA0,
           0xFE00, 0xFE0F, 0xFFF9, 0xFFFE, 0xE000, 0xF0000, 0x1BCA0, 0x1D159, 0x1D173, 0xE0001, 0xE0100, 0xE01EF, 0xE0FFF, 0x7F, 0x85, 0x2028]  # fmt: skip
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


@for_each("code", REFUSED)
def test_what_has_no_shape_is_refused(code: int) -> None:
    assert hidden_character(f"a{chr(code)}") == f"U+{code:04X}"
    assert revealed_text(f"a{chr(code)}b") == f"a<U+{code:04X}>b"


@for_each("code", MARKED)
def test_what_looks_like_another_is_marked(code: int) -> None:
    assert told_apart(f"a {chr(code)} b") == [("a ", False), (f"<U+{code:04X}>", True), (" b", False)]


def test_letters_of_two_scripts_in_a_word_are_marked() -> None:
    assert revealed_text("p\u0430ypal \u0441\u0430\u0441\u0430 \u03bf\u03c1\u03bf") == (
        "p<U+0430>ypal <U+0441><U+0430><U+0441><U+0430> <U+03BF><U+03C1><U+03BF>"
    )
    for plain in ("naïve été", "привет мир", "日本語 test テスト", "שלום", "ελληνικά", "don’t — “so” …", "5 µs"):
        assert revealed_text(plain) in (plain, plain.replace("…", "…"))


def columns(row: str) -> int:
    """The most columns that a terminal may give a row."""
    count = 0
    for character in row:
        if character == "\t":
            count += 8 - count % 8
        elif unicodedata.category(character) not in ("Mn", "Me") and character not in "│┆…—":
            count += 2 if unicodedata.east_asian_width(character) in "WFA" else 1
        else:
            count += unicodedata.category(character) not in ("Mn", "Me")
    return count


FILLERS = [
    "\t" * 30,
    "①" * 100,
    "—" * 90,
    "漢" * 90,
    "👩" * 60,
    "a\u0301" * 200,
    "\u0301" * 300,
    "กำ" * 100,
    "שלום " * 30,
    "x" * 300,
]


@for_each("filler", FILLERS)
@for_each("width", [40, 80, 133])
def test_nothing_that_is_drawn_leaves_its_place_behind_the_bar(filler: str, width: int) -> None:
    """Drawn as the terminal gets it: tabs and characters of two widths must not push what follows to a row's beginning."""
    ours = ("│ ", "  ", "┆", "characters that are not", "look like are", "like are written")
    for action in (f"echo {filler}{FACTS}", f"{filler}x{filler}{FACTS}\n{filler}"):
        name = f"a{filler[:60]}{FACTS}"
        for plan in (plan_of(action), plan_of(f"write {name}", diff=f"--- {name}\n+++ {name}\n+{action}\n")):
            rows = drawn(plan, width=width)
            assert [row for row in rows[1:] if not row.startswith(ours)] == []
            assert rows[0].startswith(f"run: {FACTS}"[: width - 2]) and max(map(columns, rows)) <= max(width, 42)


def test_a_folders_name_forges_no_row_of_what_will_be_done() -> None:
    for name in ("a" * 200, f"x {'y ' * 40}│ ls -l", "│ ls", "b" * 52 + "│ echo harmless"):
        facts = f"(in {name}, at most 120 s, without network)"
        plan = Plan("run", "run", ("x",), f"rm -rf x\n{facts}", "id", None, facts=facts)  # type: ignore[arg-type]
        for width in (40, 60, 80):
            assert [row for row in drawn(plan, width=width) if row.startswith("│")] == ["│ rm -rf x"]


@given(st.text(alphabet=st.sampled_from("\t①—漢👩e\u0301\u0e33ש א٣a \n1①(\u200f"), max_size=80), st.integers(30, 100))
def test_drawn_rows_fit_whatever_they_hold(text: str, width: int) -> None:
    for plan in (plan_of(f"echo {text}"), plan_of("x", diff=f"+{text}\n")):
        showing = show_action(plan, width=width, height=60, whole=True)
        assert max(map(columns, showing.text.plain.split("\n"))) <= width
        assert "\t" not in showing.text.plain


def test_words_that_are_written_from_right_to_left_change_no_places() -> None:
    """One is drawn as it is; of several in a command, which a terminal would turn with what stands between, none."""
    assert "שלום" in drawn(plan_of("echo שלום"))[1]
    row = drawn(plan_of("cp א /b ג"))[1]
    assert "<U+05D0>" in row and "<U+05D2>" in row
    assert any("שלום עולם" in row for row in drawn(plan_of("x", diff="+שלום עולם\n")))


def test_short_words_of_twins_and_phonetic_letters_are_marked() -> None:
    assert revealed_text("cat \u0430") == "cat <U+0430>"
    assert revealed_text("cat \u0441\u043e") == "cat <U+0441><U+043E>"
    assert revealed_text("кот а пёс") == "кот а пёс"
    assert revealed_text("c\u0251t \u01c3 \u13a0\u13aa \ua4d0") == ("c<U+0251>t <U+01C3> <U+13A0><U+13AA> <U+A4D0>")


def test_what_looks_like_a_shells_signs_is_written_out_in_commands() -> None:
    """Whoever approves `echo ‘a; rm x’` must see that nothing is quoted there."""
    quotes = [chr(code) for code in range(0x80, 0x11000) if "QUOTATION MARK" in unicodedata.name(chr(code), "")]
    dashes = [chr(code) for code in range(0x80, 0x11000) if unicodedata.category(chr(code)) == "Pd"]
    assert len(quotes) > 20 and len(dashes) > 15
    for sign in (
        *quotes,
        *dashes,
        *"\u00b4\u02cb\u02c8\u2032\u2035\u055a\u27cb\u29f5\u2217\u204e\u223c\u276f\u2768\ufd3e\u205a",
    ):
        [row] = drawn(plan_of(f"echo {sign}a; b{sign} -c"))[1:2]
        assert row == f"│ echo <U+{ord(sign):04X}>a; b<U+{ord(sign):04X}> -c", ascii(sign)
    # In files, and where a command's words are prose, they stay; so does what no shell reads.
    assert drawn(plan_of("x", diff="+don’t — “so”\n"))[1] == "│ +don’t — “so”"
    assert drawn(plan_of("echo été → 漢字、ok 🎉 5 µs …"))[1] == "│ echo été → 漢字、ok 🎉 5 µs …"


def test_letters_of_scripts_that_few_write_are_marked() -> None:
    """Of which many look like Latin ones, in words of their own and among others."""
    for letter in "\u15c5\u2d54\u16d5\U000118d5\U00010282\U0001d6a8\ua731\uab32\U00010415\U000104c2\U00016f3f\u2c98\U00016fe4\u07eb":
        marked = f"<U+{ord(letter):04X}>"
        assert revealed_text(f"rm {letter}b x {letter}") == f"rm {marked}b x {marked}"
    for plain in (
        "ქართული",
        "ไทย",
        "한국어",
        "עברית",
        "العربية",
        "हिन्दी",
        "తెలుగు",
        "ភាសាខ្មែរ",
        "አማርኛ",
        "ｱｲｳ",
        "カタカナー",
    ):
        assert revealed_text(plain) == plain


def test_marks_that_would_be_drawn_over_other_rows_are_written_out() -> None:
    assert revealed_text("e\u0301\u0323") == "e\u0301\u0323"
    assert revealed_text("e" + "\u0301" * 6) == "e" + "\u0301" * 4 + "<U+0301>" * 2


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
    wanted = "".join(piece for piece, _ in _in_order(told_apart((text or "x").rstrip("\n")))).replace("\n", "")
    assert shown.replace("\n", "").rstrip() == re.sub(r"\n?│ ", "", wanted).rstrip() or "│" in text or not text.strip()


@for_each(
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
