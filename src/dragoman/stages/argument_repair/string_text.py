"""The inside of a string of almost JSON, made the inside of a JSON string while it comes: `StringText`.

Each thing that is mended here has one meaning: a raw control character stands for itself, a backslash before what JSON
cannot escape is a backslash, half of a surrogate pair is U+FFFD. None of it tells where the string ends. Where one
backslash of a string stands for itself, so may all: beside an escape of a letter (`C:\\Users\\new`) there are two
readings, and the string is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from dragoman import _json
from dragoman.codec.patterns import STRETCH, rare_pattern
from dragoman.gathered import GatheredText

#: Text that needs no mending.
PLAIN: Final = re.compile(r'[^"\\\x00-\x1f\ud800-\udfff]*+(?:\\["\\/bfnrt][^"\\\x00-\x1f\ud800-\udfff]*+)*+')
#: Text that holds an escape which a path may hold too.
_LETTER: Final = re.compile(r"[^\\]*+(?:\\[^bfnrt][^\\]*+)*+\\[bfnrt]", re.DOTALL)
_ESCAPABLE: Final = frozenset('"\\/bfnrtu')
_CONTROLS: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
#: What a raw character of a string becomes.
_MENDED: Final = {code: _CONTROLS.get(chr(code)) or f"\\u{code:04x}" for code in range(32)}
_HALF: Final = rare_pattern("[\ud800-\udfff]")
_CONTROL: Final = rare_pattern("[\x00-\x1f]")
_HEX: Final = "[0-9a-fA-F]"
_LOW: Final = rf"\\u[dD][c-fC-F]{_HEX}{{2}}"
_HIGH: Final = rf"\\u[dD][89abAB]{_HEX}{{2}}"
_HALF_ESCAPE: Final = rare_pattern(f"{_LOW}|{_HIGH}")


def _escapes(closers: str, end: str) -> tuple[str, str, str, str]:
    """Return the escapes of certain meaning, by what they become: themselves, U+FFFD, a quote, a doubled backslash.

    Args:
        closers: the quotes that may close the string.
        end: what may stand behind the last one beside the characters that end the string.
    """
    foreign = "" if closers == '"' else f"{closers}xaAvVUN0-7"
    kept = rf'\\["\\/bfnrt]|\\u(?![dD][89a-fA-F]){_HEX}{{4}}|{_HIGH}{_LOW}'
    half = rf"{_LOW}|{_HIGH}(?=[^\\]|\\[^u]|\\u(?![dD][c-fC-F]){_HEX}{{4}}{end})"
    quote = r"\\'" if closers == '"' else rf"\\[{closers}']"
    bad = rf"\\(?=u{_HEX}{{0,3}}(?:[^0-9a-fA-F]{end})|[^\"\\/bfnrtu'{foreign}])"
    return kept, half, quote, bad


def _run_pattern(closers: str) -> re.Pattern[str]:
    """Return a pattern of text up to a quote that closes the string, or an escape that is incomplete or has no meaning.

    It has no groups: Python 3.11 loses them in a possessive repeat.
    """
    escape = "|".join(_escapes(closers, ""))
    run = rf"[^\\{closers}]*+(?:(?:{escape})[^\\{closers}]*+)*+"
    return rare_pattern(run)


def _mending_pattern(closers: str) -> re.Pattern[str]:
    """Return a pattern that splits such a text at its escapes and bare quotes, which are its only group."""
    mending = "|".join((*_escapes(closers, r"|\Z"), '"')).join("()")
    return rare_pattern(mending)


_ALL_CLOSERS: Final = ('"', "'", "”", "“”", "’", "»")
_RUNS: Final = {closers: _run_pattern(closers) for closers in _ALL_CLOSERS}
_MENDINGS: Final = {closers: _mending_pattern(closers) for closers in _ALL_CLOSERS}
#: What Python and JavaScript read otherwise than as a backslash and a letter, in a string that is no JSON string.
_FOREIGN_ESCAPES: Final = frozenset("xaAvVUN01234567")


class Unreadable(Exception):
    """There is no certain reading; the message says what stands where."""


class StringText:
    """Reads strings one after another. The text read stands in `pieces` until it is taken.

    Attributes:
        escape: the part of an escape (and of a pair of surrogates) that has come; plain text may not follow as it is.
        is_literal: a backslash of this string stands for itself, so that all of it must be read here.
    """

    __slots__ = ("_closers", "_has_letters", "_note", "_run", "escape", "is_literal", "pieces")

    def __init__(self, note: Callable[[str], None]) -> None:
        """Create it. `note`: called with each change."""
        self._note = note
        self._closers = '"'
        self.escape = ""
        self.pieces = GatheredText()
        self._run = _RUNS[self._closers]
        self.is_literal = self._has_letters = False

    def begin(self, closers: str, *, goes_on: bool = False) -> None:
        """Begin, or continue, a string that each of these quotes may close."""
        if not goes_on:
            self.is_literal = self._has_letters = False
        self._closers = closers
        self._run = _RUNS[closers]

    def taken(self) -> str:
        """Return what was read since the last call."""
        return self.pieces.take()

    def put_quote(self, quote: str) -> None:
        """Add a quote that belongs to the string."""
        self.pieces.add('\\"' if quote == '"' else quote)

    def see(self, text: str) -> None:
        """Take text of the string that needs no change and was not read here: whole escapes."""
        self._has_letters = self._has_letters or _LETTER.match(text) is not None

    def read(self, text: str, position: int) -> int:
        """Read up to a quote that may close the string. Return its place, or the end of the text.

        Raises:
            Unreadable: its escapes have two readings.
        """
        position = self._read(text, position)
        if self.is_literal and self._has_letters:
            raise Unreadable("a backslash is an escape, or stands for itself as another one in its text")
        return position

    def _read(self, text: str, position: int) -> int:
        begin, end = position, len(text)
        while position < end:
            if self.escape:
                position = self._read_escape(text, position)
                if position - begin < 6 or len(self.escape) != 6:
                    continue
                position -= 6  # half a pair that stands here in whole: many are read at once
            found = self._run.match(text, position, stretch := min(end, position + STRETCH))
            assert found is not None
            if self.escape and found.end() == position:
                position += 6
                continue
            self.escape = ""
            if found.end() > position:
                run = found.group()
                if PLAIN.fullmatch(run) is None:
                    run = self._mended(run)
                elif "\\" in run:
                    self.see(run)
                self.pieces.add(run)
                position = found.end()
                if position == stretch:
                    continue
            if text[position] in self._closers:
                return position
            self.escape = "\\"
            position += 1
        return end

    def _mended(self, run: str) -> str:
        """Return a run of text as JSON writes it, with all changes made at once."""
        if "\\" not in run:  # then its quotes are no part of an escape
            if _CONTROL.search(run) is not None:
                self._note("control character in a string")
            run = run.replace('"', '\\"')
            return run if run.isprintable() else _without_raw(run)
        control = _CONTROL.search(run)
        if control is None:
            return _without_raw(self._with_marks(run))
        before, behind = self._with_marks(run[: control.end()]), run[control.end() :]
        self._note("control character in a string")
        return _without_raw(before + self._with_marks(behind))

    def _with_marks(self, run: str) -> str:
        """Return a run with each escape and quote as JSON writes it; each kind is looked at once."""
        pieces = _MENDINGS[self._closers].split(run)
        marks = pieces[1::2]
        mended = {mark: self._mended_mark(mark) for mark in dict.fromkeys(marks)}
        pieces[1::2] = [mended[mark] for mark in marks]
        return "".join(pieces)

    def _mended_mark(self, mark: str) -> str:
        if mark == '"':
            return '\\"'
        if mark == "\\":
            self.is_literal = True
            self._note("bad escape")
            return "\\\\"
        letter = mark[1]
        self._has_letters = self._has_letters or self._is_letter(letter)
        if _HALF_ESCAPE.fullmatch(mark):
            self._note("half of a surrogate pair")
            return "\ufffd"
        if letter in _ESCAPABLE:
            return mark
        if self._closers == '"':
            self._note("bad escape")
        return letter

    # ------------------------------------------------------------ escapes

    def _is_letter(self, mark: str) -> bool:
        """Return whether an escape of this may as well be a backslash and the letter behind it."""
        return mark in "bfnrtu" or (mark == "'" and self._closers == '"')

    def _read_escape(self, text: str, position: int) -> int:
        """Read a whole escape."""
        mark = text[position]
        escape = self.escape + mark
        if len(escape) % 6 == 2:  # the letter after the backslash
            return self._read_letter(escape, mark, position)
        if len(escape) == 7 and mark != "\\":
            self._put_half()
            self.escape = ""
            return position
        if len(escape) % 6 in (0, 3, 4, 5) and mark not in "0123456789abcdefABCDEF":
            return self._drop_unicode(escape[:-1], position)
        self.escape = escape
        if len(escape) in (6, 12):
            self._end_unicode(escape)
        return position + 1

    def _read_letter(self, escape: str, mark: str, position: int) -> int:
        if len(escape) == 8 and mark != "u":
            self._put_half()
            self.escape = "\\"
            return position
        if mark == "u":
            self.escape = escape
            return position + 1
        self.escape = ""
        self._has_letters = self._has_letters or self._is_letter(mark)
        if mark in _ESCAPABLE:
            self.pieces.add(escape)
        elif mark == "'" or mark in self._closers:
            if self._closers == '"':
                self._note("bad escape")
            self.put_quote(mark)
        elif self._closers != '"' and mark in _FOREIGN_ESCAPES:
            raise Unreadable("an escape that JSON does not have")
        else:
            self._note("bad escape")
            self.is_literal = True
            self.pieces.add("\\\\")
            return position  # a line end behind it stands for itself
        return position + 1

    def _end_unicode(self, escape: str) -> None:
        self._has_letters = True
        unit = int(escape[-4:], 16)
        if len(escape) == 6:
            if 0xD800 <= unit <= 0xDBFF:
                return  # waits for its partner
            self.escape = ""
            if 0xDC00 <= unit <= 0xDFFF:
                self._put_half()
            else:
                self.pieces.add(escape)
        elif 0xDC00 <= unit <= 0xDFFF:
            self.escape = ""
            self.pieces.add(escape)
        else:
            self._put_half()
            self.escape = escape[6:]
            self._end_unicode(self.escape)

    def _drop_unicode(self, escape: str, position: int) -> int:
        """`\\u` without four digits is a backslash that should have been doubled (a path)."""
        self._note("bad escape")
        self.is_literal = True
        if len(escape) > 6:
            self.pieces.add("\ufffd")
        self.pieces.add("\\\\" + escape[-(len(escape) % 6) + 1 :])
        self.escape = ""
        return position

    def _put_half(self) -> None:
        self._note("half of a surrogate pair")
        self.pieces.add("\ufffd")


def _without_raw(run: str) -> str:
    return _HALF.sub("\ufffd", run.translate(_MENDED))


def unescaped(raw: str) -> str:
    """Return the string of which this is the inside."""
    decoded = _json.decode(f'"{raw}"') if "\\" in raw else raw
    return decoded if isinstance(decoded, str) else raw
