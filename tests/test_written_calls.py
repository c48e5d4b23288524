"""Calls with any values, in the form of any family: delivered exactly or refused, never altered, never half; and texts
in which no call is meant: none invented, none altered.

What must come out is known from what was written (`rescue_forms.py`), not from another reading of it.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cut_reference import is_subsequence
from dragoman import _json
from dragoman.events import Event, Failure, Finish, Reply, Start, TextDelta, TextEnd, TextStart, fold
from dragoman.response_stages import Policy, stages_for
from dragoman.stages.rescue.families import FAMILIES
from dragoman.types import Tool
from for_each import for_each
from grammar import check
from profiles import some
from rescue_forms import FORMS, Calls, Form, Written

STRINGS = {"type": "array", "items": {"type": "string"}}
OPTIONS = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "object", "properties": {"c": {"type": "string"}}}},
}
#: Required and optional parameters; the fourth tool is not offered.
SCHEMAS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "run_command": (
        {"command": {"type": "string"}, "dry_run": {"type": "boolean"}, "timeout": {"type": "integer"}},
        ("command",),
    ),
    "write_file": (
        {"path": {"type": "string"}, "content": {"type": "string"}, "tags": STRINGS, "options": OPTIONS},
        ("path", "content"),
    ),
    "get_time": ({"zone": {"type": "string"}}, ()),
}
TOOLS = tuple(
    Tool(name, "", _json.raw({"type": "object", "properties": properties, "required": list(required)}))
    for name, (properties, required) in SCHEMAS.items()
)
MARKS = sorted({opener for family in FAMILIES for opener in family.openers})
CLOSERS = sorted(
    {closing.strip() for form in FORMS for _, closing in form.write([("get_time", {"zone": "a"})]).calls} - {""}
)
#: What values are made of.
WORDS = [
    "a",
    "rm -rf build",
    "ls -la",
    "Oslo",
    "naïve 北京 🌧️",
    "x = 1",
    "if a < b:",
    "def f():",
    "5 > 3",
    "C:\\new\\tmp",
]
HARD = [
    '"', "'", '""', "`", "```", "\n", "\n\n", "\\", "\\n", "{", "}", "[", "]", "(", ")", ",", ":", "<", ">", "&", "|",
    '{"a": 1}', "</", "<b>", "<!-- ", "]]", "]]>", "</parameter>", "<parameter=x>", '<parameter name="x">', "<arg_key>",
    "</arg_value>", '", "timeout": 5', "'''", '"""', "\t", " ", "  ", "#", "//", "null", "true", "<think>", "</think>",
]  # fmt: skip
#: The first marker of what closes a call.
MARKER = re.compile(r"\s*(?:[^\w\s].*?[>\]|](?=[<\[\s\]]|$))", re.DOTALL)
ENDS = ("stop", "length", "reset")
#: Examples of each form in `make soak`.
MANY = 40


def play(text: str, end: str, size: int) -> Reply:
    return play_with(TOOLS, text, end, size)


def play_with(tools: Sequence[Tool], text: str, end: str, size: int) -> Reply:
    """What comes of a text in pieces of this size, with these tools offered."""
    return play_pieces(tools, [text[start : start + size] for start in range(0, len(text), size)], end)


def play_pieces(tools: Sequence[Tool], pieces: Sequence[str], end: str) -> Reply:
    """What comes of the pieces of a text, with these tools offered."""
    numbers = itertools.count()
    stages = stages_for(tools, Policy(), new_id=lambda: f"{next(numbers):024d}")
    last: Event = Failure("connection", "reset") if end == "reset" else Finish(end)  # type: ignore[arg-type]
    out: list[Event] = []
    for event in [Start(), TextStart(0), *(TextDelta(0, piece) for piece in pieces), TextEnd(0), last]:
        events = [event]
        for stage in stages:
            events = stage.feed(events)
        out += events
    return fold(check(out))


