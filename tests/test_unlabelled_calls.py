"""Chat streams whose fragments leave out names, ids and indexes at random: each call is the model's, or it fails.

The model's calls are made first, then written as a server may write them: one after the other, announced together, or
in turns, one fragment a chunk or several; then labels are taken away. What is delivered must be of the calls that were
made, whatever was taken away: where two makings give one wire, a reader that delivers is wrong about one of them.
"""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from typing import Any, NamedTuple

import pytest

from codec.parts.test_call_matching import stream
from dragoman.decoding import decode
from profiles import IS_SOAK

ANYTHING: dict[str, Any] = {"type": "object", "properties": {"bell": {}, "text": {"type": "string"}}}
TOOLS = [
    {"name": "ping", "parameters": {"type": "object", "properties": {}}},
    {"name": "ring", "parameters": ANYTHING},
    {"name": "chime", "parameters": {**ANYTHING, "required": ["text"]}},
]
ARGUMENTS = {
    "ping": ["", "{}"],
    "ring": ["", "{}", '{"bell":1}', '{"bell":2,"text":"say {} or {\\"bell\\":1}"}', '{"bell":{"bell":1}}'],
    "chime": ['{"text":"a"}', '{"text":"b, c"}', '{"text":"d","bell":[{},{"bell":1}]}'],
}
ORDERS = ("sequential", "announced", "in turns")
INDEXES, IDS, NAMES = ("all", "first", "rest", "never"), ("all", "first", "never"), ("first", "all", "last")


class Made(NamedTuple):
    """What the model called, and how the server wrote it."""

    calls: list[tuple[str, str]]
    order: str
    index: str
    id: str
    name: str
    dropped: int

    @property
    def is_labelled(self) -> bool:
        """Whether nothing is missing that a usual client needs."""
        by_index = self.index == "all" and self.id == "first" and self.name == "first"
        in_order = self.order == "sequential" and self.index == "never" and self.id == "first" and self.name == "first"
        return not self.dropped and (by_index or (in_order and all(text for _, text in self.calls)))


def make(dice: random.Random) -> tuple[Made, bytes]:
    names = dice.choices(["ping", "ring", "chime"], k=dice.choice([1, 2, 2, 3]))
    made = Made(
        [(name, dice.choice(ARGUMENTS[name])) for name in names],
        dice.choice(ORDERS), dice.choice(INDEXES), dice.choice(IDS), dice.choice(NAMES), dice.choice([0, 0, 1, 2]),
    )  # fmt: skip
    if made.name == "last":  # until its name comes, a call has its index
        made = made._replace(index="all")
    entries = [written(made, number, dice) for number in range(len(made.calls))]
    whole = [list(call) for call in entries]
    rounds: list[list[dict[str, Any]]] = []
    if made.order == "sequential":
        rounds = [[entry] for call in entries for entry in call]
    else:
        if made.order == "announced":
            rounds.append([call[0] for call in entries])
            entries = [call[1:] for call in entries]
        for turn in range(max(map(len, entries), default=0)):
            rounds.append([call[turn] for call in entries if turn < len(call)])
    if dice.random() < 0.5:
        rounds = [[entry] for entries in rounds for entry in entries]
    everything = [entry for entries in rounds for entry in entries]
    for _ in range(made.dropped):
        before = copy.deepcopy(everything)
        drop(dice.choice(everything), dice, keys=("index", "id", "name") if made.index == "all" else ("index", "id"))
        if not all(any(map(has_label, call)) for call in whole):  # nothing tells that there is this call
            for entry, kept in zip(everything, before, strict=True):
                entry.update(kept)
    return made, stream(*[entries for entries in rounds if entries])


def written(made: Made, number: int, dice: random.Random) -> list[dict[str, Any]]:
    """The fragments of one call."""
    name, text = made.calls[number]
    marks = sorted(dice.sample(range(1, len(text)), min(dice.randrange(3), len(text) - 1))) if len(text) > 1 else []
    pieces = [text[start:end] for start, end in zip([0, *marks], [*marks, len(text)], strict=True)]
    pieces = ["", *pieces] if dice.random() < 0.6 or made.order == "announced" else pieces
    entries: list[dict[str, Any]] = []
    for place, piece in enumerate(pieces):
        entry: dict[str, Any] = {"type": "function", "function": {"arguments": piece}}
        if made.index == "all" or (made.index in ("first", "rest") and (made.index == "first") == (place == 0)):
            entry["index"] = number
        if made.id == "all" or (made.id == "first" and place == 0):
            entry["id"] = f"c{number}"
        if made.name == "all" or place == (0 if made.name == "first" else len(pieces) - 1):
            entry["function"]["name"] = name
        entries.append(entry)
    return entries


def has_label(entry: dict[str, Any]) -> bool:
    return not {"index", "id"}.isdisjoint(entry) or "name" in entry["function"]


def drop(entry: dict[str, Any], dice: random.Random, *, keys: tuple[str, ...]) -> None:
    """Take one label away. Without a name and an index an entry goes on with the call before it, whatever its id."""
    key = dice.choice(keys)
    entry.pop(key, None)
    if key == "name":
        entry["function"].pop(key, None)


def key_of(name: str, value: Any) -> str:
    return f"{name} {json.dumps(value, sort_keys=True)}"


def play(seed: int) -> tuple[Made, bytes, bool, str]:
    """Whether the stream was read rightly, and what was read."""
    made, wire = make(random.Random(seed))
    reply = decode(wire, "openai-chat", tools=TOOLS)
    truth = Counter(key_of(name, json.loads(text or "{}")) for name, text in made.calls)
    got = Counter(key_of(call.name, call.values()) for call in reply.tool_calls)
    is_right = got <= truth and (got == truth or not made.is_labelled)
    return made, wire, is_right, f"{dict(got)} of {dict(truth)}"


@pytest.mark.parametrize("seed", [17_990, 24_426, 50_113, 55_585, 57_343, 59_803])
def test_what_leaves_its_index_away_is_nobodys(seed: int):
    """A name without an index is not that of a nameless call with one; nor are arguments under another id. What comes
    behind a lost fragment, at its index or by its name, is lost too. Where a name came twice, a second beginning of
    arguments may be that of a second call."""
    _, _, is_right, got = play(seed)
    assert is_right, got


@pytest.mark.parametrize("group", range(8))
def test_what_is_delivered_was_made(group: int):
    wrong, delivered = [], 0
    for seed in range(group * 500, group * 500 + (500 if IS_SOAK else 200)):
        made, _, is_right, got = play(seed)
        delivered += not got.startswith("{}")
        if not is_right:
            wrong.append((seed, made, got))
    assert wrong == []
    assert delivered > 40  # most streams are readable all the same
