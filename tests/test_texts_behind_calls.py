"""What stands behind a call whose brackets closed it: words, or the rest of its arguments (`stages/rescue/behind/`).

The reference shares no code with the reader. A body is cut anywhere, the brackets that are open there are written into
it, and its rest follows: that call is never run. A text is the rest of a body where `json` reads some beginning and it
as one object. A whole call is run with words behind it that have no bracket, no key and no tag of its own.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dragoman import _json
from dragoman.events import Reply
from dragoman.types import Tool
from for_each import for_each
from profiles import examples, some
from rescue_forms import FORMS, Calls, Form
from test_joined_calls import outcome
from test_written_calls import arguments, delivered, exact, play, play_with

CLOSED = [form for form in FORMS if form.closes == "body"]
FOUND = [form for form in CLOSED if form.where != "message"]
IDS = [f"{form.family}: {form.name}" for form in CLOSED]
#: What stands between an early end and the rest.
JOINTS = ("", " ", ", ", ",", "\n", ",\n", "; ", "{", "\n\n", " so ", "\nDone.\n", "\nIt is done, I think.\n\n", "</b>",
          '"', '" ', '\n"', '", ')  # fmt: skip
#: Words behind a call, and what stands between them.
WORDS = (
    "Done", "It is done.", '"Done"', '"It is done"', ":)", ":-)", "=>", "->", "[1] source", "[Here](x)", "- one",
    "* two", "1. three", "1) four", "(5 s)", "city: Oslo", "Note: so it is", "**Now**", "C'est fait", "¿Qué?", "完成。",
    "готово", "`ls`", "I'll wait", "50 %", "a = b", "x == y", '{"temperature": 5}', '{"ok": true, "rows": [1, 2]}',
    "{}", "[]", "— so", "🌧️", "`{x}`", 'He said "yes".', "5 > 3", "</b>", "```\nx = {1: 2}\n```", "f(x)",
    "| a | b |", "A `}` ends it", "https://a.b/c?d=e",
)  # fmt: skip
BETWEEN = ("\n", " ", "\n\n", " and ", "\n- ")
GIVEN = "zone"


def open_at(text: str) -> str:
    """What closes what is open at the end of a text of JSON or of Python, told by its marks alone."""
    ends, quote, at = [], "", 0
    while at < len(text):
        mark = text[at]
        if quote:
            if mark == "\\":
                at += 1
            elif mark == quote:
                quote = ""
        elif mark == '"' or (mark == "'" and ")" in ends):
            quote = mark
        elif mark in "{[(":
            ends.append({"{": "}", "[": "]", "(": ")"}[mark])
        elif mark in "}])" and ends:
            ends.pop()
        at += 1
    return quote + "".join(reversed(ends))


def is_free(body: str, place: int) -> bool:
    """Whether a mark that is written there is one: none behind a backslash, or within a token."""
    before = body[:place]
    in_token = before.rfind("<") > before.rfind(">") and re.match(r"<[|\w\"]*>", body[before.rfind("<") :])
    return (len(before) - len(before.rstrip("\\"))) % 2 == 0 and not in_token


def early_end(form: Form, draw: random.Random) -> tuple[str, Calls]:
    """A text with one call that closes too early, and what was meant."""
    name = draw.choice(("run_command", "write_file"))
    is_gemma = form.family in ("gemma", "gemma-bare")  # whose quotation marks are tokens of their own
    meant = [(name, arguments(draw, form, name, is_plain=is_gemma or draw.random() < 0.7))]
    written = form.write(meant)
    if any(mark in written.calls[0][0] for mark in re.findall(r"<[^<>]+>", written.calls[0][1] + written.tail)):
        # What closes the call closes it there too.
        meant = [(name, arguments(draw, form, name, is_plain=True))]
        written = form.write(meant)
    ((body, closing),) = written.calls
    begin = min(at for mark in "{(" if (at := body.find(mark, body.index(name))) >= 0)
    place = draw.choice([at for at in range(begin + 1, len(body)) if is_free(body, at)])
    ends = list(open_at(written.lead * draw.randint(0, 1) + body[:place]))
    if is_gemma and form.name != "parentheses" and ends[0] == '"':
        ends[0] = '<|"|>'
    if body[:place].count("<escape>") % 2:
        ends.insert(0, "<escape>")
    early = "".join(ends[: draw.randint(min(2, len(ends)), len(ends))] if draw.random() < 0.3 else ends)
    return written.lead + body[:place] + early + draw.choice(JOINTS) + body[place:] + closing + written.tail, meant


def assert_never_run(text: str, meant: Calls, *, sizes: tuple[int, ...]) -> None:
    whole = play(text, "stop", len(text) + 1)
    if whole.error is None:
        assert exact(delivered(whole)) in ([], exact(meant)), f"{text!r}: {delivered(whole)}"
    for size in some(sizes, text, 3):
        assert outcome(play(text, "stop", size)) == outcome(whole), f"in deltas of {size}: {text!r}"


def play_early_end(form: Form, draw: random.Random) -> None:
    text, meant = early_end(form, draw)
    assert_never_run(text, meant, sizes=(1, 7) if len(text) < 1000 else ())


@pytest.mark.parametrize("form", CLOSED, ids=IDS)
@settings(max_examples=4)
@given(draw=st.randoms(use_true_random=False))
def test_a_body_that_was_cut_by_its_own_brackets_is_never_run(form: Form, draw: random.Random):
    play_early_end(form, draw)


def words(draw: random.Random) -> str:
    return "".join(draw.choice(WORDS) + draw.choice(BETWEEN) for _ in range(draw.randint(1, 8))).strip()


def play_words(form: Form, draw: random.Random) -> None:
    """A whole call of a tool whose only argument it has, with words behind it that are none of its arguments."""
    call = ("get_time", {GIVEN: draw.choice(("a", "Oslo", "it's 5"))})
    text = form.write([call]).text().rstrip() + draw.choice(("\n", " ", "\n\n")) + words(draw)
    whole = play(text, "stop", len(text) + 1)
    assert delivered(whole) == [call] and whole.error is None, f"{text!r}: {outcome(whole)}"
    assert outcome(play(text, "stop", draw.choice((1, 3, 7)))) == outcome(whole), text


@pytest.mark.parametrize("form", FOUND, ids=lambda form: f"{form.family}: {form.name}")
@settings(max_examples=4)
@given(draw=st.randoms(use_true_random=False))
def test_a_whole_call_with_words_behind_it_is_run(form: Form, draw: random.Random):
    play_words(form, draw)


@for_each("form", FOUND, ids=lambda form: f"{form.family}: {form.name}")
def test_a_call_that_its_brackets_closed_before_thinking_ends_is_a_thought(form: Form):
    """An answer follows it, in which the rest of its arguments would stand too."""
    written = form.write([("run_command", {"command": "ls"})])
    text = written.lead + written.calls[0][0]
    if "```" in text or "(" in text:
        return  # a tag is code in an open fence, and Python's list is open
    for behind in ("\n</think>\nDone.", ',\n</think>", "timeout": 5}}', "\n</think>\n"):
        replies = [play(text + behind, "stop", size) for size in (*some((1, 3), text + behind, 1), 500)]
        assert delivered(replies[0]) == ([] if behind.strip()[-1] != ">" else [("run_command", {"command": "ls"})])
        assert all(outcome(reply) == outcome(replies[0]) for reply in replies)


# ------------------------------------------------------------ a reference that reads JSON

#: What a text behind a call is made of.
PARTS = (
    "}", "}}", "{", '"', "]", "[", ", ", ":", '"k": ', '"a"', "5", "\n", " ", "\\", "Done.", "{}", '{"k": 1}', '": ',
    "'", "words of it",
)  # fmt: skip
#: How bodies begin that a text may be the rest of: left between two values, and left inside of a text.
OUTSIDE = ('{"x": 1', '{"x": {"y": 1', '{"x": [1', '{"x": [{"y": 1')
INSIDE = ('{"x": "a', '{"x": {"y": "a', '{"x": ["a')


def is_rest(text: str, *, ends_in_text: bool) -> bool:
    """Whether a beginning of a text is the rest of an object that `json` reads, and the text goes on as words. One
    brace right behind the call is too many: nothing is missing before it."""
    bare = text.lstrip()
    outside = bare[1:] if bare[:1] == "}" else text
    rests = [(begin + joint, outside) for begin in OUTSIDE for joint in ("", ",")]
    rests += [(begin, text) for begin in INSIDE] if ends_in_text else ()
    for begin, rest in rests:
        try:
            value, end = json.JSONDecoder(strict=False).raw_decode(begin + rest)
        except ValueError:
            continue
        behind = (begin + rest)[end:].lstrip("}] \t\r\n")
        goes_on = behind[:1] in ('"', "'", "\\") or (behind[:1] in (",", ";", ")") and behind.strip(",;) \n") != "")
        if isinstance(value, dict) and end > len(begin) and not goes_on:
            return True
    return False


@pytest.mark.parametrize("value", ["a", 5])
@settings(max_examples=examples(200))
@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=9).map("".join))
@example('", "k": 5}')
@example(', "k": {}}')
@example(' words of it"}')
def test_what_json_reads_as_the_rest_of_a_body_is_none_of_words(value: Any, text: str):
    play_reference(value, text)


def play_reference(value: Any, text: str) -> bool:
    """One text behind one call; gives whether the reference takes it as the rest."""
    tool = Tool("f", "", _json.raw({"type": "object", "properties": {"x": {}}}))
    written = "[TOOL_CALLS]f[ARGS]" + json.dumps({"x": value}) + text
    whole: Reply = play_with([tool], written, "stop", len(written))
    is_more = is_rest(text, ends_in_text=value == "a")
    if is_more:
        assert delivered(whole) == [] or whole.error is not None, written
    if not set(text) & {"{", "}", ":", '"', "'"}:
        assert delivered(whole) == [("f", {"x": value})], written
    for size in some((1, 3), written, 3):
        assert outcome(play_with([tool], written, "stop", size)) == outcome(whole), written
    return is_more
