"""The work of every reader grows with what it reads, whatever repeats in it, and depth ends in an error of ours.

`places.py` is the table; a decoder, stage or family that has no row there fails here.
"""

from __future__ import annotations

import ast
import math
import os
import random
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import pytest

from dragoman.protocols import PROTOCOLS
from dragoman.stages.rescue.families import FAMILIES
from for_each import for_each
from growth import naming, steps_of
from patterns import ROOT
from places import BEGINNINGS, PLACES, Place
from profiles import IS_SOAK, some

TOKENS = [
    "<", "<!--", "<think>", "</think>", "<|", "<a ", "<a>", "</", "&lt;", "&#", "[", "]", "{", "}", "(", ")", "{{",
    '"', '\\"', "'", "`", "```", "```json\n", "\\", "\\\\", "\\u", "\\ud83d", '"\\u00', " ", "\n", "\r", "\t", "\n\n",
    "}}",
    "a", "0", "9", "-", "_", "a b ", "=", ",", ":", ";", "/", "//", "/*", "*", "#", "a(", "f(a=", "a=", "'a':", '"a":',
    '{"a":', "{'a':", '{"a":[', '{"', "[1,", "1,", "1.", "1e", "0x", "None,", "True ", "data:", "data: {}\n\n",
    "event: a\n", '{"a":1}', '{"a":1}\n', "<tool_call>", "</tool_call>", '<tool_call>{"name":"f","arguments":{',
    '<tool_call>{"name":"f","arguments":{}}</tool_call>', '{"name":"f","arguments":{', "<function=f>", "<parameter=a>",
    "[TOOL_CALLS]", "functions.f:0", '<invoke name="f">', "<|tool", "<|python_tag|>", "Action: f\nAction Input: ",
    "\x1b]", "\x1b[", "\x9d", "é", "\ud83d", "\ufeff", "\u00a0", "“", "<script ", "<title>", "raw='", "> ",
]  # fmt: skip
#: What opens something again and again; one of two of them at each place in `make test`.
DEEP = ("[", "{", '{"a":', '{"a":[', "(", "<a>", "f(a=", '{"tool":', "{'a':", "[{'a':(")
#: Characters of the smaller text; the larger one is four times as long.
SIZE = 300
#: What four times the text may cost: an exponent of 1.2, and what is done once.
MOST_GROWTH, ONCE = 4**1.2, 300

each_place = for_each("place", PLACES)
#: `make test` tries one of so many tokens at each place, others at the next one; `make soak` tries all.
STEP = 1 if IS_SOAK else 24

#: Classes with a method `feed` → the row in which they run.
FEEDERS = {
    "codec/framing/json_array.py ArrayItems": "items of an array",
    "codec/parts/argument_text.py Restated": "openai-chat calls",
    "client/exchange.py Exchange": "openai-chat says",  # hands bytes to the decoder
    "client/passthrough/frames.py Frames": "openai-chat says",
    "client/passthrough/exchange.py PassthroughExchange": "openai-chat says",
    "protocol/__init__.py Decoder": "openai-chat says",
    "protocol/__init__.py Stage": "stages",
    "codec/framing/body.py BodyReader": "openai-chat sends ''",
    "codec/framing/event_stream.py EventLines": "openai-chat sends 'data: '",
    "client/streaming/partial_arguments.py PartialArguments": "arguments' text",
    "offering/restoring.py Restored": "restored calls",
    "pipe.py Later": "openai-chat says",
    "pipe.py Reader": "openai-chat says",
    "pipe.py WholeReader": "openai-chat sends ''",  # joins a body of a bounded size, or hands it on
    **{f"protocols/{folder}/response/decode.py Decoder": f"{name} says" for folder, name in (
        ("anthropic", "anthropic-messages"), ("gemini", "gemini-generate"), ("ollama", "ollama-chat"),
        ("openai_chat", "openai-chat"), ("openai_responses", "openai-responses"))},
    **{f"stages/{name}": "stages" for name in (
        "argument_repair/stage.py ArgumentRepair", "expected.py Expected", "tool_names.py ToolNames", "rescue/code.py Code",  # noqa: E501
        "rescue/scan.py Scanner", "rescue/stage.py Rescue", "sequencer.py Sequencer", "strict.py Strict",
        "thinking/stage.py ThinkingTags", "parallel_wrapper.py ParallelWrapper", "thinking/scanner.py ThinkingScanner", "argument_repair/repairer.py Repairer",  # noqa: E501
        "cumulative.py Cumulative", "rescue/behind/brackets.py Brackets")},
    "stages/told_again.py ToldAgain": "stages, told again",
    "tool_emulation/prompted.py Prompted": "stages, asked in the prompt",
    "tool_emulation/structured.py Structured": "stages, asked by schema",
}  # fmt: skip


