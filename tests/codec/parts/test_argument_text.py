"""What the argument text of one call amounts to, and what of it may leave while it streams."""

from __future__ import annotations

import json
import time

from hypothesis import given
from hypothesis import strategies as st

from dragoman.codec.parts.argument_text import ArgumentText
from dragoman.codec.parts.open_parts import OpenCall
from dragoman.codec.parts.settled_arguments import is_same
from dragoman.gathered import GatheredText
from for_each import for_each

ROWS = [
    # text, arguments, what left live, deviation codes
    ('{"a":1}', '{"a":1}', '{"a":1}', []),
    (' {"a":1} ', '{"a":1} '.strip(), '{"a":1}', []),
    ('{ "a" : "}" }', '{ "a" : "}" }', '{ "a" : "}" }', []),
    ('{"a":"\\"}"}', '{"a":"\\"}"}', '{"a":"\\"}"}', []),
    ('{"n":1.50,"big":12345678901234567890}', '{"n":1.50,"big":12345678901234567890}', None, []),
    ("{}", "{}", "", []),
    ("{ }", "{}", "", []),
    ("", "{}", "", ["missing-arguments"]),
    (" \n", "{}", "", ["missing-arguments"]),
    ("null", "{}", "", ["missing-arguments"]),
    ('""', "{}", "", ["missing-arguments"]),
    ('{}{"a":1}', '{"a":1}', '{"a":1}', ["placeholder-arguments"]),
    ('null{"a":1}', '{"a":1}', '{"a":1}', ["placeholder-arguments"]),
    ('"{\\"a\\":1}"', '{"a":1}', "", ["double-encoded-arguments"]),
    ('{"a":1}{"a":1}', '{"a":1}', '{"a":1}', ["repeated-arguments"]),
    ('{"a":1}\n```', '{"a":1}', '{"a":1}', ["surplus-arguments"]),
    ('{"a":1}}', '{"a":1}', '{"a":1}', ["surplus-arguments"]),
    ("{} ```", "{}", "{}", ["surplus-arguments"]),
    ('{"a":1}<|call|>\n</s>', '{"a":1}', '{"a":1}', ["surplus-arguments"]),
    ('{"a":1}{}', '{"a":1}', '{"a":1}', ["placeholder-arguments"]),
    ('{"a":1}{}\n```', '{"a":1}', '{"a":1}', ["placeholder-arguments", "surplus-arguments"]),
    ('{"a":1}\n```{"a": 1.0}', '{"a":1}', '{"a":1}', ["repeated-arguments"]),
]


@for_each(("text", "arguments", "live", "codes"), ROWS)
def test_arguments_that_are_delivered(text, arguments, live, codes):
    for pieces in ([text], list(text)):
        call = ArgumentText()
        left = "".join(map(call.add, pieces))
        settled = call.settle(proven=True)
        assert settled.text == arguments
        assert [code for code, _ in settled.codes] == codes
        assert left + settled.delta == arguments
        if live is not None:
            assert left == live


@for_each(
    ("text", "kind"),
    [
        ('{"a":1', "cut"),
        ('{"a":"x', "cut"),
        ('{"a":{"b":1}', "cut"),
        ("{", "cut"),
        ("nul", "cut"),
        ('"{\\"a\\"', "cut"),
        ("[1]", "unreadable"),
        ("17", "unreadable"),
        ('"plain"', "unreadable"),
        ("{'a':1}", "unreadable"),
        ('{"a":NaN}', "unreadable"),
        ('{"a":Infinity}', "unreadable"),
        ('{"a":1},"b":2', "unreadable"),
        ('{"a":1}, {"b":2}', "unreadable"),
        ("```json\n{}", "unreadable"),
        ('{"a":1} and more', "unreadable"),
        ("{} done", "unreadable"),
        ('{"a":"ls"}", "b": 1}', "unreadable"),
        ('{"a":"say "}{"b" }', "unreadable"),
        ('{"a":1} {and more', "unreadable"),
        ('{"a":1}}{"b":2}', "unreadable"),
        ('{"a":1}</tool_call><tool_call>{"name":"f","arguments":{}}', "unreadable"),
        ('{"a":1}</tool_call>{"b":', "unreadable"),
    ],
)
def test_arguments_that_are_not(text, kind):
    for pieces in ([text], list(text)):
        call = ArgumentText()
        for piece in pieces:
            call.add(piece)
        settled = call.settle(proven=True)
        assert settled.text is None
        assert settled.kind == kind
        assert settled.problem


@for_each("text", ["", "{}", "null", " "])
def test_empty_arguments_need_an_end_that_was_seen(text):
    call = ArgumentText()
    call.add(text)
    assert call.settle(proven=False).kind == "cut"


