# ruff: noqa: E501 - tables of attacks, which a line end would tear
"""Text for a terminal: of three hundred ways to steer one, none leaves a raw control character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.agent.safe_text import hidden_character, plain_line, plain_text, revealed_text

ESC = "\x1b"
_CSI = ["2J", "H", "1;1H", "31m", "?1049h", "?25l", "6n", "c", "5n", "20t", "21t", "?1000h", "?2004h", "s", "u", "K", "1P",
        "38;2;1;2;3m", "0c", ">c", "=c", "!p", "4h", "r", "3J", "8;40;80t", "?47h", "1;2'z", " q", "?1;2S"]  # fmt: skip
_OSC = ["0;title", "2;title", "52;c;ZXZpbA==", "52;p;ZXZpbA==", "8;;http://evil", "4;1;?", "10;?", "11;#000", "50;font", "7;file:///",
        "9;notify", "99;i=1:d=0;x", "133;A", "777;notify;a;b", "1337;File=inline=1:AAAA", "104", "112", "1;icon", "22;pointer"]  # fmt: skip
_STRINGS = ["Pq#0;2;0;0;0", "P+q544e", "P$q", "_Gf=24;AAAA", "^private", "Xsos", "P1$r"]
_SINGLE = [*"78=>cDEHMNOZ\\lmno|}~", "#8", "(0", ")B", "*A", "+C", "-A", ".A", "/A", "%G", "%@", " F", " G"]
_C1 = [chr(code) for code in range(0x80, 0xA0)]
_C0 = [chr(code) for code in range(0x20) if chr(code) not in "\n\t"] + ["\x7f"]
_BIDI = [
    "\u202a",
    "\u202b",
    "\u202c",
    "\u202d",
    "\u202e",
    "\u2066",
    "\u2067",
    "\u2068",
    "\u2069",
    "\u200e",
    "\u200f",
    "\u061c",
]
_UNSEEN = ["\u200b", "\u2060", "\ufeff", "\u00ad", "\U000e0041", "\U000e007f", "\u2028", "\u2029", "\u2063"]

SEQUENCES = (
    [f"{ESC}[{each}" for each in _CSI]
    + [f"\x9b{each}" for each in _CSI]
    + [f"{start}{each}{end}" for start in (f"{ESC}]", "\x9d") for each in _OSC for end in ("\x07", f"{ESC}\\", "\x9c")]
    + [f"{ESC}]{each}" for each in _OSC]  # without an end
    + [f"{ESC}{each}{end}" for each in _STRINGS for end in (f"{ESC}\\", "\x9c", "")]
    + [f"{ESC}{each}" for each in _SINGLE]
    + _C0
    + _C1
    + _BIDI
    + _UNSEEN
)
ALLOWED = {"\n", "\t"}


def raw_controls(text: str) -> set[str]:
    """Characters that a terminal may take as anything but a letter."""
    unseen = set(_BIDI) | set(_UNSEEN)
    return {each for each in text if (ord(each) < 0x20 or 0x7F <= ord(each) < 0xA0) and each not in ALLOWED} | (
        set(text) & unseen
    )


def test_there_are_enough_sequences() -> None:
    assert len(set(SEQUENCES)) >= 300


@pytest.mark.parametrize("around", [("", ""), ("before", "after"), ("é", "漢")])
def test_no_sequence_reaches_the_terminal(around: tuple[str, str]) -> None:
    for sequence in SEQUENCES:
        shown = plain_text(sequence.join(around))
        assert raw_controls(shown) == set(), repr(sequence)
        assert shown.startswith(around[0]) and shown.endswith(around[1][-3:]), repr(sequence)


def test_no_sequence_reaches_the_terminal_when_it_is_cut_in_two() -> None:
    for sequence in SEQUENCES:
        for cut in range(1, len(sequence)):
            assert raw_controls(plain_text(sequence[:cut]) + plain_text(sequence[cut:])) == set(), repr(sequence)


@given(st.text())
def test_no_text_at_all_leaves_a_control(text: str) -> None:
    assert raw_controls(plain_text(text)) == set()
    assert raw_controls(plain_line(text)) == set()
    assert "\n" not in plain_line(text)


def test_whole_sequences_vanish_and_words_stay() -> None:
    assert plain_text(f"{ESC}[31mred{ESC}[0m and {ESC}]0;title\x07blue") == "red and blue"
    assert plain_text("a\r\nb\rc") == "a\nb\nc"
    assert plain_text("👩‍👩‍👧 नमस्ते שלום") == "👩‍👩‍👧 नमस्ते שלום"


def test_what_hides_is_written_out_for_who_approves() -> None:
    assert revealed_text("if (admin\u202e) \u2066// ok") == "if (admin<U+202E>) <U+2066>// ok"
    assert revealed_text("a\r\nb") == "a\nb"
    assert hidden_character("ls\u200b") == "U+200B"
    assert hidden_character("ls -l 'naïve.txt'") is None
