"""The inside of a string of almost JSON, made the inside of a JSON string while it comes: `StringText`.

Each thing that is mended here has one meaning: a raw control character stands for itself, a backslash before what JSON
cannot escape is a backslash, half of a surrogate pair is U+FFFD. None of it tells where the string ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from dragoman import _json

#: Text that needs no mending.
PLAIN: Final = re.compile(r'[^"\\\x00-\x1f\ud800-\udfff]*+(?:\\["\\/bfnrt][^"\\\x00-\x1f\ud800-\udfff]*+)*+')
_PLAIN_BETWEEN_OTHERS: Final = re.compile("[^\"'’”“»\\\\\x00-\x1f\ud800-\udfff]*+")
_ESCAPABLE: Final = frozenset('"\\/bfnrtu')
_CONTROLS: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
#: What Python and JavaScript read otherwise than as a backslash and a letter, in a string that is no JSON string.
_FOREIGN_ESCAPES: Final = frozenset("xaAvVUN01234567")


class Unreadable(Exception):
    """There is no sure reading; the message says what stands where."""


class StringText:
    """Reads strings one after another. What was read lies in `pieces` until it is taken.

    Attributes:
        escape: what of an escape (and of a pair of surrogates) has come; plain text may not follow as it is.
    """

    __slots__ = ("_closers", "_note", "escape", "pieces")

    def __init__(self, note: Callable[[str], None]) -> None:
        """`note` is told what was mended."""
        self._note = note
        self._closers = '"'
        self.escape = ""
        self.pieces: list[str] = []

    def begin(self, closers: str) -> None:
        """A string begins; each of these quotes may close it."""
        self._closers = closers

    def taken(self) -> str:
        """What was read since the last time."""
        text = "".join(self.pieces)
        self.pieces.clear()
        return text

    def put_quote(self, quote: str) -> None:
        """A quote that belongs to the string."""
        self.pieces.append('\\"' if quote == '"' else quote)

    def read(self, text: str, position: int) -> int:
        """Read up to a quote that may close the string; gives its place, or the end of the text."""
        plain = PLAIN if self._closers == '"' else _PLAIN_BETWEEN_OTHERS
        end = len(text)
        while position < end:
            if self.escape:
                position = self._read_escape(text, position)
                continue
            found = plain.match(text, position)
            assert found is not None
            if found.end() > position:
                self.pieces.append(found.group())
                position = found.end()
                if position == end:
                    break
            mark = text[position]
            if mark in self._closers:
                return position
            if mark == "\\":
                self.escape = mark
            elif mark < " ":
                self._put_control(mark)
            elif "\ud800" <= mark <= "\udfff":
                self.pieces.append("\ufffd")
            else:
                self.put_quote(mark)
            position += 1
        return end

    def _put_control(self, mark: str) -> None:
        self._note("control character in a string")
        self.pieces.append(_CONTROLS.get(mark) or f"\\u{ord(mark):04x}")

    # ------------------------------------------------------------ escapes

    def _read_escape(self, text: str, position: int) -> int:
        """An escape leaves whole."""
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
        if mark in _ESCAPABLE:
            self.pieces.append(escape)
        elif mark == "'" or mark in self._closers:
            if self._closers == '"':
                self._note("bad escape")
            self.put_quote(mark)
        elif self._closers != '"' and mark in _FOREIGN_ESCAPES:
            raise Unreadable("an escape that is none in JSON")
        else:
            self._note("bad escape")
            self.pieces.append("\\\\")
            return position  # a line end behind it stands for itself
        return position + 1

    def _end_unicode(self, escape: str) -> None:
        unit = int(escape[-4:], 16)
        if len(escape) == 6:
            if 0xD800 <= unit <= 0xDBFF:
                return  # waits for its partner
            self.escape = ""
            if 0xDC00 <= unit <= 0xDFFF:
                self._put_half()
            else:
                self.pieces.append(escape)
        elif 0xDC00 <= unit <= 0xDFFF:
            self.escape = ""
            self.pieces.append(escape)
        else:
            self._put_half()
            self.escape = escape[6:]
            self._end_unicode(self.escape)

    def _drop_unicode(self, escape: str, position: int) -> int:
        """`\\u` without four digits is a backslash that should have been doubled (a path)."""
        self._note("bad escape")
        if len(escape) > 6:
            self.pieces.append("\ufffd")
        self.pieces.append("\\\\" + escape[-(len(escape) % 6) + 1 :])
        self.escape = ""
        return position

    def _put_half(self) -> None:
        self._note("half of a surrogate pair")
        self.pieces.append("\ufffd")


def unescaped(raw: str) -> str:
    """The string of which this is the inside."""
    decoded = _json.decode(f'"{raw}"') if "\\" in raw else raw
    return decoded if isinstance(decoded, str) else raw
