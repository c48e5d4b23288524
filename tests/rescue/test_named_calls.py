"""A call without arguments, in tags on one line: a sentence of its line that goes on through it names it, and it is run
elsewhere, behind a sentence as on a line of its own. A tag that ends its own element is run alone."""

from __future__ import annotations

from functools import partial

from for_each import for_each
from growth import steps_of
from rescue_forms import FORMS
from test_written_calls import delivered, play

WRITTEN = {form.write([("get_time", {})]).text().strip() for form in FORMS if form.closes == "tag"}
CALLS = sorted(one for one in WRITTEN if "\n" not in one and "minimax[" not in one)
#: Two of them stand in a block of their own.
ELEMENTS = ('<invoke name="get_time"/>', '<function name="get_time"/>')
BLOCKS = ('<function_calls><invoke name="get_time"/></function_calls>', "<function=get_time></function>")
#: Each with what becomes of a call, and of an element.
TEXTS = (
    ("{}", True, True),
    ("Let me look:\n{}", True, True),
    ("Let me look. {}", True, False),
    ("Let me look. {} Done.", True, False),
    ("Let me look.\n{}\nDone.", True, False),
    ("The tag\n\n{}\n\nhas no end.", True, False),
    ("Use {} to see it.", False, False),
    ("Use {} Then you see it.", False, False),
    ("Use {}.", False, False),
    ("The tag is\n{}\nand nothing else.", True, False),
    ("- {} shows it", False, False),
    ("{} shows it.", True, False),
)


@for_each("written", [*CALLS, *BLOCKS, *ELEMENTS])
def test_a_call_without_arguments_is_run_unless_a_sentence_goes_on_through_it(written: str) -> None:
    for text, is_call, is_alone in TEXTS:
        is_run = is_alone if written in ELEMENTS else is_call
        text = text.replace("{}", written)
        for size in (1, 7, len(text)):
            assert delivered(play(text, "stop", size)) == ([("get_time", {})] if is_run else []), (size, text)


@for_each("written", [one for one in (*CALLS, *BLOCKS) if "</" in one])
def test_tags_behind_a_call_that_may_be_named_are_read_once(written: str) -> None:
    """However many there are, and in however many pieces they come."""
    tags = written[written.index("</") :]
    few, many = (steps_of(partial(play, f"Use {written}{tags * count}", "stop", len(tags))) for count in (40, 160))
    assert many < 5 * few
