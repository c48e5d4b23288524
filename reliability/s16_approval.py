# ruff: noqa: E501 - a table of tokens, which a line end would tear
"""S16, S20, S21: what is approved is seen, what others write costs linear time, and what they say allows nothing."""

from __future__ import annotations

import io
import itertools
import math
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator

from rich.console import Console

from dragoman.agent.approval import Approvals, parse_rule
from dragoman.agent.safe_text import hidden_character, plain_text, revealed_text
from dragoman.agent.tool_plan import Plan
from dragoman.agent.tools.fetch import text_of_page
from dragoman.agent.ui.approval_view import LONGEST
from dragoman.agent.ui.blocks import Blocks
from dragoman.agent.ui.drawing import Screen
from reliability.row import Result, Scale

_FACTS = "(in ., at most 120 s, without network)"
#: Pieces of pages, of terminals' and Markdown's grammars, and of none.
_TOKENS = [
    "<!--", "-->", "<script ", "<script>", "</script", "<", "</", ">", "<p>", "<svg>", "<!", "<a b='", "<style", "&", "&#", "&#1", "&#x1",
    "&amp", "\x9d", "\x9b", "\x9b1;", "\x1b", "\x1b[", "\x1b]", "\x1bP", "\x1b[1;", "\x1b ", "\x1b]0;a", "\x9c", "\x07", "\r", "\n", "\t", " ",
    "a", "\u2028", "\u202e", "`", "```\n", "*", "[", "![", "\\", '"', "'", "{", "\U000e0001", "аa", "\u3164",
]  # fmt: skip
_READERS: dict[str, Callable[[str], object]] = {
    "pages": text_of_page,
    "terminal text": plain_text,
    "approvals": revealed_text,
    "answers": lambda text: Blocks().add(text),
}
#: Categories of Unicode of which no character is seen as what it is, but for the line end and the tab.
_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs")


def measure(scale: Scale) -> Iterator[Result]:
    """Every character there is, actions that forge the question, repeated tokens, rules after text of others."""
    codes = range(0, sys.maxunicode + 1, scale.pick(1, 7))
    unseen = [chr(code) for code in codes if unicodedata.category(chr(code)) in _UNSEEN and chr(code) not in " \n\t"]
    passed = [each for each in unseen if hidden_character(each) is None and revealed_text(each) == each]
    words = f"{len(passed)} of {len(unseen):,} stay as they are; the others are refused or written out"
    yield Result("S16", "0 characters without a shape pass an approval", words, not passed)
    yield forged(scale)
    for name, reader in _READERS.items():
        yield grown(name, reader, scale)
    yield tainted()


def forged(scale: Scale) -> Result:
    """Actions of many lines and long ones, with our own words in them."""
    ours = (_FACTS, "[y] once  [s] for identical calls of this session  [n] no", "run:", "┆ 3 rows ┆", "│ x")
    tried = escaped = 0
    fillers = (
        "",
        " ",
        "x" * 300,
        "\t",
        "\t" * 40,
        "漢" * 90,
        "①" * 90,
        "—" * 90,
        "e\u0301" * 90,
        "\u0301" * 300,
        "א 1 ב " * 30,
    )
    for count, line, filler, is_file in itertools.product((0, 1, 39, 41, 3_000), ours, fillers, (False, True)):
        action = "\n".join(["echo first", *[filler] * count, f"{filler}{line}", "last"])
        diff = "".join(f"+{each}\n" for each in action.split("\n")) if is_file else ""
        plan = Plan("run", "run", ("x",), f"{action}\n{_FACTS}", "", None, diff=diff, facts=_FACTS)  # type: ignore[arg-type]
        console = Console(file=io.StringIO(), width=80, height=60)
        Screen(console).show_plan(plan)
        head, *rows = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
        tried += 1
        rows = [row for row in rows if not row.startswith(("  ", "characters that are not"))]
        is_ours = [row for row in rows if not row.startswith("│ ")]
        is_wide = any(_columns(row) > 80 for row in rows)
        is_cut = "last" not in rows[-1] or "echo first" not in rows[0] or len(rows) > LONGEST + 1
        escaped += is_cut or is_wide or len(is_ours) > 1 or not head.startswith(f"run: {_FACTS}")
    return Result("S16", "no action forges the question or scrolls away", f"{escaped} of {tried} do", not escaped)


def _columns(row: str) -> int:
    """The most columns that a terminal may give a row."""
    shown = [each for each in row if unicodedata.category(each) not in ("Mn", "Me")]
    wide = sum(unicodedata.east_asian_width(each) in "WFA" and each not in "│┆" for each in shown)
    return len(shown) + wide + 7 * row.count("\t")


def grown(name: str, reader: Callable[[str], object], scale: Scale) -> Result:
    """The exponent by which time grows from a quarter of the text to all of it."""
    size = scale.pick(1024, 256) * 1024
    worst, slowest = (0.0, ""), (0.0, "")
    for token in _TOKENS:
        small, large = (_seconds(reader, (token * (length // len(token)))[:length]) for length in (size // 4, size))
        slowest = max(slowest, (large, token))
        if large > 0.02:
            worst = max(worst, (math.log(large / max(small, 1e-4)) / math.log(4), token))
    words = f"{name}: exponent at most {worst[0]:.2f} ({worst[1]!r}), slowest {slowest[0]:.2f} s ({slowest[1]!r})"
    return Result("S20", f"linear in {len(_TOKENS)} kinds of text of {size // 1024} KiB", words, worst[0] <= 1.2)


def _seconds(reader: Callable[[str], object], text: str) -> float:
    best = math.inf
    for _ in range(3):
        began = time.process_time()
        reader(text)
        best = min(best, time.process_time() - began)
    return best


def tainted() -> Result:
    """Rules that would send words out, after text of files and of pages."""
    fetch = Plan("fetch", "network", ("https://a.example", "k"), "", "", None)  # type: ignore[arg-type]
    rules = ("fetch", "fetch:https://*/**", "fetch:https://*.example/**", "fetch:http*://a.example/**")
    unasked = sum(
        Approvals([parse_rule(rule)]).covers(fetch, taint=taint) for rule in rules for taint in ("folder", "outside")
    )
    named = Approvals([parse_rule("fetch:https://a.example/**")]).covers(fetch, taint="folder")
    words = f"{unasked} of {2 * len(rules)} go on unasked; one that names its host goes on: {named}"
    return Result("S21", "0 rules without a host send words after foreign text", words, not unasked and named)
