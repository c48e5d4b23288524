"""Ordinary answers that look like calls stay text to the byte, with tools offered.

The set in tests/rescue/answers is written by hand. An answer says what it is: `family`, whose real marker stands in
it; `offered`, when it names an offered tool; `placement` of its example; `language`, when it is not English.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from dragoman.events import Deviation, fold
from dragoman.stages.rescue.families import FAMILIES
from for_each import for_each
from profiles import some
from rescue_cases import TOOLS, play_text

FOLDER = Path(__file__).parent / "rescue" / "answers"
Placement = Literal["", "fence", "inline", "quotation", "tool-result", "json", "diff"]


class Answer(NamedTuple):
    """One answer that is no call."""

    text: str
    family: str
    offered: bool
    placement: str
    language: str


def load_answers() -> dict[str, Answer]:
    """All of them, by a name to find them again."""
    found = {}
    for file in sorted(FOLDER.glob("*.toml")):
        for number, fields in enumerate(tomllib.loads(file.read_text(encoding="utf-8"))["answers"], 1):
            unknown = set(fields) - set(Answer._fields)
            assert not unknown, f"{file.name}: unknown fields {unknown}"
            found[f"{file.stem}-{number}"] = Answer(
                text=fields["text"],
                family=fields.get("family", ""),
                offered=fields.get("offered", False),
                placement=fields.get("placement", ""),
                language=fields.get("language", "en"),
            )
    return found


ANSWERS = load_answers()
OPENERS = {family.name: family.openers for family in FAMILIES}


def test_the_set_covers_what_it_claims():
    answers = list(ANSWERS.values())
    assert len({answer.text for answer in answers}) == len(answers) >= 300
    families = Counter(answer.family for answer in answers if answer.family)
    assert {name: count for name in OPENERS if (count := families[name]) < 5} == {}
    assert sum(answer.offered for answer in answers) >= 60
    placements = Counter(answer.placement for answer in answers if answer.placement)
    assert placements.total() >= 60 and set(placements) == set(get_args(Placement)) - {""}
    assert min(placements.values()) >= 8
    assert sum(answer.language != "en" for answer in answers) >= 40


def has_what_it_claims(answer: Answer) -> bool:
    """Whether its text holds what its fields say."""
    marks = {"fence": ("```", "~~~"), "inline": ("`",)}.get(answer.placement, ("",))
    return (
        any(mark in answer.text for mark in marks)
        and (not answer.family or any(opener in answer.text for opener in OPENERS[answer.family]))
        and (not answer.offered or any(tool.name in answer.text for tool in TOOLS))
    )


def test_each_answer_has_what_it_claims():
    assert [name for name, answer in ANSWERS.items() if not has_what_it_claims(answer)] == []


@for_each("name", ANSWERS)
def test_an_answer_stays_text(name: str):
    text = ANSWERS[name].text
    for size in (len(text), *some((1, 5), text, 2)):
        events = play_text([text[start : start + size] for start in range(0, len(text), size)])
        reply = fold(events)
        assert not reply.tool_calls and not reply.failed_calls and reply.error is None, size
        assert reply.text == text, size
        assert (reply.thinking, reply.stop_reason) == ("", "stop"), size
        assert [event.code for event in events if isinstance(event, Deviation)] == [], size
