"""Make foreign text safe to show: no escape sequence, no control or invisible character reaches a terminal.

What a person approves must be what happens. So characters that hide, reorder or move text are removed from what is
shown, and refused in what is approved; characters that merely look like others are marked there.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
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

#: What a terminal is shown in place of a character, for `str.translate`; halves of surrogate pairs are not among them.
SHOWN: Final[dict[int, str | None]] = {
    **dict.fromkeys(_CONTROLS, "�"),
    **dict.fromkeys(_BIDI | _INVISIBLE | _TAGS, None),
}
_HALF: Final = re.compile("[\ud800-\udfff]")
#: Characters that are drawn as nothing, beside the categories of controls and formats: Default_Ignorable_Code_Point of
#: Unicode's DerivedCoreProperties.txt, the empty pattern of Braille and the empty head of a note.
_IGNORABLE: Final = frozenset({0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x2800, 0x3164, 0xFFA0, 0x1D159})
_IGNORABLES: Final = range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xFFF0, 0xFFF9), range(0xE0000, 0xE1000)
#: Categories of what has no shape, or one that only some fonts know: controls, formats, surrogates, private use,
#: unassigned, separators of lines.
_SHAPELESS: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
#: Signs that look like one of ASCII and are none by any normal form: dashes, slashes, dots, colons, bars, brackets,
#: stars; and our own sign for a tab.
_ALIKE: Final = frozenset(
    "\u00b4\u00b8\u01c0\u01c3\u037e\u0384\u055a\u055d\u0589\u05c3\u1400\u16ec\u16ed\u1735\u1803\u1809\u1cd3\u1fbd\u1fbf"
    "\u1fc0\u1ffd\u1ffe\u2010\u2011\u2012\u2024\u2025\u2041\u2043\u2044\u204e\u2053\u2057\u205a\u2212\u2215\u2216\u2217\u2223"
    "\u2236\u223c\u226a\u226b\u22d8\u22d9\u2571\u276e\u276f\u27cb\u27cd\u29f5\u29f8\u29f9\u2a20\u2a74\u2a75\u2a76\u2aa5\u2afb"
    "\u2afd\u2cf9\u2e28\u2e29\u2e40\u3014\u3015\u3033\ua60e\ua789\ufd3e\ufd3f\ufe30\ufe58\u21e5"
)
#: Strokes through the letter before; letters of phonetics and of old Latin; signs beside letters; primes; brackets.
_ALIKES: Final = (
    range(0x0334, 0x0339), range(0x0250, 0x0300), range(0x1D00, 0x1DC0), range(0x2032, 0x2038), range(0x2768, 0x2776),
    range(0xA720, 0xA800), range(0xAB30, 0xAB70),
)  # fmt: skip
#: Dashes and quotation marks: prose is full of them, and in a command they look like what a shell reads.
_OF_PROSE: Final = frozenset({"Pd", "Pi", "Pf"})  # categories
#: Letters of Cyrillic, Greek and Armenian that look like Latin ones.
_TWINS: Final = frozenset("аеорсухіјѕԁԛԝһАВЕКМНОРСТУХІЈЅԌԚԜҺӀαορνικυγΑΒΕΖΗΙΚΜΝΟΡΤΥΧοօոսհցզՕՍԼ")
#: Scripts whose letters are taken for each other's.
_CONFUSED: Final = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARMENIAN"})
#: The scripts of daily writing (UAX 31, table 5), and other first words of their letters' names. Letters and
#: marks of all others are odd: many look like Latin ones, and few fonts have them.
_LIVING: Final = _CONFUSED.union(
    ("ARABIC", "BENGALI", "BOPOMOFO", "CJK", "DEVANAGARI", "ETHIOPIC", "GEORGIAN", "GUJARATI", "GURMUKHI", "HANGUL",
     "HEBREW", "HIRAGANA", "KANNADA", "KATAKANA", "KHMER", "LAO", "MALAYALAM", "MYANMAR", "ORIYA", "SINHALA", "TAMIL",
     "TELUGU", "THAANA", "THAI", "TIBETAN"),
    ("HALFWIDTH", "IDEOGRAPHIC", "KATAKANA-HIRAGANA", "MICRO"), ("COMBINING", "VEDIC"),
)  # fmt: skip
#: Marks on one letter that are drawn within its row: no script needs more.
_MOST_MARKS: Final = 4
_WORD: Final = re.compile(r"[^\W\d_]+")


def plain_text(text: str) -> str:
    """Return the text as a terminal may show it: line feeds and tabs stay, escape sequences go, other controls become
    �.

    A sequence that the caller cuts in two leaves its visible characters, never its escape.
    """
    if text.isascii() and text.isprintable():
        return text
    return shown(_LINE_ENDS.sub("\n", _SEQUENCE.sub("", text)))


def shown(text: str) -> str:
    """Return the text without characters that steer a terminal. Each character is judged by itself."""
    return _HALF.sub("�", text).translate(SHOWN)


def plain_line(text: str, width: int = 200) -> str:
    """Return the same on one line of at most `width` characters."""
    line = " ".join(plain_text(text).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def revealed_text(text: str) -> str:
    """Return the text with every odd character written out, as `<U+202E>`, so that nothing hides in it."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(piece for piece, _ in told_apart(text.replace("\r\n", "\n")))


