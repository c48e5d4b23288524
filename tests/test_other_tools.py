"""Calls to tools that were not offered: they stay text, what their values hold is no call, and the calls around them
are delivered."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator

from dragoman.events import Event, Reply, Start, TextDelta, TextStart
from dragoman.response_stages import Policy, stages_for
from for_each import for_each
from profiles import IS_SOAK, some
from rescue_forms import FORMS, Form
from test_written_calls import TOOLS, delivered, exact, play_pieces

OUTER = list(FORMS)
INNER = [form for form in FORMS if form.where != "message"]
IDS = [f"{form.family}: {form.name}" for form in OUTER]
#: One of so many forms stands in another, others in the next one.
SHARE = 1 if IS_SOAK else 24
VALUES = (
    "{}", "a {} b", "a\n{}\nb", "{}\n\nb", "\n\n{}", "x </b> {}{} y", '" {} "', "a.\n{}", "``` {}", "</think>\n{}",
)  # fmt: skip
LEADS = ("", "Let me see.\n", "I do: ")
OFFERED = [("run_command", {"command": "ls"}), ("get_time", {"zone": "x"})]
OTHER = ("make_note", {"text": "hi", "size": 5})


def pieces(text: str, size: int) -> Reply:
    return play_pieces(TOOLS, [text[at : at + size] for at in range(0, len(text), size)], "stop")


def holding(outer: Form, chance: random.Random) -> Iterator[str]:
    """Texts with a call to another tool, in one of whose values stands a call to an offered one."""
    for inner in INNER[OUTER.index(outer) % SHARE :: SHARE]:
        value = chance.choice(VALUES).replace("{}", inner.write(OFFERED[:1]).text())
        lead = chance.choice(LEADS) if outer.where != "message" else ""
        yield lead + outer.write([("make_note", {"size": 1, "text": value})]).text()


@for_each("outer", OUTER, ids=IDS)
def test_a_value_of_another_tool_holds_no_call(outer: Form) -> None:
    chance = random.Random(outer.family + outer.name)
    for text in holding(outer, chance):
        for cut, size in ((len(text), len(text)), *some([(len(text), 1)], text, 1), (chance.randrange(len(text)), 3)):
            reply = pieces(text[:cut], size)
            assert not delivered(reply), (size, text[:cut])
            if outer.where == "line" and text.startswith(LEADS[-1]):
                continue  # behind words its marker begins no call, so that one in its text may fail
            # A value in tags that they do not end may be one, or another call behind one that was cut.
            assert not reply.failed_calls or outer.closes == "tag", (size, text[:cut])
            said = reply.text + (reply.thinking if "</think>" in text else "")
            assert len(said.strip()) >= len(text[:cut].strip()) - len("</think>\n\n"), (size, text[:cut])


def test_a_blank_behind_the_name_changes_nothing() -> None:
    for inner in INNER[::SHARE]:
        text = f"make_note (size=1, text={inner.write(OFFERED[:1]).text()!r})"
        for size in (*some([1], text, 1), len(text)):
            reply = pieces(text, size)
            assert (reply.text, delivered(reply), reply.failed_calls) == (text, [], ()), text


#: Calls to another tool in tags that never close, or not as they must.
TORN = (
    "<tool_call>\n<function=make_note>\n<parameter=text>\nv\n\n{}",
    "<tool_call>make_note<arg_key>text</arg_key><arg_value>v\n{}",
    "<tool_call>make_note<arg_key>k</arg_key></tool_call>\nNow:\n{}",
    '<function_calls>\n<invoke name="make_note">\n<parameter name="text">v\n</invoke>\nNow:\n{}',
    '<tool_call>\n{"name": "make_note", "arguments": {"text": "v"\n{}\n</tool_call>\n',
)  # fmt: skip
#: Lines of Python that nobody can read and that nothing closes, of another tool and of an offered one.
ENDLESS = (
    "make_note(size=1\n{}", "print('it's here')\nI call it:\n{}", "make_note(size=1, text=is two\n\n{}",
    "make_note(text='a' {}", "run_command(command='ls'\n{}",
)  # fmt: skip


def test_a_name_in_words_behind_a_torn_call_is_no_call() -> None:
    for head in TORN:
        text = head.replace("{}", "That was run_command, which I can't call.")
        assert not pieces(text, len(text)).failed_calls, text


@for_each("head", ENDLESS + TORN)
def test_a_call_that_another_one_swallows_fails(head: str) -> None:
    for inner in INNER[:: 1 if IS_SOAK else 7]:
        text = head.replace("{}", inner.write(OFFERED[:1]).text())
        for size in (*some([1], text, 1), 5, len(text)):
            reply = pieces(text, size)
            assert not delivered(reply) and reply.failed_calls, (size, text)
            assert reply.text.strip(), (size, text)


#: Texts of code in which another tool is called, in the midst of words.
IN_CODE = (
    "x = make_note(text='{}')",
    "- make_note(text='a {} b')",
    "print(make_note(text='\n{}\n'))",
    "do(['a', 'b {}'])",
    'See: ```py\nprint("``` {}")\n```',
)


#: Words, commands and texts of code that end on their line, and hold marks that begin none.
ENDED = (
    "I look for `require('` in the code.",
    "Look for 'foo('.",
    "The suffix ('s) isn't shown.",
    "Let's go ('cause I can):",
    "I count '(' and '='",
    'I looked for "x=\'"',
    'I looked for "foo("',
    'I said "1+1="\nThat\'s 2.',
    "cut -d'=' -f2",
    "find . -exec grep -l 'x=' {} \\;",
    "f'(x) = 2x, and f''(x) = 2",
    "Use `', '.join(x)` or ``='`` now",
    ":('",
    "say(('a', \"b='\"))",
    '{"name": "\nAnd so',
    "x = ['it\\'s', 'b']",
)


@for_each("lead", ENDED)
def test_a_quotation_that_has_ended_holds_no_call_back(lead: str) -> None:
    for inner, between in itertools.product(INNER[:: 1 if IS_SOAK else 7], (" ", "\n")):
        text = lead + between + inner.write(OFFERED[:1]).text()
        if inner.where == "anywhere":
            assert exact(delivered(pieces(text, len(text)))) == exact(OFFERED[:1]), text


def test_a_quotation_mark_at_the_end_of_a_line_quotes_no_other_paragraph() -> None:
    for lead in ("He wrote x='\nand so on.\n\n", "print('hi')\nf('abc\n\n", "f(\"x\", 'y')\nfoo('abc\nand so on.\n\n"):
        text = lead + INNER[0].write(OFFERED[:1]).text()
        for size in (1, 3, 11, len(text)):
            assert exact(delivered(pieces(text, size))) == exact(OFFERED[:1]), (size, text)


def test_a_call_right_behind_a_fence_is_code_with_its_value_or_a_call() -> None:
    for lead in ("See ```\nfoo\n``` ", "```\nfoo\n``` ", "See: ````py\nfoo\n````"):
        for inner in INNER[:: 1 if IS_SOAK else 7]:
            value = f"x\n{inner.write(OFFERED[:1]).text()}\ny"
            text = f"{lead}<tool_call>write_file<arg_key>content</arg_key><arg_value>{value}</arg_value></tool_call>"
            for size in (len(text), *some((1, 5), text, 1)):
                assert not [name for name, _ in delivered(pieces(text, size)) if name == OFFERED[0][0]], (size, text)


@for_each("outer", IN_CODE)
def test_a_text_of_code_holds_no_call(outer: str) -> None:
    for inner in INNER[:: 1 if IS_SOAK else 7]:
        text = "I do:\n" + outer.replace("{}", json.dumps(inner.write(OFFERED[:1]).text())[1:-1])
        for size in (len(text), *some((1, 5), text, 1)):
            reply = pieces(text, size)
            assert (delivered(reply), reply.failed_calls) == ([], ()), (size, text)


#: Lines of Python that call other functions too are code.
MIXED = [form for form in OUTER if form.most > 1 and form.family != "python-lines"]


@for_each("form", MIXED, ids=lambda form: f"{form.family}: {form.name}")
def test_the_calls_around_it_are_delivered(form: Form) -> None:
    orders = [order for count in (2, 3, 4) for order in itertools.product("ABN", repeat=count) if "N" in order]
    chance = random.Random(form.family + form.name)
    for order in orders if IS_SOAK else chance.sample(orders, 5):
        calls = [OTHER if one == "N" else OFFERED["AB".index(one)] for one in order]
        text = form.write(calls).text()
        wanted = exact([call for call in calls if call is not OTHER])
        for size in (len(text), *some((1, 5), text, 1)):
            reply = pieces(text, size)
            assert exact(delivered(reply)) == wanted, (size, text)
            assert not reply.failed_calls, text
            assert reply.text.count("make_note") == text.count("make_note"), (size, text)


#: Kimi K3 ends the head of a call with a token.
HEADED = [form for form in INNER if form.closes == "tag" and form.family != "kimi-k3"]


@for_each("form", HEADED, ids=lambda form: f"{form.family}: {form.name}")
def test_words_behind_the_name_of_another_tool_leave_at_once(form: Form) -> None:
    written = form.write([("make_note", {"text": "hi"})]).text()
    head = written[: written.rindex("make_note") + len("make_note")]
    text = f"The tag {head}> and so it goes on and on" + ", word by word" * 20
    stages = stages_for(TOOLS, Policy(), new_id=lambda: "0")
    told = 0
    for count, event in enumerate([Start(), TextStart(0), *(TextDelta(0, one) for one in text)], -1):
        events: list[Event] = [event]
        for stage in stages:
            events = stage.feed(events)
        told += sum(len(said.text) for said in events if isinstance(said, TextDelta))
        assert count - told <= len(head) + 64, text[:count]
