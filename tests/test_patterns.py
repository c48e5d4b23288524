"""No regular expression of the package takes more than linear time, whoever writes what it reads.

A pattern that the judge of `patterns.py` finds ambiguous is mended, or stands here with what bounds it.
"""

from __future__ import annotations

import ast
import re

from dragoman.codec.errors.error_body import read_problem
from dragoman.codec.parts.argument_text import ArgumentText
from dragoman.stages.argument_repair.string_text import _MENDINGS, _RUNS
from for_each import for_each
from growth import MOST_EXPONENT, exponent
from patterns import faults, out_of_sight, patterns

#: Place → what keeps its time linear all the same.
BOUNDED = {
    "codec/parts/torn_frames.py _NAME": "takes 512 characters, and no quote but an escaped one: no match begins in it",
    "codec/framing/outline.py _STRING": (
        "reads a text in which every string is closed (`_CLOSED`): no search for an end fails"
    ),
    "codec/parts/argument_text.py _OUTSIDE": (
        "matched at one place; a string that is not closed is looked at once in a stretch, then read inside"
    ),
    "codec/errors/context_overflow.py _LIMIT": "reads messages that `problems` cut to 1,000 characters",
    "codec/errors/error_body.py _RAW_CALL": "fails for the last quote of its kind alone; reads 16,000 characters",
    "codec/errors/error_body.py _TITLE": "looks 500 characters ahead, in 16,000",
    "stages/tool_names.py _PAIR": "reads what `_PAIRS` has matched whole: every search finds its end",
    "stages/rescue/quoted.py _TAG": "reads the openers of our own families",
    "stages/rescue/contexts.py MARK": "its attributes stop at `<`, behind which alone they begin",
}
#: Patterns that are made while the program runs.
MADE = {
    "codec/patterns.py compiled": "what a call of `rare_pattern` holds: judged where that stands",
    "gateway/hosted_paths.py _PLACE.sub(lambda place: '(?P<model>.+)' if place[1] == 'model' else '[^/]+', re.escape(pattern))": (  # noqa: E501
        "fixed texts; what stands between two of them stops at a slash, and one place of anything comes last"
    ),
    "codec/framing/outline.py narrow": "a bracket, commas that are not given back, a bracket",
    "agent/tools/matcher.py wanted": "the model's own: runs in a process that is killed",
    "gateway/app.py f'{re.escape(before)}{_ANY_TEXT}{re.escape(after)}'": "one repeat between fixed texts, whole",
    "stages/rescue/behind/brackets.py f'[{_MARKS[closes]}{re.escape(first)}]'": "one character",
    "stages/rescue/behind/ended.py self._again": "fixed texts, 40 characters of white space, one character",
    "stages/rescue/behind/ended.py self._closing": "fixed texts, matched at one place, nothing given back",
    "stages/rescue/behind/ended.py self._tag": "fixed texts side by side, each with one bounded look behind it",
    "testing/server.py re.escape(route).replace(re.escape('{model}'), '.+')": "one repeat, matched in whole",
    "stages/rescue/markers.py self.openers": "fixed texts side by side",
    "stages/rescue/markers.py named": "names side by side, one character before and behind",
    "stages/rescue/markers.py self.repeated": "fixed texts, matched at one place, nothing given back",
    "stages/rescue/markers.py self.first": "beginnings of fixed texts",
    "stages/rescue/quoted.py ends": (
        "a fixed text or its beginning, two line ends with 80 blanks between at most, one character"
    ),
    "stages/argument_repair/string_text.py run": "judged below for every quote",
    "stages/argument_repair/string_text.py mending": "judged below for every quote",
    "stages/thinking/tags.py self.pattern": "fixed texts side by side",
    "stages/thinking/tags.py self._begun": "beginnings of fixed texts, at the end of a text",
    "validate/grade.py f'(?<!\\\\w){re.escape(word)}(?!\\\\w)'": "a fixed text",
}


def test_all_patterns_are_found():
    assert len(patterns()) > 150
    assert {found.place for found in patterns() if found.text is None} == set(MADE)


