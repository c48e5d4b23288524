"""A value that holds its own closing tags: the call is refused, or delivered as it was meant; nothing of it is run."""

from __future__ import annotations

import json
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.events import Event, Failure, Finish, Start, TextDelta, TextEnd, TextStart, ToolCallDelta, ToolCallEnd
from dragoman.response_stages import Policy, stages_for
from for_each import for_each
from profiles import IS_SOAK, one, some
from rescue_forms import FORMS, Form
from test_written_calls import TOOLS, delivered, exact, play

TAGGED = [form for form in FORMS if form.closes == "tag" and form.never]
#: Those whose texts have no escapes: Gemma's stand between tokens, in brackets.
UNESCAPED = [*TAGGED, *(form for form in FORMS if form.family == "gemma" and form.never)]
WORDS = ("x", " … ", "\n", "Then:", "a b", "}", "```\n", '"', "> ")
#: Forms whose tags do not tell a value's beginning from a call's: a call in a value leaves no call.
UNBALANCED = {("minimax-m3", "nested"), ("qwen-xml", "parameter for function")}
EXAMPLES = 200 if IS_SOAK else 2


def markup(form: Form) -> list[str]:
    """What ends a value, and a call behind it; what begins another, whole or not."""
    (body, closing), *_ = form.write([("run_command", {"command": "VALUE"})]).calls
    behind = body.split("VALUE")[1]
    before = body.split("VALUE")[0]
    lead = form.write([("run_command", {"command": "a"})]).lead
    return [behind + closing, behind + closing + form.write([]).tail, lead + before, before, lead, before[:12]]


@pytest.mark.parametrize("form", UNESCAPED, ids=lambda form: f"{form.family}: {form.name}")
@settings(max_examples=EXAMPLES, derandomize=True, deadline=None)
@given(data=st.data())
def test_a_value_with_its_closing_tags_is_refused(form: Form, data: st.DataObject):
    ends, whole_ends, *begins = markup(form)
    value = "x" + data.draw(st.sampled_from((ends, whole_ends)))
    value += " … ".join(data.draw(st.lists(st.sampled_from((*WORDS, *begins[1:], ends)), min_size=1, max_size=4)))
    if any(begin in value.split(ends, 1)[1] for begin in begins[:2]):
        value += " … " + ends  # what begins in it ends in it: else it reads as another call, whole
    meant = ("write_file", {"path": "a.md", "content": value})
    text = form.write([meant]).text()
    for size in (len(text), *some((1, 7), text, 3)):
        reply = play(text, "stop", size)
        calls = delivered(reply)
        if any("markup of a call" in failed.message for failed in reply.failed_calls):
            # What follows reads as one call that holds others: one good call and one bad one (policy 9).
            calls = calls[1:]
        assert reply.error or not calls or exact(calls) == exact([meant]), f"{text!r}: {calls}"


def test_a_word_between_angle_brackets_behind_a_call_takes_nothing_from_it():
    text = "<start_function_call>call:run_command{command:<escape>ls<escape>}<end_function_call>"
    words = " Press <escape> to go back."
    for size in (1, 7, 200):
        reply = play(text + words, "stop", size)
        assert (delivered(reply), reply.text.strip()) == ([("run_command", {"command": "ls"})], words.strip())


@pytest.mark.parametrize("form", TAGGED, ids=lambda form: f"{form.family}: {form.name}")
@settings(max_examples=EXAMPLES * 2, derandomize=True, deadline=None)
@given(data=st.data())
def test_no_call_of_another_family_is_taken_out_of_a_value_that_ends_early(form: Form, data: st.DataObject):
    """Some of its own closing tags stand in the value, then a call of any family, then perhaps words and tags."""
    draw = data.draw
    whole_ends = markup(form)[1]
    parts = [part for part in re.split(r"(?<=[>\n])", whole_ends) if part.strip()]
    first = draw(st.integers(0, len(parts) - 1))
    value = "x" + "".join(parts[first : draw(st.integers(first + 1, len(parts)))])
    other = draw(st.sampled_from([other for other in FORMS if other.where == "anywhere" and other.never != form.never]))
    value += other.write([("run_command", {"command": "rm -rf build"})]).text() + draw(st.sampled_from(("", *WORDS)))
    meant = ("write_file", {"path": "a.md", "content": value})
    text = form.write([meant]).text()
    for size in (len(text), *some((1, 7), text, 3)):
        calls = delivered(play(text, "stop", size))
        assert not [name for name, _ in calls if name != "write_file"], f"{text!r}: {calls}"


def test_how_families_follow_each_other_does_not_hang_on_how_the_text_is_cut():
    draw = random.Random(5)
    for number in range(EXAMPLES * 40):
        written = [
            draw.choice(FORMS).write([("write_file", {"path": "a", "content": draw.choice(("x", "", '"}'))})]).text()
            for _ in range(draw.randint(1, 3))
        ]
        place = draw.randrange(len(written))
        start = draw.randrange(len(written[place]))
        end = start + draw.randint(1, 20)
        again = written[place][start:end] if number % 2 else ""  # told twice, or left out
        written[place] = written[place][:end] + again + written[place][end:] if again else written[place][:start]
        text = draw.choice(("", "\n")).join(written)
        whole = play(text, "stop", max(len(text), 1))
        for size in (*some([1], text, 1), 30):
            reply = play(text, "stop", size)
            # White space alone before the first call has been told when it came in a piece of its own.
            seen, same = [(exact(delivered(one)), one.text.lstrip()) for one in (reply, whole)]
            assert seen == same or (reply.error and whole.error), text


