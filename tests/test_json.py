"""`whole_characters` against a second reader of surrogates that shares no code with it; which texts are objects."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dragoman._json import has_whole_characters, is_object, whole_characters
from for_each import for_each


def expected(text: str) -> str:
    """Read a text one code unit after the other: a pair is its character, a lone half is U+FFFD."""
    read = ""
    units = list(text)
    while units:
        first = units.pop(0)
        if "\ud800" <= first <= "\udbff" and units and "\udc00" <= units[0] <= "\udfff":
            read += chr(0x10000 + ((ord(first) - 0xD800) << 10) + (ord(units.pop(0)) - 0xDC00))
        else:
            read += "\ufffd" if "\ud800" <= first <= "\udfff" else first
    return read


@given(st.text(st.sampled_from(["a", "\n", "€", "😀", "\ufeff", "\ufffd", "\ud83d", "\ude00", "\udbff", "\udc00"])))
def test_a_pair_is_one_character_and_a_lone_half_is_replaced(text: str) -> None:
    assert whole_characters(text) == expected(text)
    assert has_whole_characters(whole_characters(text))


@for_each("text, is_one", [
    ("{}", True), (' {"a": 1}\n', True), ('{"a": %s}' % ("9" * 400), True), ('{"a": "%s"}' % ("x" * 5000), True),
    ('{"\\ud800": -0}', True), ('{"a": [1e999]}', False), ('{"b": "%s", "a": 1e999}' % ("x" * 5000), False),
    ("[1]", False), ("1", False), ('"{}"', False), ("{", False), ('{"a": 1} 2', False), ("", False),
    ('{"a": NaN}', False),
])  # fmt: skip
def test_which_texts_are_objects(text: str, is_one: bool) -> None:
    """A number out of range stands in none, however long the text is."""
    assert is_object(text) is is_one
