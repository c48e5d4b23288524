"""`PartialArguments`: incomplete argument text as an object.

Text is never read twice, and a look costs nothing by itself: the containers are live, and the text of an unfinished
string is joined only on demand. Text that is not JSON is skipped and never raises; the final object of a call is
`ToolCall.values()`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, final, overload

from dragoman import _json
from dragoman.gathered import GatheredText

#: The inside of a string as far as it needs no second look: no code points, no end.
_INSIDE: Final = re.compile(r'[^"\\]*+(?:\\["\\/bfnrt][^"\\]*+)*+')
#: A whole key with its colon, without escapes.
_KEY: Final = re.compile(r'[ \t\r\n]*"([^"\\]*+)"[ \t\r\n]*:')
_TOKEN: Final = re.compile(r'[ \t\r\n]*(?:([{}\[\],:"])|([-+.0-9A-Za-z]+)|[^ \t\r\n])')
_WORD: Final = re.compile(r"[-+.0-9A-Za-z]+")
_ESCAPE: Final = re.compile(r"\\(.)")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/"}


class _OpenString:
    """An unfinished string."""

    __slots__ = ("pieces",)

    def __init__(self) -> None:
        self.pieces = GatheredText()

    def text(self) -> str:
        return self.pieces.text()


@final
class LiveObject(Mapping[str, Any]):
    """A JSON object that may still grow. Read-only; `to_dict` gives a plain copy."""

    __slots__ = ("_items",)

    def __init__(self) -> None:
        self._items: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        return _seen(self._items[key])

    @overload
    def get(self, key: str, /) -> Any: ...
    @overload
    def get(self, key: str, /, default: Any) -> Any: ...
    def get(self, key: str, /, default: Any = None) -> Any:
        """Return the value of a key, or the default."""
        return _seen(self._items.get(key, default))

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and self.to_dict() == _plain(other)

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return a plain copy of what has come so far."""
        return {key: _plain(value) for key, value in self._items.items()}


@final
class LiveList(Sequence[Any]):
    """A JSON array that may still grow. Read-only; `to_list` gives a plain copy."""

    __slots__ = ("_items",)

    def __init__(self) -> None:
        self._items: list[Any] = []

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [_seen(value) for value in self._items[index]]
        return _seen(self._items[index])

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LiveList | list) and self.to_list() == _plain(other)

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.to_list())

    def to_list(self) -> list[Any]:
        """Return a plain copy of what has come so far."""
        return [_plain(value) for value in self._items]


def _seen(value: Any) -> Any:
    return value.text() if type(value) is _OpenString else value


def _plain(value: Any) -> Any:
    if isinstance(value, LiveObject):
        return value.to_dict()
    if isinstance(value, LiveList):
        return value.to_list()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return _seen(value)


def _unescaped(text: str) -> str:
    """Return the inside of a string whose escapes are of one letter."""
    if "\\" not in text:
        return text
    value = _json.decode(f'"{text}"')
    if isinstance(value, str):
        return value
    return _ESCAPE.sub(lambda found: _ESCAPES[found[1]], text)  # there are raw control characters in it