def delivered(reply: Reply) -> Calls:
    return [(call.name, json.loads(call.arguments)) for call in reply.tool_calls]


def exact(calls: Calls) -> list[str]:
    """Texts that tell 1 from 1.0 and from true, whatever the order of the keys."""
    return [json.dumps(call, sort_keys=True) for call in calls]


# ------------------------------------------------------------ values


def text_value(draw: random.Random, form: Form, *, is_plain: bool) -> str:
    if is_plain:
        return " ".join(draw.sample(WORDS, draw.randint(1, 4))).strip()
    count = draw.choice((1, 2, 3, 5, 8))
    pools = (WORDS, HARD, MARKS, CLOSERS)
    text = "".join(draw.choice(draw.choice(pools)) for _ in range(count))
    if draw.random() < 0.03:
        text += "long " * 2000
    while any(bad in text for bad in form.never):
        for bad in form.never:
            text = text.replace(bad, "")
    return text.rstrip("\n") if form.trims and text[:1] == "\n" else text


def arguments(draw: random.Random, form: Form, name: str, *, is_plain: bool) -> dict[str, Any]:
    properties, required = SCHEMAS[name]
    found: dict[str, Any] = {}
    for key, schema in properties.items():
        if key in required or draw.random() < 0.5:
            match schema["type"]:
                case "string":
                    found[key] = text_value(draw, form, is_plain=is_plain)
                case "boolean":
                    found[key] = draw.random() < 0.5
                case "integer":
                    found[key] = draw.randint(-5, 5000)
                case "array":
                    found[key] = [text_value(draw, form, is_plain=is_plain) for _ in range(draw.randint(1, 3))]
                case _:
                    found[key] = {"a": draw.randint(0, 9), "b": {"c": text_value(draw, form, is_plain=True)}}
    return found


def some_calls(draw: random.Random, form: Form, *, is_plain: bool) -> Calls:
    names = [draw.choice(list(SCHEMAS)) for _ in range(draw.randint(1, form.most))]
    return [(name, arguments(draw, form, name, is_plain=is_plain)) for name in names]


# ------------------------------------------------------------ what must hold


def whole_before(form: Form, written: Written, cut: int, end: str) -> int:
    """How many calls of a text that ends at `cut` may be delivered."""
    text, count, place = written.text()[:cut], 0, len(written.lead)
    for body, closing in written.calls:
        marker = MARKER.match(closing)
        closed = place + len(body) + (marker.end() if marker is not None else 0)
        behind = text[place + len(body) :].strip(" \n,;")  # the first letter of the next call proves this one
        is_whole = cut >= closed
        if form.closes == "body" and not is_whole:
            is_whole = cut >= place + len(body) and end == "stop"
        if form.closes == "body" and marker is None and end != "stop":
            is_whole = cut >= place + len(body) and len(behind) > 0
        place += len(body) + len(closing)
        if not is_whole:
            break
        count += 1
    return count


def assert_cuts_are_safe(form: Form, written: Written, calls: Calls, cuts: list[int], sizes: tuple[int, ...]) -> int:
    text, wanted, played = written.text(), exact(calls), 0
    for cut, end in itertools.product(cuts, ENDS):
        for size in sizes:
            reply = play(text[:cut], end, size)
            seen = exact(delivered(reply))
            most = 0 if form.where == "message" and end != "stop" else whole_before(form, written, cut, end)
            assert is_subsequence(seen, wanted), f"altered: {text[:cut]!r} ({end}): {seen}"
            assert is_subsequence(seen, wanted[:most]), f"half: {text[:cut]!r} ({end}): {seen}"
            played += 1
    return played