#: Files whose functions make what others wrote fit for a terminal.
TERMINAL_FILES = ("agent/safe_text.py", "agent/ui/*.py", "cli/terminal.py", "cli/draw_stream.py")
#: Each function in them that takes a text or a plan → the row in which it runs.
FILTERS = {
    **dict.fromkeys((f"agent/safe_text.py {name}" for name in (
        "plain_text", "plain_line", "shown", "revealed_text", "told_apart", "hidden_character")), "terminal"),
    **dict.fromkeys((f"agent/ui/approval_view.py {name}" for name in (
        "show_action", "show_head", "_rows", "_fitting", "_columns")), "approval"),
    **dict.fromkeys((f"agent/ui/drawing.py {name}" for name in (
        "draw_diff", "_clip", "_first", "_indented", "_title_of")), "approval"),
    **dict.fromkeys(("cli/terminal.py harmless", "cli/terminal.py clip"), "command"),
}  # fmt: skip
#: These take one character, or write what was filtered.
NO_FILTERS = {
    *(f"agent/safe_text.py {name}" for name in ("_is_hidden", "_is_odd", "_script", "is_shell_alike")),
    *(f"agent/ui/approval_view.py {name}" for name in ("_columns_of", "_is_turned")),
    *(f"cli/terminal.py {name}" for name in ("hint", "say")),
}


def filters_of(path: str, source: str) -> set[str]:
    """The functions of a file that take a text or a plan first."""
    return {
        f"{path} {node.name}"
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef)
        and (node.args.args or node.args.posonlyargs)
        and (first := [*node.args.posonlyargs, *node.args.args][0].annotation) is not None
        and ast.unparse(first) in ("str", "Plan")
    }


def test_every_terminal_filter_has_a_row():
    paths = {path for pattern in TERMINAL_FILES for path in ROOT.glob(pattern)}
    found = {each for path in paths for each in filters_of(path.relative_to(ROOT).as_posix(), path.read_text("utf-8"))}
    assert found - FILTERS.keys() - NO_FILTERS == set(), "a terminal filter without a row"
    assert FILTERS.keys() | NO_FILTERS == found
    assert set(FILTERS.values()) <= set(PLACES)
    # One that is added is noticed: whatever it is called, and however it takes its text.
    for added in ("def hide(text: str) -> str: ...", "def _hide(plan: Plan, /, width: int) -> Text: ..."):
        assert filters_of("agent/ui/drawing.py", added) - FILTERS.keys() - NO_FILTERS


def test_every_reader_has_a_row():
    found = {
        f"{path.relative_to(ROOT).as_posix()} {node.name}"
        for path in ROOT.rglob("*.py")
        if "def feed(" in (text := path.read_text(encoding="utf-8"))
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef)
        and any(isinstance(inner, ast.FunctionDef) and inner.name == "feed" for inner in node.body)
    }
    assert found - set(FEEDERS) == set(), "a reader without a row"
    assert set(FEEDERS.values()) <= set(PLACES)
    assert {f"family {family.name}" for family in FAMILIES} <= set(PLACES)
    for protocol in PROTOCOLS:
        assert {f"{protocol} {what}" for what in ("says", "calls", "requests", "sends ''")} <= set(PLACES)
    assert len(set(TOKENS)) >= 80


