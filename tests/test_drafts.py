"""Calls around a closing tag of thinking that nothing opened: no draft before it runs beside the answer's call, and one
in whose value it stands is delivered exactly."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import wires
from dragoman.decoding import decode
from dragoman.stages.thinking.pairs import PAIRS, TO_USER
from dragoman.stages.thinking.tags import FRAMED
from profiles import IS_SOAK, some
from rescue_forms import FORMS, Form
from test_written_calls import TOOLS, delivered, exact, play_pieces

ANYWHERE = [form for form in FORMS if form.where != "message"]
MESSAGES = [form for form in FORMS if form.where == "message"]
#: The tag, and words between the draft and it.
ENDS = (
    "\n</think>\n\n",
    "\nNo, that is wrong.\n</think>\n",
    " Hm.\n[/THINK]\n\nI list.\n",
    f"\n{'So. ' * 80}\n</think>\n",
)
VALUES = (
    "x\n</think>\ny",
    "</think>",
    "a</think>\n\n  b",
    "if </seed:think>:\n\t</seed:think>\n",
    "</think></think>\n",
)
#: What hides the tag behind a draft, if the draft's value is read as text.
HIDING = ("a ``` b", "```\nx", "`", "a <think> b", "~~~\n", "<pre>")


def half(items: Sequence[str], form: Form) -> Sequence[str]:
    """One of two, others for the next form; all in `make soak`."""
    return items if IS_SOAK else items[FORMS.index(form) % 2 :: 2]


def call(form: Form, name: str, **arguments: Any) -> str:
    return form.write([(name, arguments)]).text()


def replies(text: str) -> list[Any]:
    return [
        play_pieces(TOOLS, [text[at : at + size] for at in range(0, len(text), size)], "stop")
        for size in (len(text), *some((1, 7), text, 2))
    ]


def test_no_draft_runs_beside_the_answers_call() -> None:
    for form in ANYWHERE:
        chance = random.Random(form.family + form.name)
        draft, good = call(form, "run_command", command="rm -rf build"), ("run_command", {"command": "ls"})
        for end in half(ENDS, form):
            for answer in (form, chance.choice(MESSAGES)):
                if answer.where == "message" and end.endswith("list.\n"):
                    continue
                text = f"I could do this:\n{draft}{end}{call(answer, *good[:1], **good[1])}"
                for reply in replies(text):
                    # A draft that was told before the tag came fails the answer.
                    assert delivered(reply) == [good] or reply.error is not None, text
                    assert "rm" not in str(delivered(reply)) or reply.error is not None, text
        for reply in replies(f"I do this:\n{draft}\nThat is it.\n</think>\n") if form.where == "anywhere" else ():
            assert delivered(reply) == [("run_command", {"command": "rm -rf build"})]


def test_no_draft_runs_beside_a_structured_call() -> None:
    """A closing tag ends the text before it: thinking went on behind its first end."""
    structured = {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "get_time", "arguments": "{}"}}]}
    for form in ANYWHERE:
        for before in ({"content": "<think>So.</think>"}, {"reasoning_content": "So."}):
            draft = {"content": call(form, "run_command", command="rm -rf build") + "\n</think>\n"}
            chunks = [*map(wires.chat_chunk, (before, draft, structured)), wires.chat_chunk({}, "tool_calls")]
            reply = decode(wires.body_of("openai-chat", chunks), "openai-chat", tools=TOOLS)
            assert [one.name for one in reply.tool_calls] == ["get_time"], form.name


def test_no_value_of_a_draft_hides_the_end_of_thinking() -> None:
    for form in ANYWHERE:
        good = ("run_command", {"command": "ls"})
        for value in half(HIDING, form):
            draft = call(form, "run_command", command=value)
            end = "\nNo.\n</think>\n" if "\n" in value else "\nNo. </think>\n"
            text = f"I could:\n{draft}{end}{call(form, *good[:1], **good[1])}"
            for reply in replies(text):
                assert delivered(reply) == [good], (text, reply.failed_calls)
        kept = [("run_command", {"command": "a ``` <think> b"})]
        for reply in replies(f'{form.write(kept).text()}\nI cut </think> and `</think>` and "</think>".\n'):
            assert delivered(reply) == kept, (form, reply.failed_calls)


def test_a_value_holds_what_ends_thinking() -> None:
    for form in FORMS:
        for value in half(VALUES, form):
            calls = [("run_command", {"command": value}), ("write_file", {"path": "a", "content": f"{value}z"})][
                : form.most
            ]
            if form.trims and value[:1] == value[-1] == "\n":
                continue
            text = form.write(calls).text()
            for reply in replies(text):
                assert exact(delivered(reply)) == exact(calls), (text, reply.failed_calls)


def test_no_call_of_thinking_runs_beside_words() -> None:
    """Between whichever tags it stands; alone, it is the answer's."""
    good = ("run_command", {"command": "ls"})
    for pair in (*PAIRS, *FRAMED):
        for number, opener in enumerate(pair.openers):
            calls = [call(form, good[0], **good[1]) for form in ANYWHERE]
            calls = [one for one in calls if not any(mark in one for mark in (*pair.closers, *pair.stops))]
            inside, closer = random.Random(opener).choice(calls), pair.closers[number % len(pair.closers)]
            for reply in replies(f"{opener}Perhaps {inside}{closer}\n\nDone."):
                assert (delivered(reply), reply.failed_calls, reply.text) == ([], (), "Done."), opener
            for reply in replies(f"{opener}I list.{closer}\n\n{inside}"):
                assert (exact(delivered(reply)), reply.thinking.strip()) == (exact([good]), "I list."), opener


def test_no_call_that_a_header_shows_to_the_user_runs() -> None:
    """Muse Glimmer says to whom a text goes: to a tool, to itself, or to the user."""
    good = ("run_command", {"command": "ls"})
    form = next(form for form in ANYWHERE if form.family == "muse-glimmer" and "to=" in call(form, "get_time"))
    inside = call(form, good[0], **good[1])
    shown = inside[inside.index("<atem:") :].removesuffix("<|eom|>").rstrip()
    for header in TO_USER:
        for end in ("", "<|eom|>"):
            for reply in replies(f"{header}You write:\n{shown}{end}"):
                assert (delivered(reply), reply.failed_calls, reply.text) == ([], (), f"You write:\n{shown}"), header
            for said in ("I list.", ""):
                for reply in replies(f"{header}{said}{end}{inside}"):
                    assert (exact(delivered(reply)), reply.text) == (exact([good]), said), (header, said, end)