def assert_whole(form: Form, calls: Calls, *, is_plain: bool) -> int:
    """Play a text whole and token by token; gives how many of its calls were delivered."""
    text = form.write(calls).text()
    lead = "" if form.where == "message" else "Let me see.\n"
    seen = []
    for size in (len(lead) + len(text), *some((5, 1) if len(text) < 2000 else [5], text, 2)):
        reply = play(lead + text, "stop", size)
        seen = exact(delivered(reply))
        if is_plain:
            assert seen == exact(calls), text
            assert reply.text.strip() == lead.strip(), text
        else:
            # A value may hold a call of its family: what is delivered is what was meant, or nothing is.
            assert is_subsequence(seen, exact(calls)), f"altered: {text!r}: {seen}"
    return len(seen)


def play_form(form: Form, draw: random.Random, *, cuts: int) -> tuple[int, int, int]:
    """One text of plain values and one of hard ones: calls, those delivered, and cuts."""
    plain, hard = (some_calls(draw, form, is_plain=is_plain) for is_plain in (True, False))
    found = assert_whole(form, plain, is_plain=True) + assert_whole(form, hard, is_plain=False)
    played = 0
    for calls in (plain, hard):
        written = form.write(calls)
        size = len(written.text())
        places = sorted({draw.randint(0, size) for _ in range(cuts)} | {size})
        played += assert_cuts_are_safe(form, written, calls, places, (size + 1,))
    return len(plain) + len(hard), found, played


def test_every_family_has_a_form():
    assert {form.family for form in FORMS} == {family.name for family in FAMILIES}
    wheres = {family.name: family.where for family in FAMILIES}
    assert {form.family for form in FORMS if form.where != wheres[form.family]} == set()


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.family}: {form.name}")
@settings(max_examples=2)
@given(draw=st.randoms(use_true_random=False))
def test_calls_with_any_values(form: Form, draw: random.Random):
    play_form(form, draw, cuts=2)


@for_each("form", [form for form in FORMS if form.closes == "tag"], ids=lambda form: form.name)
def test_an_argument_that_comes_twice_is_two_readings(form: Form):
    text = form.write([("run_command", {"command": "ls", "timeOut": "rm"})]).text().replace("timeOut", "command")
    for size in (1, len(text)):
        assert delivered(play(text, "stop", size)) == []


def test_a_missing_quotation_token_is_read_at_the_end_of_an_answer_alone():
    """What closes a call may stand in a text: only an answer that ended by itself says that no more was to come."""
    lead = '<|tool_call>call:run_command{command:<|"|>'
    for text, wanted in (
        ("ls}<tool_call|>", "ls"),
        ('ls}<tool_call|> -a<|"|>}<tool_call|>', "ls}<tool_call|> -a"),
        ("ls}<tool_call|> -a", None),
        ("ls}}<tool_call|>", None),
        ("ls,dry_run:true}<tool_call|>", None),
        ("ls}", None),
        ('ls}<tool_call|><|tool_call>call:get_time{zone:<|"|>a<|"|>}<tool_call|>', None),
    ):
        for size in (1, 3, 500):
            calls = [("run_command", {"command": wanted})] if wanted is not None else []
            assert delivered(play(lead + text, "stop", size)) == calls
            for end, cut in itertools.product(("length", "reset"), range(len(text))):
                assert delivered(play(lead + text[:cut], end, 500)) in ([], [("run_command", {"command": wanted})])
            assert delivered(play(lead + "ls}<tool_call|>", "length", size)) == []


@pytest.mark.soak
def test_five_thousand_calls(capsys):
    """The whole number, printed."""
    total = Counter[str]()

    @settings(max_examples=MANY)
    @given(draw=st.randoms(use_true_random=False))
    def play_many(form: Form, draw: random.Random) -> None:
        total.update(dict(zip(("calls", "found", "cuts"), play_form(form, draw, cuts=8), strict=True)))

    for form in FORMS:
        play_many(form)  # type: ignore[call-arg]
    with capsys.disabled():
        print(f"\n{dict(total)} in {len(FORMS)} forms: none altered, none half")
    assert total["calls"] >= 5000 and total["found"] >= total["calls"] // 2
