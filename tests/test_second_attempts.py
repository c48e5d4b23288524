"""A stream in which the answer begins again from its start, as a server or a gateway writes it that asked twice: calls
that the text of both attempts tells do not run twice. Words that come again alone, and a call, are the model's.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from dragoman import decode
from dragoman.events import Reply
from dragoman.types import ProtocolName
from for_each import for_each
from growth import steps_of
from rescue_forms import FORMS, Form
from slipped_wires import FORMS as WIRES
from slipped_wires import LS, NOW, READ, TEXT, Call, gemini, ollama
from slipped_wires import Form as Wire
from test_found_texts import cut
from test_slipped_wires import calls_of, read
from test_written_calls import TOOLS, Calls, play_pieces
from wires import Frame, body_of

CALL: Calls = [("run_command", {"command": "git status"})]
OTHER: Calls = [("run_command", {"command": "git log"})]
LEADS = ("I look at the tree first, before anything is changed in it.\n\n", "I look.\n", "Zuerst der Stand:\n")
INNER = [form for form in FORMS if form.where != "message"]


def play(text: str) -> Reply:
    return play_pieces(TOOLS, cut(text, random.Random(text).randrange(5)), "stop")


CASES = [(form, random.Random(f"{form.family} {form.name}")) for form in INNER]


@for_each("form, draw", CASES, ids=str)
def test_no_call_of_both_attempts_runs(form: Form, draw: random.Random):
    call, two, lead = form.write(CALL).text(), form.write(CALL + OTHER).text(), draw.choice(LEADS)
    thought = draw.choice(("", "<think>I think of the tree.</think>"))
    first = thought + lead + call + draw.choice(("", "\nThere are th", f"\n{'More. ' * 60}\n"))
    second = lead + draw.choice((call, f"{call}\nThere are three files.", *([two] if form.most > 1 else [])))
    reply = play(f"{first}\n{second}")
    assert reply.error is not None and len(reply.tool_calls) <= 2, (first, second)


@for_each("form, draw", CASES, ids=str)
def test_what_only_looks_like_one_runs(form: Form, draw: random.Random):
    call, other, lead = form.write(CALL).text(), form.write(OTHER).text(), draw.choice(LEADS)
    words = "OK. Then I wait until it has ended, for A B and C."
    short = draw.choice((f"OK.\n{call}\n{words}\n{call}", f"A\n{call}\n{words} Again:\n{call}"))
    text = draw.choice((f"{lead}{call}\n{lead}{other}", short, f"{lead}{call}\nAnd again:\n{call}", f"{call}\n{call}"))
    reply = play(text)
    assert (reply.error, len(reply.tool_calls)) == (None, 2), text


def test_closing_tags_behind_thinking_take_linear_time():
    def steps(size: int) -> int:
        call = '<think><tool_call>\n{"name": "run_command", "arguments": {"command": "'
        pieces = [call, *["x"] * size, '"}}\n</tool_call></think>', *["</tool_call>\n"] * size]
        return steps_of(lambda: play_pieces(TOOLS, pieces, "stop"))

    assert steps(800) < 6 * steps(200)


#: Forms whose calls need no ids, and whose frames no id of the answer.
LINES = [form for form in WIRES if form.make in (gemini, ollama)]


def without_ids(form: Wire, calls: list[Call]) -> list[Frame]:
    frames = form.make(calls)
    return form.slips["no id"](frames) if "no id" in form.slips else frames


@for_each("form", LINES, ids=lambda form: form.make.__name__)
def test_no_structured_call_of_an_attempt_that_broke_off_runs_twice(form: Wire):
    for calls in ([LS], [LS, READ], [NOW], [NOW, LS]):
        one = without_ids(form, calls)
        reply = read(form.protocol, body_of(form.protocol, [*one[:-1], *one]), 10**6)
        assert (calls_of(reply), len(reply.failed_calls)) == (calls, len(calls)), calls


@for_each("form", LINES, ids=lambda form: form.make.__name__)
def test_another_structured_call_behind_the_same_words_runs(form: Wire):
    for words in (TEXT, "I look again.", ""):
        again = without_ids(form, [LS, READ])[2:] if words == TEXT else without_ids(form, [LS])[1:]
        said = json.loads(json.dumps(form.make([])[0]).replace(TEXT, words))
        reply = read(form.protocol, body_of(form.protocol, [*without_ids(form, [LS])[:-1], said, *again]), 10**6)
        assert (len(calls_of(reply)), reply.error) == (2, None), words


#: An answer that comes whole, of one text and one call a round.
WHOLE: dict[ProtocolName, Callable[[int], dict[str, Any]]] = {
    "anthropic-messages": lambda rounds: {
        "id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 1},
        "content": [
            part
            for number in range(rounds)
            for part in (
                {"type": "text", "text": TEXT},
                {"type": "tool_use", "id": f"t{number}", "name": "now", "input": {}},
            )
        ],
    },
    "openai-responses": lambda rounds: {
        "id": "r", "object": "response", "model": "m", "status": "completed",
        "output": [
            item
            for number in range(rounds)
            for item in (
                {"type": "message", "id": f"m{number}", "role": "assistant", "status": "completed",
                 "content": [{"type": "output_text", "text": TEXT, "annotations": []}]},
                {"type": "function_call", "id": f"f{number}", "call_id": f"c{number}", "name": "now",
                 "arguments": "{}", "status": "completed"},
            )
        ],
    },
    "gemini-generate": lambda rounds: {
        "candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [
            part for _ in range(rounds) for part in ({"text": TEXT}, {"functionCall": {"name": "now", "args": {}}})
        ]}}],
    },
}  # fmt: skip


@for_each("protocol", WHOLE)
def test_words_that_come_before_each_of_several_calls_are_meant_in_an_answer_that_comes_whole(protocol: ProtocolName):
    for rounds in (2, 3):
        reply = decode(json.dumps(WHOLE[protocol](rounds)).encode(), protocol)
        assert (calls_of(reply), reply.error) == ([NOW] * rounds, None)
        assert reply.text == TEXT * rounds
