"""`SaidText` knows exactly one text again, however it was cut, and lets its outer blanks be told otherwise."""

from __future__ import annotations

import random

from dragoman.codec.parts.open_parts import SaidText
from for_each import for_each

TEXTS = (
    "The tests take four minutes.",
    "\n\n Two lines:\n  the second one. \n",
    "中文 und eäch 😀 of them",
    " " * 5000 + "behind many blanks" + "\n" * 5000 + "words",
)


def cut(text: str, chance: random.Random) -> list[str]:
    places = sorted(chance.randrange(len(text) + 1) for _ in range(chance.choice((0, 1, 3, 200))))
    return [text[begin:end] for begin, end in zip([0, *places], [*places, len(text)], strict=True)]


@for_each("text", TEXTS)
def test_it_knows_its_text_alone(text: str) -> None:
    chance = random.Random(text)
    for _ in range(20):
        said = SaidText()
        for piece in cut(text, chance):
            said.pieces.append(piece)
            if chance.random() < 0.3:
                said.fold()
        assert said.is_repeated(text)
        assert said.rest_of(f"{text} and more") == " and more"
        at = chance.randrange(len(text) - len(text.lstrip()), len(text.rstrip()))
        other = text[:at] + ("x" if text[at] != "x" else "y") + text[at + 1 :]
        assert not said.is_repeated(other)
        assert not said.is_repeated(text.rstrip()[:-1])
        assert said.is_repeated(f"\n{text.strip()} \n")


def test_blanks_are_text_too() -> None:
    said = SaidText()
    assert said.plus("\n") != said.plus()
    assert said.plus("\n").plus("words") == said.plus("\nwords")
