"""Empty and blank parts around a message that is a call: servers send such, and they are no answer beside it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from dragoman.events import (
    Event,
    Finish,
    Reply,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    fold,
)
from dragoman.response_stages import Policy, stages_for
from dragoman.types import Text, Thinking
from grammar import check
from rescue_forms import FORMS, Form
from test_written_calls import TOOLS, delivered, exact

CALL = ("run_command", {"command": "ls src"})
MESSAGES = [form for form in FORMS if form.where == "message"]
#: What a server may send beside the message, as (kind, pieces).
EMPTY: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("text", ()), ("text", ("",)), ("text", ("\n",)), ("text", (" ", "\n")), ("thinking", ()), ("thinking", ("\n",)),
)  # fmt: skip


def part(index: int, kind: str, pieces: Sequence[str]) -> list[Event]:
    if kind == "text":
        return [TextStart(index), *(TextDelta(index, piece) for piece in pieces), TextEnd(index)]
    return [ThinkingStart(index), *(ThinkingDelta(index, piece) for piece in pieces), ThinkingEnd(index)]


def answer(parts: Sequence[tuple[str, Sequence[str]]], reason: str = "stop") -> Reply:
    numbers = itertools.count()
    stages = stages_for(TOOLS, Policy(), new_id=lambda: f"{next(numbers):024d}")
    events = [event for index, (kind, pieces) in enumerate(parts) for event in part(index, kind, pieces)]
    out: list[Event] = []
    for event in [Start(), *events, Finish(reason)]:  # type: ignore[arg-type]
        fed = [event]
        for stage in stages:
            fed = stage.feed(fed)
        out += fed
    return fold(check(out))


def said(reply: Reply) -> list[str]:
    return [part.text for part in reply.parts if isinstance(part, Text | Thinking)]


@pytest.mark.parametrize("form", MESSAGES, ids=lambda form: f"{form.family}: {form.name}")
def test_empty_parts_beside_a_message_leave_it_a_call(form: Form):
    text = form.write([CALL]).text()
    for before, behind in itertools.product(((), *((one,) for one in EMPTY)), ((), *((one,) for one in EMPTY), EMPTY)):
        for pieces in ((text,), tuple(text)):
            reply = answer([*before, ("text", pieces), *behind])
            assert exact(delivered(reply)) == exact([CALL]), (before, behind)
            assert "".join(said(reply)) == "".join("".join(blank) for _, blank in (*before, *behind))
            assert reply.stop_reason == "tool_use"
        assert delivered(answer([*before, ("text", (text,)), *behind], "length")) == []


@pytest.mark.parametrize("form", MESSAGES, ids=lambda form: f"{form.family}: {form.name}")
@pytest.mark.parametrize("kind", ["text", "thinking"])
def test_words_in_a_part_beside_it_make_it_text(form: Form, kind: str):
    text = form.write([CALL]).text()
    for empty in ((), *((one,) for one in EMPTY), EMPTY):
        for last in (("Done.",), ("\n", "Done."), tuple("\nDone.")):
            reply = answer([("text", (text,)), *empty, (kind, last)])
            assert (delivered(reply), reply.failed_calls) == ([], ()), empty
            assert "".join(said(reply)) == text + "".join("".join(one) for _, one in empty) + "".join(last)


def test_a_blank_part_is_no_answer_behind_thinking_that_holds_a_call():
    text = '<tool_call>{"name": "run_command", "arguments": {"command": "ls src"}}</tool_call>'
    for blank in EMPTY:
        assert delivered(answer([("thinking", (text,)), blank])) == [CALL]
        assert delivered(answer([("thinking", (text,)), blank, ("text", ("Done.",))])) == []
