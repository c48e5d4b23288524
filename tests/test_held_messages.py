"""What may be a call only as the whole message is let go as soon as it can be none; and a family's own residue."""

from __future__ import annotations

import json
import random

from dragoman.events import Finish, Start, TextDelta, TextEnd, TextStart, fold
from dragoman.response_stages import Policy, stages_for
from dragoman.stages.rescue.families import FAMILIES
from for_each import for_each
from grammar import check
from profiles import IS_SOAK, one, some
from rescue_forms import FORMS, Form
from test_written_calls import TOOLS, delivered, exact, play, some_calls

#: Characters behind the point where a message can be no call any more.
MOST = 200
LONG = "All of it stands in the log, and nobody has read it so far. " * 30
#: Of a long text this much comes character by character: many times what may be held. All of it comes in larger pieces.
BEGINNING = 1_000
KEYS = ("summary", "title", "description", "results", "score", "arguments_text", "url")


def most_held(text: str, known: int, size: int) -> int:
    """Characters kept back, at most, once `known` of them were told; the text must come out as it stands."""
    stages = stages_for(TOOLS, Policy(), new_id=lambda: "0")
    events, told, held = [], 0, 0
    pieces = [TextDelta(0, text[start : start + size]) for start in range(0, len(text), size)]
    came = 0
    for event in (Start(), TextStart(0), *pieces, TextEnd(0), Finish("stop")):
        came += len(event.text) if isinstance(event, TextDelta) else 0
        out = [event]
        for stage in stages:
            out = stage.feed(out)
        events += out
        told += sum(len(one.text) for one in out if isinstance(one, TextDelta))
        if came > known:
            held = max(held, came - told)
    reply = fold(check(events))
    assert (reply.tool_calls, reply.failed_calls, reply.text) == ([], (), text)
    return held


def answers(draw: random.Random) -> list[tuple[str, str]]:
    """Answers in JSON that begin like a call: the part that may be one, and what follows."""
    name = draw.choice([tool.name for tool in TOOLS])
    key = draw.choice(KEYS)
    lead = draw.choice(
        (
            {"name": name},
            {"tool": name, "id": "7"},
            {"type": "function", "name": name},
            {"name": name, "status": "done"},
        )
    )
    whole = json.dumps({**lead, key: LONG}, indent=draw.choice((None, 2)), ensure_ascii=False)
    cut = whole.index(key) + len(key) + 2
    definition = json.dumps([{"type": "function", "function": {"name": name, "description": LONG}}] * 2)
    at = definition.index("description") + len("description") + 2
    call = json.dumps({"name": name, "arguments": {"zone": "a"}})
    said = json.dumps({"name": LONG})
    given = json.dumps({"name": name, "input": LONG})
    return [
        (whole[:cut], whole[cut:]),
        (f"```json\n{whole[:cut]}", f"{whole[cut:]}\n```"),
        (definition[:at], definition[at:]),
        (call, f"\n\nThat is what I would call. {LONG}"),
        (f"{call}, ", f"or so. {LONG}"),
        (f"```json\n{call}\n```", f"\nThat is it. {LONG}"),
        (said[:20], said[20:]),
        (given[: given.index("input") + 12], given[given.index("input") + 12 :]),
        (f"[{name}(zone='a')]", f" is a list. {LONG}"),
        (f"{name}(zone='a')", f"\nis Python. {LONG}"),
        (f"[Calling tool: {name}({{}})]", f" is a log. {LONG}"),
        ("call:" + name + '{zone:<|"|>a<|"|>}', f" is Gemma's. {LONG}"),
    ]


@for_each("seed", range(6))
def test_a_message_that_can_be_no_call_is_let_go(seed: int):
    for may_be, rest in answers(random.Random(seed)):
        for size, behind in one(((1, rest[:BEGINNING]), (9, rest)), f"{seed}{may_be}"):
            assert most_held(may_be + behind, len(may_be) + MOST, size) <= MOST, may_be


@for_each("form", FORMS, ids=lambda form: f"{form.family}: {form.name}")
def test_a_call_to_another_tool_is_told_while_it_comes(form: Form):
    for size, value in one(((1, LONG[:BEGINNING]), (9, LONG)), form.family + form.name):
        text = form.write([("nosuch", {"text": value})]).text()
        assert most_held(text, 0, size) <= MOST


RESIDUE = [(form, next(family for family in FAMILIES if family.name == form.family)) for form in FORMS]


@for_each("form", [form for form, family in RESIDUE if family.residue], ids=lambda form: form.name)
def test_residue_behind_a_call_leaves_with_it(form: Form):
    """Each mark behind a call in one of its family's forms; in `make soak`, in all."""
    residue = next(family for _, family in RESIDUE if family.name == form.family).residue
    forms = [form] if IS_SOAK else [other for other in FORMS if other.family == form.family]
    calls = some_calls(random.Random(form.name), form, is_plain=True)[-1:]
    for mark in (*residue, "\n".join(residue))[forms.index(form) :: len(forms)]:
        for size in (1000, *some([1], form.name + mark, 6)):
            reply = play(form.write(calls).text() + mark, "stop", size)
            assert exact(delivered(reply)) == exact(calls), mark
            assert reply.text.strip() == "", mark
            behind = play(form.write(calls).text() + mark + "\nThat is it.", "stop", size)
            if form.where != "message":
                assert behind.text.strip() == "That is it.", mark