def events_of(text: str, size: int) -> list[tuple[int, Event]]:
    """What one client after another reads, each with how much of the text had come."""
    stages = stages_for(TOOLS, Policy(sequential=True), new_id=lambda: "0")
    pieces = [TextDelta(0, text[start : start + size]) for start in range(0, len(text), size)]
    came, out = 0, []
    for event in (Start(), TextStart(0), *pieces, TextEnd(0), Finish("stop")):
        came += len(event.text) if isinstance(event, TextDelta) else 0
        events: list[Event] = [event]
        for stage in stages:
            events = stage.feed(events)
        out += [(came, one) for one in events]
    return out


@for_each("form", TAGGED, ids=lambda form: f"{form.family}: {form.name}")
def test_nobody_waits_long_for_what_comes_behind_a_call(form: Form):
    """A client that knows one part at a time sees arguments and prose as they come, at most so much later."""
    long = "All of it stands in the log. " * 40
    calls = [("run_command", {"command": "ls"}), ("write_file", {"path": "a", "content": long})]
    text = form.write(calls).text()
    for behind in one((" " + long, ""), form.family + form.name):
        seen = events_of(text + behind, 1)
        told = "".join(one.text for _, one in seen if isinstance(one, ToolCallDelta | TextDelta))
        for place, mark in ((text.index("All of") + 400, 380), (len(text) + 500, len(json.dumps(calls[1][1])) + 200)):
            by_then = sum(
                len(one.text) for at, one in seen if at <= place and isinstance(one, ToolCallDelta | TextDelta)
            )
            assert by_then >= mark or (not behind and place > len(text)), (place, by_then, mark)
        assert long in told
        assert [one.call.name for _, one in seen if isinstance(one, ToolCallEnd)] == [name for name, _ in calls]


@for_each("form", TAGGED, ids=lambda form: f"{form.family}: {form.name}")
def test_an_answer_fails_whose_call_was_told_before_its_tags_came_again(form: Form):
    meant = ("write_file", {"path": "a.md", "content": f"x{markup(form)[1]}{'More of it. ' * 40}"})
    text = form.write([meant]).text()
    whole = play(text, "stop", len(text))
    for size in (1, 7, 48):
        reply = play(text, "stop", size)
        assert (reply.error, exact(delivered(reply))) == (whole.error, exact(delivered(whole)))
    calls = delivered(whole)
    assert isinstance(whole.error, Failure) or not calls or exact(calls) == exact([meant])


@for_each("form", TAGGED, ids=lambda form: f"{form.family}: {form.name}")
def test_a_good_call_stands_beside_one_whose_value_holds_another(form: Form):
    inner = form.write([("get_time", {"zone": "a"})]).text()
    calls = [("run_command", {"command": "ls"}), ("write_file", {"path": "a.md", "content": f"See:\n{inner}\nThat."})]
    text = form.write(calls).text()
    good = calls if form.family == "minicpm5" else [] if (form.family, form.name) in UNBALANCED else calls[:1]
    for size in (len(text), *some((1, 7), text, 1)):
        reply = play(text, "stop", size)
        seen = (exact(delivered(reply)), len(reply.failed_calls), reply.stop_reason)
        assert seen == (exact(good), 2 - len(good), "tool_use" if good else "error")


@for_each("form", TAGGED, ids=lambda form: f"{form.family}: {form.name}")
def test_words_behind_a_call_do_not_refuse_it(form: Form):
    calls = [("run_command", {"command": "ls"}), ("get_time", {"zone": "a"})]
    for behind in ("\nThat is all.", f"\nThe `{form.never[0]}` ends it.", ""):
        for size in (1000, *some([1], form.name + behind, 2)):
            assert exact(delivered(play(form.write(calls).text() + behind, "stop", size))) == exact(calls)


@for_each("form", FORMS, ids=lambda form: f"{form.family}: {form.name}")
def test_a_closing_tag_of_thinking_in_a_value_runs_nothing(form: Form):
    inner = form.write([("run_command", {"command": "rm -rf build"})]).text()
    for value in ("a</think>b", "a\n</think>\nb", f"a\n</think>\n{inner}", f"</think>{inner}"):
        meant = ("write_file", {"path": "a.md", "content": value})
        text = form.write([meant]).text()
        for lead in ("", "Let me see.\n", "<think>Hm.</think>"):
            for size in (100_000, *some((1, 9), lead + text, 4)):
                calls = delivered(play(lead + text, "stop", size))
                assert not calls or exact(calls) == exact([meant]), f"{lead + text!r}: {calls}"


@for_each("form", [form for form in FORMS if form.where == "anywhere"], ids=lambda form: form.family)
def test_a_whole_call_right_before_a_lone_closing_tag_of_thinking_counts_if_no_answer_follows(form: Form):
    call = ("run_command", {"command": "ls"})
    text = f"Let me see.\n{form.write([call]).text()}\n</think>\n"
    for size in (100_000, *some((1, 9), text, 2)):
        assert exact(delivered(play(text, "stop", size))) == exact([call])
        reply = play(f"{text}\nIt is done.", "stop", size)
        assert not reply.tool_calls or not reply.failed_calls, reply
        for behind in ("", "\nIt is done."):
            reply = play(f"Let me see.\n</think>\n\n{form.write([call]).text()}{behind}", "stop", size)
            assert exact(delivered(reply)) == exact([call])
            assert form.where != "anywhere" or reply.text.strip() == behind.strip()
