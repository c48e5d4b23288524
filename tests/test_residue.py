"""Nothing of an answer is dropped beside its calls but white space and what its family leaves behind them.

The text around the calls is known, because it was written here: what stays must be all of it, byte for byte, less a
beginning of what stands behind the calls that is made of the family's own marks. Where no call is delivered and none
fails, the answer is the text as it came.
"""

from __future__ import annotations

import re
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.stages.rescue.cursor import Family
from dragoman.stages.rescue.families import FAMILIES
from dragoman.stages.rescue.stop_tokens import OWN_TURNS
from for_each import for_each
from profiles import IS_SOAK, some
from rescue_forms import FORMS, Form
from test_written_calls import HARD, WORDS, delivered, exact, play, some_calls

FAMILY = {family.name: family for family in FAMILIES}
#: What closes other families' calls, and what closes nothing.
STRAY = (
    "</tool_call>",
    "</function>",
    "<|im_end|>",
    "]]",
    "}",
    ")",
    "</s>",
    "<|call|>",
    "```",
    "…",
    "\n",
    " ",
    ";",
    ",",
)
#: What stands between calls, in each family.
JOINTS = ("}", "]", ")", ",", ";", "```")

#: Families in which no marker of theirs tells where a call ends that cannot be read.
UNCLOSED = ("mistral", "llama3", "granite", "phi4", "gigachat")


def marks_of(form: Form, family: Family) -> list[str]:
    """What may leave with the calls of a form: its residue, what closes them, and what stands between them."""
    written = form.write([("get_time", {"zone": "a"})])
    closing = [written.tail.strip(), *(end.strip() for _, end in written.calls)]
    pieces = [piece for end in closing for piece in (end, *end.split("\n"))]
    return sorted({mark for mark in (*family.residue, *pieces, *JOINTS) if mark}, key=len, reverse=True)


def without_space(text: str) -> str:
    return "".join(text.split())


def rests(behind: str, marks: list[str], most: int = 12) -> set[str]:
    """What may be left of the text behind the calls: all of it, or what follows marks at its beginning."""
    found, waiting = set(), {behind}
    for _ in range(most):
        found |= waiting
        waiting = {text[len(mark) :] for text in waiting for mark in marks if text.startswith(mark)} - found
    return found


def judge(form: Form, dice: Random) -> None:
    family = FAMILY[form.family]
    marks = marks_of(form, family)
    calls = some_calls(dice, form, is_plain=True)
    lead = (
        "" if form.where == "message" else dice.choice(["", "I see.\n", f"{' '.join(dice.sample(WORDS[:5], 2))}\n\n"])
    )
    pools = (family.residue or STRAY, STRAY, WORDS[:5], HARD[:3])
    behind = "".join(dice.choice(dice.choice(pools)) for _ in range(dice.randint(0, 5)))
    text = lead + form.write(calls).text() + behind
    for size in (len(text), dice.choice([1, 3, 8])):
        reply = play(text, "stop", size)
        seen = exact(delivered(reply))
        told = (form.family, text, reply.text, seen)
        if not seen and not reply.failed_calls:
            assert without_space(reply.text) == without_space(text), told
        elif seen == exact(calls):
            left, known = without_space(reply.text), without_space(lead)
            assert left.startswith(known), told
            compact = [without_space(mark) for mark in marks]
            assert left[len(known) :] in rests(without_space(behind), compact), told
        else:
            assert reply.failed_calls, told


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.family}: {form.name}")
@settings(max_examples=60 if IS_SOAK else 3)
@given(dice=st.randoms(use_true_random=False))
def test_only_residue_is_dropped(form: Form, dice: Random):
    judge(form, dice)


@for_each("turn", OWN_TURNS, ids=str)
def test_a_turn_of_its_own_hides_no_call_behind_it(turn: str):
    """It is no other speaker's, in whose turn calls are made up."""
    form = next(form for form in FORMS if form.family == "hermes")
    first, second = ("get_time", {"zone": "a"}), ("run_command", {"command": "ls"})
    reply = play(f"{form.write([first]).text()}\n{turn}\nThen:\n{form.write([second]).text()}", "stop", 7)
    assert (exact(delivered(reply)), reply.text.strip()) == (exact([first, second]), "Then:")


@for_each("form", [form for form in FORMS if form.where == "anywhere"], ids=lambda form: f"{form.family}: {form.name}")
def test_what_is_left_of_a_call_that_cannot_be_read_leaves_with_it(form: Form):
    """Words stand where only the next argument or the end may: they are no words of the answer, nor are its tags."""
    written = form.write([("run_command", {"command": "ls", "timeout": 5})])
    ((body, closing),) = written.calls
    for broken in (f"{body} MORE ", body.replace("5", "5 MORE", 1)):
        text = f"{written.lead}{broken}{closing}{written.tail}\nAfter."
        for size in (*some((1, 7), text, 1), len(text)):
            reply = play(text, "stop", size)
            left = re.sub("MORE|<.*>", "", reply.text).strip("]; \n") if form.family in UNCLOSED else reply.text.strip()
            assert not reply.failed_calls or left in ("After.", text), (text, reply.text)


@for_each(
    "form",
    # Not where a list of Python is open, or an object of MiniMax M3's tags.
    [form for form in FORMS if form.where == "anywhere" and form.name != "Python" and form.family != "minimax-m3"],
    ids=lambda form: f"{form.family}: {form.name}",
)
def test_what_follows_a_call_that_cannot_be_read_stays(form: Form):
    """Without its closing marker nobody knows where it ends, so that words behind its paragraph are none of it."""
    written = form.write([("run_command", {"command": "ls", "timeout": 5})])
    ((body, closing),) = written.calls
    text = f"{written.lead}{body} MORE\n\nIt stopped. {closing.strip()}"
    for size in (*some((1, 7), text, 1), len(text)):
        assert "It stopped." in play(text, "stop", size).text, text
