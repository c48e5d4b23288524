"""Long argument text is looked at stretch by stretch, so that no search holds the interpreter: it reads the same."""

from __future__ import annotations

import random

import pytest

from dragoman.codec import patterns
from dragoman.codec.parts.argument_text import ArgumentText, Settled
from dragoman.stages.argument_repair import string_text
from dragoman.stages.argument_repair.repairer import Repairer
from dragoman.stages.known_schemas import schema_of
from places import TOOLS
from test_linear_time import TOKENS

_SCHEMA = schema_of(TOOLS[0])
_MORE = [
    "\\u00e9",
    "\\ud83d\\ude00",
    "\\ud83d",
    "\\ude00",
    "\\n",
    "\\x41",
    "\\'",
    "\x01",
    ',"a":',
    "}",
    '"}',
    "'}",
    "]}",
]


def read(texts: list[str]) -> tuple[list[str], Settled, str, object, object, str]:
    """All that comes of arguments in these pieces."""
    found = ArgumentText()
    left = [found.add(text) for text in texts]
    repairer = Repairer(_SCHEMA)
    given = "".join(map(repairer.feed, texts))
    return left, found.settle(proven=True), given, repairer.close(), repairer.codes, repairer.problem


@pytest.mark.parametrize("stretch", [2, 3, 5, 8, 13, 50])
def test_stretches_change_nothing(stretch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(stretch)
    texts = []
    for _ in range(1_500):
        text = chance.choice(['{"a":"', "{'a':'", '{"x":', '{"b":["', "{", "{“a”:“"])
        text += "".join(chance.choices([*TOKENS, *_MORE], k=chance.randrange(1, 14))) + chance.choice(
            ["", '"}', "'}", "}"]
        )
        size = chance.choice([1, 7, 48, len(text)])
        texts.append([text[start : start + size] for start in range(0, len(text), size)])
    whole = [read(each) for each in texts]
    monkeypatch.setattr(patterns, "STRETCH", stretch)
    monkeypatch.setattr(string_text, "STRETCH", stretch)
    assert [read(each) for each in texts] == whole
    assert sum(repaired is not None for _, _, _, repaired, _, _ in whole) > 40
