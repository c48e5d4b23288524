"""What stands behind a call that its closing tag ended (`stages/rescue/behind/sealed.py`): the rest of it, or words.

Whatever is told of the beginning of a text holds for all of it, so that no cut of a stream changes which calls run.
"""

from __future__ import annotations

import random

from dragoman import _json
from dragoman.stages.rescue.behind.sealed import goes_on
from dragoman.types import Tool
from test_written_calls import delivered, play_with

#: A text behind a call that lacks `zone` → whether it is the rest of it.
TOLD = {
    '{"zone": "Rome"}</tool_call>': True,
    'analysis<|message|>{"zone": "Rome"}': True,
    '```json\n{"zone": "Rome"}\n```': True,
    '"zone": "Rome"}': True,
    '“zone”: "Rome"}': True,
    '"zone": that is the key I left out': False,
    "<parameter=zone>Rome</parameter>": True,
    '<param name="zone">Rome</param>': True,
    '<param\nname="zone">Rome</param>': True,
    '<a href="zone">Rome</a>': False,
    "\nzone: Rome}": True,
    "\nzone: {a}} b": True,
    "\nzone: (the first) of {these} [all]": False,
    '\nzone="Rome")': True,
    "\nzone=Rome) y": True,
    "\nzone: x) y": False,
    "\nzone: a smiley :) and }": True,
    "\nzone: a smiley :)": False,
    "\nzone: a smiley :) and {it}": False,
    "\nzone: Rome) is one": False,
    "\nzone: a) the first b) the second": False,
    "\nzone: see `f(x}]` there": False,
    "\nzone: see `f(x": False,
    "\nzone: <b>Rome</b>": False,
    "\nzone: Rome</td>": False,
    "\nzone: Rome</tool_call>": True,
    "\nzone: Rome<|im_end|>": False,
    "\nzone: Rome<|tool_call_end|>": True,
    "\nzone: }": True,
    "zone == Rome": False,
    "zone://x": False,
    "It is done, so I wait.": False,
}
PIECES = (
    "zone", "\n", " ", ":", "=", '"zone": ', '"Rome"', "Rome", "{", "}", "(", ")", "]", "[", "<b>", "</b>", "</td>",
    "</t", "<|im_end|>", "</s>", "<|tool_call_end|>", "<parameter=zone>", '<a href="zone">', "`", "``", "1) ", "a) ",
    "//", "==", "analysis", "<|message|>", "```json\n", "words", "'", "“", "<zone>", "<i", "</tool_call>", "5", ";",
)  # fmt: skip
TOOL = Tool("look", schema=_json.raw({"type": "object", "properties": {"zone": {"type": "string"}}}))
#: Behind a whole call; some begin another call or another speaker's turn.
BEHIND = (
    "\nzone: <b>Rome</b> it is", "\nzone: Rome<|im_end|>", "zone == Rome", "zone://x", "\nzone: Rome</td>",
    "\nzone: Rome<|tool_call_begin|>functions.look:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
    "\nzone: Rome<|im_start|>user\nhi", '\nzone: Rome\n<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>',
    "\nzone: Rome]<]minimax[>[<invoke name=", "\nzone: Rome</tool_call>",
)  # fmt: skip


def test_the_rest_of_a_call_is_told_from_words() -> None:
    found = {text: goes_on(text, {"zone"}, is_whole=True) for text in TOLD}
    assert found == TOLD


def test_what_is_told_of_a_beginning_holds_for_the_text() -> None:
    draw = random.Random(7)
    made = ("".join(draw.choices(PIECES, k=draw.randint(1, 9))) for _ in range(2_000))
    for text in (*TOLD, *made):
        whole = goes_on(text, {"zone"}, is_whole=True)
        early = [goes_on(text[:end], {"zone"}, is_whole=False) for end in range(len(text))]
        assert set(early) <= {None, whole}, (text, early, whole)


def test_no_cut_changes_which_calls_run() -> None:
    for call in ('<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>', "[TOOL_CALLS]look[ARGS]{}"):
        for behind in BEHIND:
            text = call + behind
            whole, *pieces = (play_with([TOOL], text, "stop", size) for size in (len(text), 1, 2, 3, 5))
            for reply in pieces:
                assert delivered(reply) == delivered(whole) and reply.text == whole.text, text
