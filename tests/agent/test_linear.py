# ruff: noqa: E501 - a table of tokens, which a line end would tear
"""Time over what others write: pages, tool output, answers and patterns take time that grows no faster than they do."""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from dragoman.agent.approval import Approvals, parse_rule
from dragoman.agent.safe_text import hidden_character, plain_line, plain_text, revealed_text
from dragoman.agent.tool_plan import Plan, ToolFailed
from dragoman.agent.tools.fetch import check_url, text_of_page
from dragoman.agent.ui.blocks import BLOCK_LIMIT, Blocks
from dragoman.agent.ui.drawing import Screen
from dragoman.events import TextDelta, TextStart, ToolCallDelta, ToolCallStart

TOKENS = [
    "<!--", "-->", "<script ", "<script>", "</script", "<", "</", ">", "<p>", "<svg><svg>", "<!", "<a b='", "<style", "&", "&#", "&#1",
    "&#x1", "&amp", "&lt;", "\x9d", "\x9b", "\x9b1", "\x9b1;", "\x1b", "\x1b[", "\x1b]", "\x1bP", "\x1b[1;", "\x1b ", "\x1b]0;a", "\x9c",
    "\x07", "\r", "\r\n", "\n", "\t", " ", "a", "a ", "\u2028", "\u202e", "\ud800", "\u00a0", "`", "```\n", "~~~", "*", "[", "![", "_a", "|a|\n",
    "  - a\n", "> ", "\\", "\"", "'", "{", "\U000e0001", "\u3164", "аa",
]  # fmt: skip
SIZES = (64 * 1024, 128 * 1024, 256 * 1024)


def _drawn(text: str) -> None:
    screen = Screen(Console(file=io.StringIO(), width=100))
    screen.show([TextStart(0)])
    for start in range(0, len(text), 64):
        screen.show([TextDelta(0, text[start : start + 64])])
    screen.close()
    screen.show([ToolCallStart(1, "c", "run")])
    for start in range(0, len(text), 64):
        screen.show([ToolCallDelta(1, text[start : start + 64])])
    screen.close()


def _ruled(text: str) -> None:
    plan = Plan("run", "run", ("echo", text, *text[:500]), "", "", None)  # type: ignore[arg-type]
    for rule in ("run:echo *a*b*c*d", "run:echo ** a ** b ** c"):
        Approvals([parse_rule(rule)]).covers(plan)


def _asked(url: str) -> None:
    with contextlib.suppress(ToolFailed):
        check_url(f"https://example.org/{url}")


READERS: dict[str, Callable[[str], object]] = {
    "text_of_page": text_of_page,
    "plain_text": plain_text,
    "plain_line": plain_line,
    "revealed_text": revealed_text,
    "hidden_character": hidden_character,
    "Blocks.add": lambda text: Blocks().add(text),
    "Approvals.covers": _ruled,
    "check_url": _asked,
}


def seconds(reader: Callable[[str], object], text: str, tries: int = 3) -> float:
    best = math.inf
    for _ in range(tries):
        began = time.process_time()
        reader(text)
        best = min(best, time.process_time() - began)
    return best


@pytest.mark.soak  # it takes times
@pytest.mark.parametrize("name", READERS)
def test_time_grows_no_faster_than_the_text(name: str) -> None:
    """Quadratic time would be 16 times as long for four times the text; a floor keeps the clock's grain out."""
    slow = {}
    for token in TOKENS:
        first, _, last = (seconds(READERS[name], (token * size)[:size]) for size in SIZES)
        if last > 0.05 and last > 8 * max(first, 0.002):
            slow[token] = (first, last)
    assert slow == {}


@pytest.mark.parametrize("name", ["text_of_page", "plain_text"])
def test_a_quarter_of_a_mebibyte_of_two_tokens_in_turn_takes_half_a_second_at_most(name: str) -> None:
    size = 256 * 1024
    for one, other in itertools.pairwise(TOKENS):
        text = (one * 400 + other) * (size // (400 * len(one) + len(other)))
        assert seconds(READERS[name], text, 1) < 0.5, (one, other)


@pytest.mark.parametrize("size", [32 * 1024, pytest.param(256 * 1024, marks=pytest.mark.soak)])
def test_a_long_answer_is_drawn_in_bounded_time(size: int) -> None:
    """In pieces of 64 characters: what is kept and drawn anew with each one is bounded."""
    for token in ("![", "a\n", "```\n"):
        assert seconds(_drawn, token * (size // len(token)), 1) < size / 16_384, token


def test_a_pages_words_are_its_words() -> None:
    page = "<h1>A &amp; B</h1><script>x<y</script >c<!-- <p>no --> <P>d<br/>e 1 < 2 <my-tag>f</my-tag> &#65;<style>z"
    assert text_of_page(page) == "A & B\nc\nd\ne 1 < 2 f A"
    assert text_of_page("&#" + "9" * 10_000 + ";a&#x" + "F" * 10_000) == "\ufffda\ufffd"
    assert text_of_page("İ" * 50 + "<SCRIPT>x</Script>y") == "İ" * 50 + " y"


@given(st.lists(st.text(alphabet="a`~ \n", max_size=30), max_size=40))
def test_blocks_lose_and_add_nothing(pieces: list[str]) -> None:
    blocks = Blocks()
    found = [whole for piece in pieces for whole in blocks.add(piece)]
    assert "".join(found) + blocks.rest == "".join(pieces)


def test_blocks_are_bounded() -> None:
    blocks = Blocks()
    for piece in ("a" * 100_000, "b\n" * 100_000, "```\n" + "c\n" * 50_000):
        assert all(len(whole) <= 2 * BLOCK_LIMIT for whole in blocks.add(piece))
        assert len(blocks.rest) <= BLOCK_LIMIT
