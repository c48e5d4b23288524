"""Texts as servers let them through: each read as it is meant, whole, in single characters and cut anywhere."""

from __future__ import annotations

import itertools
import random

from dragoman.events import Reply
from for_each import for_each
from found_answers import Found
from found_lookalikes import ALIKE
from found_texts import MEANT
from found_texts_later import ALL_TOOLS, LATER_ALIKE, LATER_MEANT
from profiles import some
from test_written_calls import delivered, exact, play_pieces

SHOWN = (*ALIKE, *LATER_ALIKE)
TEXTS = (*MEANT, *LATER_MEANT, *SHOWN)


def cut(text: str, seed: int) -> list[str]:
    """A text whole, in single characters, or cut in places that the seed chooses."""
    if seed == 0:
        return [text]
    ends = range(len(text) + 1)
    if seed > 1:
        draw = random.Random(f"{seed} {text}")
        ends = sorted({0, len(text), *(draw.randrange(len(text)) for _ in range(draw.randint(1, 12)))})
    return [text[start:end] for start, end in itertools.pairwise(ends)]


def differences(found: Found, reply: Reply) -> list[str]:
    stop = "tool_use" if found.calls else "error" if found.failed else "stop"
    seen = {
        "calls": (exact(delivered(reply)), exact(list(found.calls))),
        "failed": ([call.name for call in reply.failed_calls], list(found.failed)),
        "thinking": (reply.thinking.strip(), found.thought),
        "stop": (reply.stop_reason, stop),
    }
    if found.left is not None:
        seen["text"] = (reply.text.strip(), found.left.strip())
    elif not (found.calls or found.failed):
        seen["text"] = (reply.text, found.text)
    return [f"{key}: {got!r} instead of {meant!r}" for key, (got, meant) in seen.items() if got != meant]


def test_there_are_many():
    assert len(TEXTS) >= 400 and len({found.name for found in TEXTS}) == len(TEXTS) and len(SHOWN) >= 140


@for_each("found", TEXTS, ids=lambda found: found.name)
def test_each_text_is_read_as_it_is_meant(found: Found):
    for seed in (0, *some(range(1, 6), found.name, 2)):
        assert differences(found, play_pieces(ALL_TOOLS, cut(found.text, seed), "stop")) == [], seed


@for_each("found", [*MEANT, *LATER_MEANT], ids=lambda found: found.name)
def test_each_that_is_shown_is_text(found: Found):
    rows = found.text.split("\n")
    for shown in (
        f"Like this:\n\n`````text\n{found.text}\n`````\nThat is all.",
        f"Like this:\n\n~~~~\n{found.text}\n~~~~\n",
        "It wrote:\n\n" + "\n".join(f"> {row}" for row in rows) + "\n\nThat is all.",
        "It wrote:\n\n" + "\n".join(f"    {row}" for row in rows) + "\n\nThat is all.",
        f"<pre>\n{found.text}\n</pre>\nis what it wrote.",
    ):
        for seed in (0, *some((1, 2), shown, 3)):
            reply = play_pieces(ALL_TOOLS, cut(shown, seed), "stop")
            assert (reply.text, reply.tool_calls, reply.failed_calls, reply.thinking) == (shown, [], (), ""), seed