@each_place
def test_the_work_grows_with_the_text(place: str):
    run = PLACES[place]
    run(TOKENS[0])  # caches fill
    wrong = []
    for beginning in BEGINNINGS.get(place, ("",)):
        for token in TOKENS[list(PLACES).index(place) % STEP :: STEP]:
            few, many = (work_of(run, beginning, token, size) for size in (SIZE, 4 * SIZE))
            # Where a bound is reached, or a call is first whole, the work leaps once: then the next step decides.
            if many > MOST_GROWTH * few + ONCE and work_of(run, beginning, token, 16 * SIZE) > MOST_GROWTH * many:
                wrong.append((beginning, token, few, many))
    assert not wrong


def work_of(run: Place, beginning: str, token: str, size: int) -> int:
    """Lines that run for a text of this size."""
    text = beginning + token * (size // len(token))
    return steps_of(lambda: run(text))


@each_place
@for_each("size", [100_000] if IS_SOAK else [10_000])
def test_depth_ends_in_an_error_of_ours(place: str, size: int):
    """Both sizes are deeper than Python may call itself."""
    for token in some(DEEP, place, 2):
        for beginning in BEGINNINGS.get(place, ("",)):
            with naming(beginning + token):
                PLACES[place](beginning + token * (size // len(token)))


#: Made-up texts a place, and the characters of each.
MADE, MADE_SIZE = 7, 1_500


@each_place
def test_made_up_texts_cost_their_share(place: str):
    """What `make fuzz` measures by processor time with 100,000 texts, here with a few and by lines that run."""
    run = PLACES[place]
    run(TOKENS[0])
    texts = [made_text(random.Random(f"{place} {number}"), place)[:MADE_SIZE] for number in range(MADE)]
    shares = [steps_of(lambda text=text: run(text)) / len(text) for text in texts]  # type: ignore[misc]
    # A reader that lets go of most texts at their first character does nearly nothing for a median one.
    median = max(statistics.median(shares), 5)
    slow = [(share, text[:60]) for share, text in zip(shares, texts, strict=True) if share > MOST_TIMES * median]
    assert not slow, median


# ---------------------------------------------------------------- processor time, in `make fuzz` and `make soak`

#: Texts a place; the target of `make fuzz` is 100,000 (`DRAGOMAN_FUZZ_TEXTS`).
TEXTS = int(os.environ.get("DRAGOMAN_FUZZ_TEXTS", "5000"))
#: A text that takes more than so many times the median time of a byte, among texts of about its size, is looked at;
#: none below so many seconds a byte. Where most texts are refused at their first character, the median is a refusal's
#: cost, and any text that is read at all lies over it.
MOST_TIMES, LEAST = 20, 1e-7
#: Of these one is at fault that grows by more than this power of its length (the clock's own spread is in it), or that
#: takes so long a byte that twice what the loop reads at once (6 KiB) is 50 ms.
MOST_POWER, MOST_SHARE = 1.3, 4e-6
#: Texts of a size, from which on they have a median of their own.
ENOUGH = 50


class Made(NamedTuple):
    """A text that was tried: seconds a byte, its number, its size in characters."""

    share: float
    number: int
    size: int


def seconds_of(run: Place, text: str) -> float:
    begun = time.process_time_ns()
    run(text)
    return (time.process_time_ns() - begun) / 1e9


def made_text(chance: random.Random, place: str, times: int = 1) -> str:
    """1 to 64 KiB, most of them small: one to four stretches, each of one to three tokens that repeat; `times` as
    long."""
    size = times * int(1024 * 64 ** chance.random() ** 36)
    stretches = chance.randrange(1, 5)
    text = chance.choice(BEGINNINGS.get(place, ("",)))
    for _ in range(stretches):
        unit = "".join(chance.choices(TOKENS, k=chance.randrange(1, 4)))
        text += unit * (size // stretches // len(unit) + 1)
    return text[:size]


def numbered_text(place: str, number: int, times: int = 1) -> str:
    """The same in each run."""
    return made_text(random.Random(f"{place} {number}"), place, times)


def try_texts(place: str, numbers: Iterable[int], *, seconds: float = 1e9) -> list[Made]:
    """Each text once, until so many seconds of processor time have passed."""
    run = PLACES[place]
    until = time.process_time() + seconds
    made = []
    for number in numbers:
        if time.process_time() > until:
            break
        text = numbered_text(place, number)
        made.append(Made(seconds_of(run, text) / len(text), number, len(text)))
    return made


class Slow(NamedTuple):
    """A text over its share: how many times the median, seconds a byte, by which power the time grows with the text."""

    times: float
    share: float
    growth: float
    text: str

    @property
    def is_at_fault(self) -> bool:
        """Whether it grows by more than its length, or is dear whatever its length; else it is one that is read where
        most are refused."""
        return self.growth > MOST_POWER or self.share > MOST_SHARE

    def __str__(self) -> str:
        share = f"{self.share * 1e9:.0f} ns a byte"
        return (
            f"{self.times:.0f} × the median, {share}, growth {self.growth:.1f}: {self.text[:60]!r}…{self.text[-60:]!r}"
        )


def slow_texts(place: str, made: Sequence[Made]) -> list[Slow]:
    """The texts that take more than their share, the best of three."""
    usual = max(statistics.median(each.share for each in made), LEAST / MOST_TIMES)
    by_size: dict[int, list[float]] = {}
    for each in made:
        by_size.setdefault(each.size.bit_length(), []).append(each.share)
    medians = {
        size: max(statistics.median(shares), LEAST / MOST_TIMES)
        for size, shares in by_size.items()
        if len(shares) >= ENOUGH
    }
    return [
        slow
        for each in made
        if each.share > MOST_TIMES * (median := min(usual, medians.get(each.size.bit_length(), usual)))
        and (slow := _again(place, each, median)).times > MOST_TIMES
    ]


def _again(place: str, made: Made, median: float) -> Slow:
    """A text that looked slow: the best of three, and its growth."""
    run = PLACES[place]
    text = numbered_text(place, made.number)
    share = min(_best(run, text) / made.size, made.share)
    is_slow = share > MOST_TIMES * median
    return Slow(share / median, share, _power(partial(_best, run), place, made.number) if is_slow else 0, text)


def _best(run: Place, text: str) -> float:
    return min(seconds_of(run, text) for _ in range(3))


def _power(cost: Callable[[str], float], place: str, number: int) -> float:
    """By which power the cost grows from a text to one four times as long; the next step decides where it leaps, as
    where a bound is reached."""
    one, four = (max(cost(numbered_text(place, number, times)), 1e-9) for times in (1, 4))
    power = math.log(four / one, 4)
    if power <= MOST_POWER:
        return power
    return min(power, math.log(max(cost(numbered_text(place, number, 16)), 1e-9) / four, 4))


@pytest.mark.soak
@each_place
def test_no_text_takes_more_than_its_share_of_time(place: str):
    assert not [each for each in slow_texts(place, try_texts(place, range(TEXTS))) if each.is_at_fault]


def test_the_judge_tells_what_grows_from_what_is_read():
    place = "inner json"
    assert _power(len, place, 1) == pytest.approx(1)
    assert _power(lambda text: len(text) ** 2, place, 1) == pytest.approx(2)
    leap = 2 * len(numbered_text(place, 1))  # a bound that is reached once
    assert _power(lambda text: len(text) * (10 if len(text) > leap else 1), place, 1) == pytest.approx(1)
    assert not Slow(1_000, 1e-6, 1.1, "").is_at_fault
    assert Slow(21, 1e-7, 1.5, "").is_at_fault
    assert Slow(21, 5e-6, 1.0, "").is_at_fault
