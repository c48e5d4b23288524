"""Texts in which no call is meant, made of what each family would write: none invented, none altered."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles import some
from rescue_forms import FORMS, Form
from test_written_calls import MANY, play, some_calls


def indented(text: str, lead: str) -> str:
    return "\n".join(lead + line for line in text.split("\n"))


#: Ways to show a call without making one. Each takes its text and gives an answer.
PLACES: dict[str, Callable[[str], str]] = {
    "fence": lambda text: f"Like so:\n~~~~\n{text}\n~~~~\nThat is all.",
    "fence in a list": lambda text: f"1. Write:\n\n   ~~~~\n{indented(text, '   ')}\n   ~~~~\n\nThat is all.",
    "open fence": lambda text: f"Like so:\n\n~~~~text\n{text}",
    "indented": lambda text: f"Like so:\n\n{indented(text, '    ')}\n\nThat is all.",
    "tabs": lambda text: f"Like so:\n\n{indented(text, chr(9))}\n\nThat is all.",
    "inline": lambda text: f"Write ``{text}`` for it.",
    "quotation marks": lambda text: f'The model wrote "{text}" as text, and nobody read it.',
    "typographic": lambda text: f"The model wrote “{text}” as text, and nobody read it.",
    "guillemets": lambda text: f"Le modèle écrit «{text}», c'est tout.",
    "quoted later": lambda text: f'The log says "I see {text} and that is all.',
    "pre": lambda text: f"<p>Like so:</p>\n<pre class='a'>\n{text}\n</pre>\n<p>That is all.</p>",
    "pre in a line": lambda text: f"Like so: <pre>{text}</pre> and so on.",
    "code": lambda text: f"Like so: <code>{text}</code> and so on.",
    "block quote": lambda text: f"It said:\n\n{indented(text, '> ')}\n\nThat is all.",
}


def answers(form: Form, draw: random.Random) -> list[tuple[str, str]]:
    """Look-alikes of one form: what each is, and its text."""
    [(name, arguments)] = some_calls(draw, form, is_plain=True)[:1]
    text = form.write([(name, arguments)]).text().strip()
    found = [
        (place, show(text)) for place, show in PLACES.items() if place != "inline" or not ("`" in text or "\n" in text)
    ]
    other = form.write([("reboot", arguments)]).text()
    found += [("not offered", f"I would do this:\n{other}"), ("not offered, alone", other)]
    if form.where != "message":
        found.append(("half a marker", f"It begins with {text[: draw.randint(1, 4)]}"))
    return found


def play_answers(form: Form, draw: random.Random) -> int:
    shown = answers(form, draw)
    for place, text in shown:
        for size in (len(text), *some([4], text, 1)):
            reply = play(text, "stop", size)
            assert reply.tool_calls == [] and reply.failed_calls == (), f"{place}: {text!r}"
            assert (reply.text, reply.thinking, reply.stop_reason) == (text, "", "stop"), f"{place}: {text!r}"
    return len(shown)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.family}: {form.name}")
@settings(max_examples=2)
@given(draw=st.randoms(use_true_random=False))
def test_a_call_that_is_shown_is_none(form: Form, draw: random.Random):
    assert play_answers(form, draw) >= 10


@pytest.mark.soak
def test_five_thousand_answers(capsys):
    """The whole number, printed."""
    counts: list[int] = []

    @settings(max_examples=MANY // 4)
    @given(draw=st.randoms(use_true_random=False))
    def play_many(form: Form, draw: random.Random) -> None:
        counts.append(play_answers(form, draw))

    for form in FORMS:
        play_many(form)  # type: ignore[call-arg]
    with capsys.disabled():
        print(f"\n{sum(counts)} answers with no call meant: none invented, none altered")
    assert sum(counts) >= 5000