@for_each(
    "source",
    [
        "from re import compile as made",
        "import re as patterns",
        "tuple(map(re.compile, texts))",
        "make = re.compile",
        "re.compile(pattern='a')",
        "from dragoman.codec.patterns import rare_pattern as rare",
        "map(rare_pattern, texts)",
        "getattr(re, name)('a')",
        "vars(re)",
    ],
)
def test_a_pattern_that_is_made_out_of_sight_is_found(source: str):
    """It has no text to judge, and no line in `MADE`."""
    assert list(out_of_sight(list(ast.walk(ast.parse(source)))))


def test_each_pattern_takes_linear_time():
    seen = {
        (found.place, found.text): faults(
            found.text, found.flags, is_searched=found.is_searched, is_whole=found.is_whole
        )
        for found in patterns()
        if found.text is not None
    }
    assert {pattern: words for pattern, words in seen.items() if words and pattern[0] not in BOUNDED} == {}
    mended = [place for (place, _), words in seen.items() if place in BOUNDED and not words]
    assert not mended, "these patterns need no reason any more"


@for_each("pattern", [*_RUNS.values(), *_MENDINGS.values()], ids=lambda pattern: pattern.pattern[:20])
def test_what_a_string_is_read_by_takes_linear_time(pattern: re.Pattern[str]):
    assert not faults(pattern.pattern, 0, is_searched=pattern in _MENDINGS.values())


@for_each("pattern", [r"(-?)0+(\d+)", r"\s*\w*\d*", r"(?:a|b)*[ab]*"])
def test_what_must_take_all_of_a_text_may_fail_at_its_end(pattern: str):
    assert not faults(pattern, 0, is_searched=False)
    assert faults(pattern, 0, is_searched=False, is_whole=True)


def test_a_group_in_a_possessive_repeat_is_a_fault():
    assert faults(r"(?:a(b)|c)*+", 0, is_searched=False)
    assert not faults(r"(?:a(?:b)|c)*+", 0, is_searched=False)


def test_every_reason_has_its_pattern():
    assert set(BOUNDED) <= {found.place for found in patterns()}


@for_each(
    ("pattern", "is_searched"),
    [
        (r"(a+)+$", False),
        (r"(?:ab|ba|a)*c", False),
        (r"(?:a|ab|b)*c", False),
        (r"\d+[.,]?\d+x", False),
        (r"\s*a?\s*:", False),
        (r"\s*:", True),
        (r'[^"]*+"', True),
        (r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', True),
        (r"<!--.*?-->", True),
        (r"<[^>]*>", True),
        (r"(?:x|<)[^>]{0,4096}>", True),
    ],
)
def test_a_slow_pattern_is_found(pattern: str, is_searched: bool):
    assert faults(pattern, 0, is_searched=is_searched)


@for_each(
    ("pattern", "is_searched"),
    [
        (r"\s*:", False),
        (r"<[^<>]*>", True),
        (r"(?<!\s)\s*+:", True),
        (r"\b\w+=", True),
        (r"(?:a+b)+c", False),
        (r'(?:[^"\\]|\\.)*+"', False),
        (r"a{0,64}b", True),
        (r"x+", True),
        (r"(?>\s*)\s*:", False),
    ],
)
def test_a_fast_pattern_is_left_alone(pattern: str, is_searched: bool):
    assert not faults(pattern, 0, is_searched=is_searched)


# ---------------------------------------------------------------- what the judge has found, in its places


def test_escaped_quotes_in_an_open_string_are_read_once():
    """A long text of escaped quotes in one delta: each was a place to search from."""

    def run(count: int) -> object:
        text = ArgumentText()
        text.add('{"a":{"b":{"c":"')
        return text.add('\\"' * (40 * count))

    assert exponent(run, 50) <= MOST_EXPONENT
    text = ArgumentText()
    text.add('{"a":"' + '\\"' * 3000 + "\\")
    text.add('"}"}{')
    assert "".join(text._pieces) == '{"a":"' + '\\"' * 3000 + '\\"}"}'


@for_each("token", ["<", "<title ", "<h1>", "raw='", "</h1>", "<script>", "&#"])
def test_a_page_in_place_of_an_error_is_read_as_far_as_it_is_shown(token: str):
    page = "<" + token * 40_000
    for value in (page.encode(), {"error": {"message": page + ">"}}):
        assert len(read_problem(value, status=502).message) <= 1_000
