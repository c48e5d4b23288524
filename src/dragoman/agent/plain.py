"""Text that others wrote, made safe to show: no escape sequence, no control or invisible character reaches a terminal.

What is shown to a person who approves must be what will happen, so characters that hide, reorder or move text are
taken out of what is shown, and refused in what is approved.
"""

from __future__ import annotations

import re
from typing import Final

#: Escape sequences as a whole: CSI, OSC and the other strings (with their end), then two-character ones. No repeat
#: takes a character that begins a sequence, so none is looked at twice and the time is linear.
_SEQUENCE: Final = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*+[ -/]*+[@-~]"
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n\x9d\x90\x98\x9e\x9f]{0,4096}+(?:\x07|\x1b\\\\|\x9c)"
    "|\x1b[ -/]*+[0-~]"
)
_LINE_ENDS: Final = re.compile("\r\n?|[\u2028\u2029\x85]")

_CONTROLS: Final = frozenset((*range(0x20), *range(0x7F, 0xA0))) - {0x09, 0x0A}
#: Marks that turn the direction of writing.
_BIDI: Final = frozenset((0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)))
#: Characters without a shape. Joiners are not among them: scripts and emoji need them.
_INVISIBLE: Final = frozenset((0x00AD, 0x200B, 0x2060, *range(0x2061, 0x2065), 0xFEFF, *range(0xFFF9, 0xFFFC)))
#: Copies of ASCII that nobody sees and models read.
_TAGS: Final = frozenset(range(0xE0000, 0xE0080))
_SURROGATES: Final = frozenset(range(0xD800, 0xE000))

_SHOWN: Final[dict[int, str | None]] = {
    **dict.fromkeys(_CONTROLS | _SURROGATES, "�"),
    **dict.fromkeys(_BIDI | _INVISIBLE | _TAGS, None),
}
#: In what is approved nothing may hide; joiners would.
_REFUSED: Final = _CONTROLS | _BIDI | _INVISIBLE | _TAGS | _SURROGATES | {0x200C, 0x200D, 0x2028, 0x2029}


def plain_text(text: str) -> str:
    """The text as a terminal may show it: line feeds and tabs stay, escape sequences go, other controls become �.

    A sequence that is cut in two by the caller leaves its visible characters, never its escape.
    """
    if text.isascii() and text.isprintable():
        return text
    return _LINE_ENDS.sub("\n", _SEQUENCE.sub("", text)).translate(_SHOWN)


def plain_line(text: str, width: int = 200) -> str:
    """The same on one line of at most `width` characters."""
    line = " ".join(plain_text(text).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def revealed_text(text: str) -> str:
    """The text with every character that would not be seen written out, as `<U+202E>`: nothing hides in it."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(f"<U+{ord(each):04X}>" if ord(each) in _REFUSED else each for each in text.replace("\r\n", "\n"))


def counted(number: int, one: str, many: str = "") -> str:
    """A number of things in words: `1 line`, `2 lines`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def hidden_character(text: str) -> str | None:
    """The first character that would not be seen as what it is, as `U+202E`; None when there is none."""
    if text.isascii() and text.isprintable():
        return None
    found = next((character for character in text if ord(character) in _REFUSED), None)
    return None if found is None else f"U+{ord(found):04X}"
