"""Read the text of an answer that was requested as one JSON object of calls or words, live."""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Final, TypeAlias

from dragoman import _json
from dragoman.codec.patterns import rare_pattern
from dragoman.stages.rescue.cursor import BODY, MORE, Action, Close, Cursor, NotACall, Open, Piece
from dragoman.stages.rescue.runner import Prose

#: What a reader finds: words, and between an `Open` and its `Close` the `Piece`s of a call's arguments.
Said: TypeAlias = Action | Prose

_TWO_NAMES: Final = "it names two tools"
_TWICE: Final = "it has arguments twice"
_KEY: Final = rare_pattern(r"[^\"\\]+")
_KEY_LIMIT: Final = 64
#: Text of a JSON string whose escapes are whole; a high surrogate waits for what follows it.
_WHOLE: Final = rare_pattern(
    r'(?:[^"\\]++|\\[^u]|\\u(?![dD][89abAB])[0-9a-fA-F]{4}'
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?=[^\\]|\\[^u]|\\u(?:[^dD]|[dD][^c-fC-F])))"
    r"|\\(?=u[0-9a-fA-F]{0,3}[^0-9a-fA-F]))*+",
    re.DOTALL,
)
_ESCAPE: Final = rare_pattern(
    r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|\\u([0-9a-fA-F]{4})|\\(.)", re.DOTALL
)
_SIMPLE: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/"}


class AnswerText:
    """The text of one part. `read` is a generator over its cursor.

    Attributes:
        is_ours: it is known to be of the requested form.
        is_in_calls: the list of calls is being read.
        oddities: what of it was not of the form.
    """

    __slots__ = ("cursor", "is_in_calls", "is_ours", "oddities")

    def __init__(self) -> None:
        self.cursor = Cursor()
        self.cursor.mark()
        self.is_ours = False
        self.is_in_calls = False
        self.oddities: list[str] = []

    def read(self) -> Generator[Said, None, None]:
        """Yield words and calls as they come. Raises `NotACall` if the text leaves the form."""
        cursor = self.cursor
        yield from cursor.space()
        fenced = yield from cursor.take("```json", "```")
        yield from cursor.space()
        yield from cursor.expect("{")
        while True:
            yield from cursor.space()
            if (yield from cursor.take("}")):
                break
            key = yield from self._key()
            if key == "tool_calls":
                yield from self._calls()
                self.is_in_calls = False
            elif key == "answer":
                yield from self._words()
            elif not self.is_ours:
                raise NotACall
            else:
                yield from cursor.json()
                self.oddities.append(f"another key, {key[:_KEY_LIMIT]!r}")
            yield from cursor.space()
            yield from cursor.take(",")
            if cursor.ended and not cursor.rest():
                return
        if not self.is_ours:
            raise NotACall
        if fenced:
            yield from cursor.closing("```")

    def _key(self) -> Generator[Said, None, str]:
        """Read a key and its colon."""
        cursor = self.cursor
        yield from cursor.expect('"')
        key = yield from cursor.word(_KEY, _KEY_LIMIT)
        yield from cursor.expect('"')
        yield from cursor.space()
        yield from cursor.expect(":")
        yield from cursor.space()
        return key

    def _keep(self) -> None:
        """Record that the text is of the form, so that nothing read so far is passed as text."""
        self.is_ours = True
        self.cursor.unmark()

    # ------------------------------------------------------------ calls

    def _calls(self) -> Generator[Said, None, None]:
        cursor = self.cursor
        yield from cursor.expect("[")
        self._keep()
        self.is_in_calls = True
        while True:
            yield from cursor.space()
            if (yield from cursor.take("]")):
                return
            yield from cursor.expect("{")
            yield from self._call()
            yield from cursor.space()
            yield from cursor.take(",")
            if cursor.ended and not cursor.rest():
                return

    def _call(self) -> Generator[Said, None, None]:
        """Read one call, from behind its brace on; it is live once its name is known."""
        cursor = self.cursor
        name, held, is_open, unread, problem = "", "", False, "", ""
        while True:
            yield from cursor.space()
            if (yield from cursor.take("}")):
                break
            if is_open and cursor.ended and not cursor.rest():
                break  # the arguments are whole; what is missing is the wrapper
            key = yield from self._key()
            if key == "name" and not name:
                value = _json.decode((yield from cursor.json()))
                if not isinstance(value, str) or not value:
                    raise NotACall
                name = value
            elif key == "arguments" and name and not (is_open or held):
                yield Open(name)
                is_open = True
                if not (yield from cursor.json_pieces()):
                    yield Close("")
                    return
            else:
                value = yield from cursor.json()
                if key == "name" and _json.decode(value) != name:
                    problem = _TWO_NAMES
                elif key == "arguments" and (is_open or held):
                    problem = _TWICE
                elif key == "arguments":
                    held = value
                elif key != "name":
                    unread = key[:_KEY_LIMIT]
            yield from cursor.space()
            yield from cursor.take(",")
        if not name:
            raise NotACall
        if not is_open:
            yield Open(name)
            if held:
                yield Piece(held)
            elif unread:
                problem = problem or f"it has {unread!r} and no arguments"
        yield Close("" if problem else BODY, problem)

    # ------------------------------------------------------------ words

    def _words(self) -> Generator[Said, None, None]:
        cursor = self.cursor
        first = yield from cursor.peek()
        if not first:
            raise NotACall
        self._keep()
        if first == '"':
            cursor.skip(1)
            yield from self._string()
            return
        for said in cursor.json_pieces():  # structured output that the request asked for by itself
            yield Prose(said.text) if isinstance(said, Piece) else said

    def _string(self) -> Generator[Said, None, None]:
        """Read the rest of a string, without its escapes."""
        cursor = self.cursor
        while True:
            rest = cursor.rest()
            found = _WHOLE.match(rest)
            text = found.group() if found is not None else ""
            cursor.skip(len(text))
            if text:
                yield Prose(_ESCAPE.sub(_character, text) if "\\" in text else text)
            if rest[len(text) : len(text) + 1] == '"':
                cursor.skip(1)
                return
            if cursor.ended:
                cursor.skip(len(cursor.rest()))  # half an escape
                return
            yield MORE


def _character(escape: re.Match[str]) -> str:
    high, low, code, simple = escape.groups()
    if high is not None:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    if code is not None:
        value = int(code, 16)
        return "\ufffd" if 0xD800 <= value < 0xE000 else chr(value)
    return _SIMPLE.get(simple, escape.group())
