"""What makes repaired arguments legitimate, as properties over arguments that are almost JSON.

A text that is delivered has exactly one reading, by a reference reader that shares no code with dragoman, and that
reading is what the writer meant; nothing behind it was dropped but residue; and however the text is cut, it comes to
the same, and its deltas together are its final text.
"""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from typing import Any

import pytest

from dragoman import _json
from dragoman.events import Event, ToolCallDelta, ToolCallEnd, ToolCallFailed, fold
from dragoman.ids import new_id
from dragoman.pipe import Reader
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, stages_for
from dragoman.types import Tool
from grammar import check
from near_json_reference import Reference
from near_json_texts import CLASSES, SCHEMA, SLIPS, Written, slip, write

NAMES = frozenset([*SCHEMA["properties"], "width", "label", "old", "new"])


#: The same names, of any type: nothing is coerced.
UNTYPED: dict[str, Any] = {"type": "object", "properties": {name: {} for name in SCHEMA["properties"]}}
UNTYPED["properties"]["more"] = {"properties": {"width": {}, "label": {}, "old": {}, "new": {}}}


def answered(pieces: list[str], schema: dict[str, Any]) -> tuple[str | None, str]:
    """The arguments that are delivered of a streamed call (None when it fails), and its deltas together."""
    tool = Tool("f", "", _json.raw(schema))
    chosen = PROTOCOLS["openai-chat"]
    decoder = chosen.decoder(new_id=new_id, offered_names=frozenset(["f"]))
    reader = Reader(decoder, stages_for((tool,), Policy(), new_id=new_id))
    calls: list[Any] = [{"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}]
    calls += [{"index": 0, "function": {"arguments": piece}} for piece in pieces]
    events: list[Event] = []
    for call in calls:
        frame = {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]}
        events += reader.feed(b"data: %b\n\n" % json.dumps(frame).encode())
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    events += reader.feed(b"data: %b\n\ndata: [DONE]\n\n" % json.dumps(end).encode())
    events += reader.close()
    check(events)
    fold(events)
    ends = [event for event in events if isinstance(event, ToolCallEnd)]
    failed = [event for event in events if isinstance(event, ToolCallFailed)]
    assert len(ends) + len(failed) == 1
    deltas = "".join(event.text for event in events if isinstance(event, ToolCallDelta))
    return (ends[0].call.arguments if ends else None), deltas


def cut(text: str, dice: random.Random) -> list[str]:
    places = (
        sorted(dice.sample(range(1, len(text)), min(len(text) - 1, dice.randrange(1, 12)))) if len(text) > 1 else []
    )
    return [text[start:end] for start, end in itertools.pairwise([0, *places, len(text)])]


def judge(written: Written, dice: random.Random) -> str:
    """Deliver a text whole and in pieces; gives "meant" or "refused". A wrong value fails."""
    whole, deltas = answered([written.text], written.schema)
    pieces, told = answered(cut(written.text, dice), written.schema)
    assert whole == pieces, written
    if whole is None:
        return "refused"
    assert deltas == told == whole, written
    assert json.loads(whole) == written.meant, (written, whole)
    return "meant"


def texts(count: int, seed: int) -> list[Written]:
    dice = random.Random(seed)
    found = []
    for number in range(count):
        if number % 5 == 4:
            found.append(slip(dice.randrange(1 << 40), SLIPS[number // 5 % len(SLIPS)]))
            continue
        names = [CLASSES[number % len(CLASSES)], *dice.sample(CLASSES, dice.choice([0, 0, 1, 1, 2, 4]))]
        found.append(write(dice.randrange(1 << 40), tuple(dict.fromkeys(names))))
    return found


def play(count: int, seed: int) -> dict[str, Counter[str]]:
    """How the texts of each class fared: "meant", or "refused"."""
    dice = random.Random(seed)
    fared: dict[str, Counter[str]] = {}
    for written in texts(count, seed):
        found = judge(written, dice)
        for name in written.classes or ("none",):
            fared.setdefault(name, Counter())[found] += 1
    return fared


def reference_agrees(written: Written) -> str:
    """Whether what is delivered of a text is its only reading; "one" when it has one and is refused all the same."""
    delivered, _ = answered([written.text], UNTYPED)
    found = Reference(written.text, NAMES).objects()
    if delivered is None:
        return "one" if len(found) == 1 else "none or more"
    value = json.loads(delivered)
    assert len(found) == 1, (written.text, delivered, list(found))
    assert next(iter(found.values())) == value, (written.text, delivered, list(found))
    return "delivered"


WRAPPED = {
    "fence",
    "special tokens",
    "double encoding",
    "extra brace",
    "said twice",
    "cut",
    "words around",
    "required is missing",
}


def play_reference(count: int, seed: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for written in texts(count, seed):
        if not WRAPPED.intersection(written.classes) and len(written.text) < 600:
            found[reference_agrees(written)] += 1
    return found


def valid_text(dice: random.Random) -> tuple[dict[str, Any], str]:
    """A JSON object of values that fit and values that do not have to, and its text."""

    def text() -> str:
        return "".join(dice.choices(MARKS, k=dice.randrange(0, 6)))

    def value(depth: int) -> Any:
        plain: list[Any] = [text(), text(), dice.randrange(-(10**20), 10**20), dice.random(), None, True, 0, "", [], {}]
        if depth and dice.random() < 0.3:
            return [value(depth - 1) for _ in range(dice.randrange(4))]
        if depth and dice.random() < 0.3:
            return {text(): value(depth - 1) for _ in range(dice.randrange(4))}
        return dice.choice(plain)

    known = {
        "command": text, "note": text, "count": lambda: dice.randrange(-99, 99), "force": lambda: dice.random() < 0.5,
        "tags": lambda: [text() for _ in range(dice.randrange(3))], "extra": lambda: value(2),
        "box": lambda: {"width": 3, "label": text(), text(): value(1)}, "limit": lambda: None,
        "other": lambda: value(2),
        "edits": lambda: [{"old": text(), "new": text()} for _ in range(dice.randrange(3))],
    }  # fmt: skip
    members = {key: known[key]() for key in dice.sample(list(known), dice.randrange(1, 7))}
    separators = dice.choice([(",", ":"), (", ", ": "), (" , ", " :\n")])
    written = json.dumps(
        members, ensure_ascii=dice.random() < 0.5, separators=separators, indent=dice.choice([None, 1])
    )
    return members, written


MARKS = ["a", "b c", '"', "'", "\\", "\n", "\t", "{", "}", "[", "]", ",", ":", "//", "/*", "*/", "#", "“", "”", "’",
         "é", "🌍", '", "note": "', "'command': 1", "</parameter>", "<|x|>", "```", "007", "None", "\x00", "\u2028",
         "\ufeff"]  # fmt: skip


def play_valid(count: int, seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(count):
        value, text = valid_text(dice)
        for pieces in ([text], cut(text, dice)):
            delivered, deltas = answered(pieces, SCHEMA)
            assert delivered == deltas == text
        assert json.loads(text) == value


# ---------------------------------------------------------------- the properties


def check_fared(fared: dict[str, Counter[str]]) -> None:
    for name in SLIPS:
        assert fared[name]["meant"] == 0, name
    for name in CLASSES:
        assert fared[name]["meant"] > fared[name]["refused"], name


def test_what_is_delivered_is_what_was_meant():
    check_fared(play(700, seed=6))


def test_what_is_delivered_is_the_only_reading():
    assert play_reference(400, seed=1)["delivered"] > 100


def test_valid_arguments_are_left_alone():
    play_valid(700, seed=2)


@pytest.mark.soak
def test_much_that_is_delivered_is_what_was_meant():
    fared = play(24_000, seed=3)
    print()
    for name, counts in sorted(fared.items()):
        print(f"{name:36} meant {counts['meant']:6}  refused {counts['refused']:6}")
    check_fared(fared)


@pytest.mark.soak
def test_much_that_is_delivered_is_the_only_reading():
    print(play_reference(20_000, seed=4))


@pytest.mark.soak
def test_many_valid_arguments_are_left_alone():
    play_valid(50_000, seed=5)


def test_white_space_between_two_pieces_stays_in_a_text():
    """The decoder takes the object for closed behind the first brace; what is read again is all that came."""
    pieces = ['{"command": "say "x}', " ", 'y" now"}']
    assert answered(pieces, SCHEMA)[0] == answered(["".join(pieces)], SCHEMA)[0] == '{"command": "say \\"x} y\\" now"}'


@pytest.mark.parametrize("member", ['a:""', 'a: "y"', "a: 'y' b\" c\""])
def test_a_quote_before_a_bare_key_and_its_value_has_two_readings(member: str):
    """The text may end there and a comma be missing."""
    assert answered([f'{{"command": "echo "{member}, "count": 1}}'], SCHEMA)[0] is None


@pytest.mark.parametrize(
    "text",
    [
        '{"command": "ls", command: "rm"}',
        "{'command': 'ls', 'command': 'rm'}",
        '{"box": {"width": 1, label: "a", "width": 2}}',
        '{"count": 5 // x\r"note": "y"\n}',
        '{"count": 5, # x\u2028"note": "y"\n}',
        '// x\r{"count": 5}\n{"count": 6}',
        '{"command": {"ls"}}',
        '{"box": {"a"}}',
        '{"command"}',
        '{"tags": ("a" "b", "c")}',
        '{"tags": ("a" "b",)}',
        '{"sizes": [5 (6, 7)]}',
        '{"sizes": [(1, 2) (3, 4)]}',
    ],
)
def test_keys_told_twice_comments_of_two_lines_sets_of_no_list_and_joined_tuples_are_no_reading(text: str):
    """Python joins two texts in a tuple, and calls what stands before one."""
    for schema in (SCHEMA, UNTYPED) if "(" in text else (SCHEMA,):
        assert answered([text], schema)[0] is answered(list(text), schema)[0] is None


@pytest.mark.parametrize("item", ['say "hi", (now) and', 'see "ch", 2) and', 'print("hi", (x))', "(a", "b)"])
def test_parentheses_behind_a_quote_in_a_text_are_of_the_text(item: str):
    text = f'{{"tags": ["{item}", "b"]}}'
    for pieces in ([text], list(text)):
        assert json.loads(answered(pieces, SCHEMA)[0] or "0") == {"tags": [item, "b"]}


def test_typographic_quotes_in_each_other_are_a_text_where_each_closes_one():
    for pair in ("“”", "„“", "‘’", "«»"):
        opener, closer = pair
        meant = f"a {opener}word{closer} b {opener}c{closer} d"
        written = f"{{{opener}path{closer}: {opener}{meant}{closer}}}"
        odd = written.replace(meant, f"a {closer}word{opener} b")
        for text, told in ((written, {"path": meant}), (odd, None)):
            for pieces in ([text], list(text)):
                found = answered(pieces, UNTYPED)[0]
                assert (found and json.loads(found)) == told, (text, found)


def test_a_comment_ends_with_its_line():
    text = '{"count": 5, // x\r\n"note": "y"}'
    assert answered([text], SCHEMA)[0] == answered(list(text), SCHEMA)[0] == '{"count": 5, "note": "y"}'


def test_thousands_of_comments_are_refused():
    """It is remembered where each ends, which takes twenty times its bytes."""
    few, many = ('{"path": ' + "/**/" * count + ' "a"}' for count in (8_000, 9_000))
    assert answered([few], SCHEMA)[0] is not None
    assert answered([many], SCHEMA)[0] is None