def test_objects_in_a_row_are_calls_of_their_own():
    call = ArgumentText()
    assert call.add('{"a":1}{"a":2} {"a":2}{"a":1}') == '{"a":1}'
    settled = call.settle(proven=True)
    assert settled.text == '{"a":1}'
    assert settled.more == ('{"a":2}', '{"a":2}')
    assert "concatenated-calls" in [code for code, _ in settled.codes]


def test_true_is_not_one():
    call = ArgumentText()
    call.add('{"a":[1]}{"a":[true]}')
    assert call.settle(proven=True).more == ('{"a":[true]}',)
    assert not is_same('{"a":1}', '{"a":true}')
    assert not is_same("{a}", "{b}")


@for_each("cut", ["{", '{"', '{"a\\', '{ "a" ', '{"a":', '{"a":{"b":1}'])
def test_a_cut_object_in_the_row_is_told(cut):
    call = ArgumentText()
    call.add('{"a":1}' + cut)
    settled = call.settle(proven=True)
    assert (settled.text, settled.cut_after) == ('{"a":1}', True)


RESIDUE = [
    "",
    " ",
    "\n",
    "```",
    "<|call|>",
    "<｜tool▁call▁end｜>",
    "</s>",
    "</tool_call>",
    "[/INST]",
    "{}",
    '{"a": 1}',
    "{ }",
]
WORDS = ["and", '"', ", ", ": ", "]", "b", '", "b": 2}', "{x", '"b"', "<b>", "//", "[1]", "'", "{'a': 1}"]


@given(
    st.lists(st.sampled_from(RESIDUE), max_size=5),
    st.lists(st.sampled_from(WORDS + RESIDUE), max_size=4),
    st.sampled_from(WORDS),
    st.data(),
)
def test_nothing_behind_an_object_is_dropped_but_residue_placeholders_and_repeats(residue, others, word, data):
    def settled(tail):
        text = '{"a":1}' + tail
        call = ArgumentText()
        place = data.draw(st.integers(0, len(text)))
        left = call.add(text[:place]) + call.add(text[place:])
        assert left == '{"a":1}'
        return call.settle(proven=True)

    clean = "".join(residue)
    assert settled(clean).text == '{"a":1}'
    assert settled(clean).more == ()
    place = data.draw(st.integers(0, len(others)))
    assert settled(clean + "".join([*others[:place], word, *others[place:]])).text is None


@given(
    st.dictionaries(
        st.text(),
        st.recursive(
            st.none() | st.integers() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=8,
        ),
        min_size=1,
    ),
    st.booleans(),
    st.data(),
)
def test_any_object_leaves_live_and_no_prefix_of_it_is_delivered(value, ascii_only, data):
    text = json.dumps(value, ensure_ascii=ascii_only)
    call = ArgumentText()
    assert "".join(map(call.add, text)) == text
    assert call.is_closed()
    assert call.settle(proven=True).text == text
    cut = ArgumentText()
    prefix = text[: data.draw(st.integers(1, len(text) - 1))]
    cut.add(prefix)
    assert cut.settle(proven=True).kind == "cut"


def test_a_flood_of_repeated_objects_is_refused() -> None:
    text = ArgumentText()
    text.add('{"city":"Paris"}' * 1_000)
    settled = text.settle(proven=True)
    assert settled.text is None
    assert settled.problem == "more than 64 objects stand in one call"


@for_each("text", ['{"a":1]', '{"a":[1}}, 2', "{x]", '{"a":1] and more'])
def test_a_bracket_of_another_kind_is_unreadable_however_it_is_cut(text: str) -> None:
    settled = []
    for pieces in ([text], list(text), [text[:3], text[3:]]):
        call = ArgumentText()
        for piece in pieces:
            call.add(piece)
        settled.append(call.settle(proven=True))
    assert settled[0].kind == "unreadable" and settled[0].text is None
    assert settled[1:] == settled[:1] * 2


@for_each("unit", ["{}", "{} ", "{}```", '{"a":1}```', "{}<|call|>"])
def test_a_flood_of_placeholders_is_read_in_linear_time(unit: str) -> None:
    for beginning in ("", '{"a":1}'):
        begun = time.process_time()
        text = ArgumentText()
        text.add(beginning + unit * (1_000_000 // len(unit)))
        assert text.settle(proven=True).text in (None, "{}", '{"a":1}')
        assert time.process_time() - begun < 2


def test_no_open_call_shows_its_arguments() -> None:
    """What an error report has of local variables is kept by others."""
    call = OpenCall(3, id="c", name="ring", kind="function")
    call.text.add('{"word": "open sesame"')
    call.pending = GatheredText(["open sesame"])
    call.arguments = '{"word": "open sesame"}'
    assert repr(call) == "<OpenCall 3 waiting>"
    assert repr(call.text) == "<ArgumentText live>"