class PartialArguments:
    """Reads the argument text of one call as it comes. Time is linear in the text."""

    __slots__ = ("_escape", "_key", "_root", "_stack", "_state", "_string", "_word")

    def __init__(self) -> None:
        self._root = LiveObject()
        self._stack: list[LiveObject | LiveList] = []
        self._state: Literal["before", "key", "colon", "value", "after", "done"] = "before"
        self._key = ""
        self._string: _OpenString | None = None
        self._escape = ""  # an escape that is not whole yet
        self._word = ""  # a number or literal that may still go on

    def values(self) -> LiveObject:
        """Return the object so far: the same live view each time; empty until the object opens."""
        return self._root

    def feed(self, text: str) -> None:
        """Take the next text."""
        string = self._string
        if string is not None and not self._escape and '"' not in text and "\\" not in text:  # the usual delta
            string.pieces.add(text)
            return
        position, end = 0, len(text)
        while position < end and self._state != "done":
            if self._string is not None:
                position = self._read_string(self._string, text, position)
            elif self._word:
                position = self._read_word(text, position)
            else:
                position = self._read_token(text, position)

    # ------------------------------------------------------------ tokens

    def _read_token(self, text: str, position: int) -> int:
        if self._state == "key":
            key = _KEY.match(text, position)
            if key is not None:
                self._key = key[1]
                self._state = "value"
                return key.end()
        found = _TOKEN.match(text, position)
        if found is None:
            return len(text)
        mark = found[1]
        if found[2]:
            self._word = found[2] if self._state == "value" else ""
        elif mark == '"':
            self._open_string()
        elif mark == "{" or mark == "[":
            self._open_container(mark)
        elif mark == "}" or mark == "]":
            self._close_container()
        elif mark == ",":
            if self._stack:
                self._state = "key" if type(self._stack[-1]) is LiveObject else "value"
        elif mark == ":" and self._state == "colon":
            self._state = "value"
        end = found.end()
        if self._word and end < len(text):
            self._put_word()
        return end

    def _read_word(self, text: str, position: int) -> int:
        found = _WORD.match(text, position)
        if found is not None:
            self._word += found.group()
            position = found.end()
            if position == len(text):
                return position
        self._put_word()
        return position

    def _put_word(self) -> None:
        value = _json.decode(self._word)
        self._word = ""
        if not isinstance(value, _json.Malformed):
            self._put(value)
        self._state = "after"

    def _open_container(self, mark: str) -> None:
        if self._state == "before":
            if mark == "{":
                self._stack.append(self._root)
                self._state = "key"
        elif self._state == "value":
            container = LiveObject() if mark == "{" else LiveList()
            self._put(container)
            self._stack.append(container)
            self._state = "key" if mark == "{" else "value"

    def _close_container(self) -> None:
        if self._stack:
            self._stack.pop()
            self._state = "after" if self._stack else "done"

    def _put(self, value: Any) -> None:
        container = self._stack[-1]
        if type(container) is LiveObject:
            container._items[self._key] = value
        else:
            container._items.append(value)

    # ------------------------------------------------------------ strings

    def _open_string(self) -> None:
        if self._state not in ("key", "value"):
            return
        self._string = _OpenString()
        if self._state == "value":
            self._put(self._string)

    def _read_string(self, string: _OpenString, text: str, position: int) -> int:
        if self._escape:
            return self._read_escape(string, text, position)
        end = _INSIDE.match(text, position).end()  # type: ignore[union-attr]  # it matches nothing at least
        if end > position:
            string.pieces.add(_unescaped(text[position:end]))
        if end < len(text):
            if text[end] == "\\":
                self._escape = "\\"
            else:
                self._close_string(string)
            end += 1
        return end

    def _close_string(self, string: _OpenString) -> None:
        self._string = None
        if self._state == "key":
            self._key = string.text()
            self._state = "colon"
            return
        container = self._stack[-1]
        if type(container) is LiveObject:
            container._items[self._key] = string.text()
        else:
            container._items[-1] = string.text()
        self._state = "after"

    def _read_escape(self, string: _OpenString, text: str, position: int) -> int:
        escape = self._escape + text[position]
        if len(escape) == 2 and escape[1] != "u":
            string.pieces.add(_ESCAPES.get(escape[1], escape[1]))
            self._escape = ""
        elif len(escape) in (6, 12):
            self._escape = self._put_code(string, escape)
        elif len(escape) in (7, 8) and escape[6:] not in ("\\", "\\u"):
            string.pieces.add("\ufffd")  # a high surrogate without its partner
            self._escape = ""
            return position - (len(escape) - 7)
        else:
            self._escape = escape
        return position + 1

    def _put_code(self, string: _OpenString, escape: str) -> str:
        """Add a `\\uXXXX` (or a pair of them). Return what must wait for its partner."""
        try:
            units = [int(part, 16) for part in escape.split("\\u")[1:]]
        except ValueError:
            string.pieces.add("\ufffd")
            return ""
        if len(units) == 1 and 0xD800 <= units[0] <= 0xDBFF:
            return escape
        data = b"".join(unit.to_bytes(2, "big") for unit in units)
        string.pieces.add(data.decode("utf-16-be", "replace"))
        return ""