def told_apart(text: str) -> list[tuple[str, bool]]:
    """Split the text into pieces: plain ones as they are (False), and odd characters written out (True).

    Odd are characters without a shape, spaces outside ASCII, signs and letters that look like ASCII's, and the letters
    that are not Latin in a word of two scripts.
    """
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return [(text, False)] if text else []
    words = [found for found in _WORD.finditer(text) if not found[0].isascii()]
    # A short word of twins alone, as Cyrillic's "а", is what it seems where other words leave no doubt of the script.
    sure = {_script(letter) for found in words for letter in found[0] if letter not in _TWINS}
    odd = {place for found in words for place in _strangers(found, sure)}
    pieces: list[tuple[str, bool]] = []
    begin = marks = 0
    for place, character in enumerate(text):
        marks = marks + 1 if not character.isascii() and unicodedata.category(character) == "Mn" else 0
        if place in odd or marks > _MOST_MARKS or _is_odd(character):
            pieces += [(text[begin:place], False)] if begin < place else []
            pieces.append((f"<U+{ord(character):04X}>", True))
            begin = place + 1
    return [*pieces, (text[begin:], False)] if begin < len(text) else pieces


def _strangers(word: re.Match[str], sure: set[str]) -> Iterable[int]:
    """Yield the places of letters of a word that are mistaken for others. `sure`: scripts that the text surely has."""
    scripts = {letter: _script(letter) for letter in set(word[0])}
    is_mixed = len(_CONFUSED.intersection(scripts.values())) > 1
    is_alike = _TWINS.issuperset(word[0])
    if not is_mixed and not (is_alike and (len(word[0]) > 2 or sure.isdisjoint(scripts.values()))):
        return ()
    return [word.start() + at for at, letter in enumerate(word[0]) if scripts[letter] in _CONFUSED - {"LATIN"}]


@lru_cache(maxsize=4_096)
def _script(letter: str) -> str:
    return unicodedata.name(letter, "").partition(" ")[0]


@lru_cache(maxsize=4_096)
def _is_odd(character: str) -> bool:
    if character.isascii():
        return character not in "\n\t" and not character.isprintable()
    category = unicodedata.category(character)
    if _is_hidden(character) or category in ("Zs", "Me") or (category[0] in "LM" and _script(character) not in _LIVING):
        return True
    if character in _ALIKE or any(ord(character) in some for some in _ALIKES):
        return True
    normal = unicodedata.normalize("NFKC", character)
    return len(normal) == 1 and normal.isascii()


@lru_cache(maxsize=4_096)
def is_shell_alike(character: str) -> bool:
    """Return whether a character of prose looks like a quotation mark or a dash that a shell reads."""
    is_sign = unicodedata.category(character) in _OF_PROSE or "QUOTATION MARK" in unicodedata.name(character, "")
    return is_sign and not character.isascii()


@lru_cache(maxsize=4_096)
def _is_hidden(character: str) -> bool:
    if character in "\n\t":
        return False
    code = ord(character)
    is_ignorable = code in _IGNORABLE or any(code in some for some in _IGNORABLES)
    return is_ignorable or unicodedata.category(character) in _SHAPELESS


def counted(number: int, one: str, many: str = "") -> str:
    """Render a number of things: `1 line`, `2 lines`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def hidden_character(text: str) -> str | None:
    """Return the first character that would not be seen as what it is, as `U+202E`, or None."""
    if text.isascii() and text.isprintable():
        return None
    found = next((character for character in text if _is_hidden(character)), None)
    return None if found is None else f"U+{ord(found):04X}"
