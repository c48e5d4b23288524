"""`whole_characters` against a second reader of surrogates that shares no code with it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dragoman._json import has_whole_characters, whole_characters


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
