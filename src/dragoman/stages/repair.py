"""Argument text, repaired and coerced while it streams: `Repairer`.

It lets out only text that nothing can change any more, so what left is always a prefix of the final text. The rules:

1. Nothing leaves before the first key's opening quote is seen.
2. A string leaves live only where the schema takes a string and nothing else decides its value.
3. Its closing quote waits until what follows shows that it closes: `,` or the container's end.
4. An escape leaves whole; a high surrogate waits for its partner; a raw control character becomes an escape.
5. A number or literal ends only at white space, `,`, `}` or `]`.
6. Values that the schema may change are captured, already repaired, and coerced when they close. Nothing is read twice.
7. A value that needs no repair and fits keeps its own text, white space included.
8. A comma leaves with what follows it, so a trailing comma never shows.
"""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

from dragoman import _json
from dragoman._json import Malformed
from dragoman.stages.schema import Shape, ToolSchema

State: TypeAlias = Literal[
    "start", "key-or-end", "key", "colon", "value", "value-or-end", "after", "string", "quote", "look", "word",
    "done", "failed",
]  # fmt: skip

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_PLAIN: Final = re.compile(r'[^"\\\x00-\x1f\ud800-\udfff]*+(?:\\["\\/bfnrt][^"\\\x00-\x1f\ud800-\udfff]*+)*+')
_PLAIN_SINGLE: Final = re.compile(r"[^'\"\\\x00-\x1f\ud800-\udfff]*+")
_WORD: Final = re.compile(r"[^\s,:{}\[\]\"']+")
_KEY_AHEAD: Final = re.compile(r'"([^"\\\n]{1,64})"\s*:')
_KEY_BEGUN: Final = re.compile(r'"[^"\\\n]{0,64}(?:"\s*)?')
_BARE_KEY: Final = re.compile(r"[A-Za-z_$][\w$.-]*")
_LITERALS: Final = {"true": "true", "false": "false", "null": "null"}
_PYTHON_LITERALS: Final = {"True": "true", "False": "false", "None": "null", "TRUE": "true", "FALSE": "false"}
_ESCAPABLE: Final = frozenset('"\\/bfnrtu')
_CONTROLS: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_DEEPEST: Final = 512
_LEAP: Final = 64  # characters that are worth a look ahead
_LEAPS: Final = 3


class _Unreadable(Exception):
    """There is no sure reading; the message says what stands where."""


class _Container:
    """An object or array that is open."""

    __slots__ = ("closers", "key", "keys", "kind", "shape")

    def __init__(self, kind: Literal["{", "["], shape: Shape) -> None:
        self.kind = kind
        self.closers = ",}" if kind == "{" else ",]"  # what may follow a string that ends
        self.shape = shape
        self.key = ""
        self.keys: set[str] = set()


class Repairer:
    """Reads the argument text of one call.

    Attributes:
        codes: what was repaired or coerced: deviation code, where, what was done; never a value.
        problem: why the text cannot be read surely; "" while it can.
        rest: what came after the object's end.
    """

    __slots__ = (
        "_capture", "_capture_depth", "_capture_shape", "_container", "_escape", "_gap", "_is_key", "_is_live",
        "_leaps", "_look", "_out", "_pieces", "_quote", "_schema", "_stack", "_state", "_word", "codes", "problem",
        "rest",
    )  # fmt: skip

    def __init__(self, schema: ToolSchema) -> None:
        self.codes: list[tuple[str, str, str]] = []
        self.problem = ""
        self.rest = ""
        self._schema = schema
        self._state: State = "start"
        self._stack: list[_Container] = []
        self._container: _Container | None = None  # the top of the stack
        self._out: list[str] = []
        self._gap = ""  # white space, and a comma, before the next token
        self._capture: list[str] | None = None  # text of a value that is judged whole
        self._capture_depth = 0
        self._capture_shape: Shape | None = None
        self._pieces: list[str] = []  # the key that is read
        self._is_key = False
        self._is_live = False  # in a string that leaves as it comes
        self._quote = '"'
        self._escape = ""
        self._look = ""
        self._word = ""
        self._leaps = 0  # over whole items, that may still be tried in this text

    def is_done(self) -> bool:
        """Whether the object is closed."""
        return self._state == "done"

    def feed(self, text: str) -> str:
        """Take the next text; gives what may leave."""
        if self._is_live and _PLAIN.fullmatch(text) is not None:
            return text
        if self._state == "failed":
            return ""
        self._leaps = _LEAPS if len(text) > _LEAP else 0
        try:
            self._read(text)
        except _Unreadable as problem:
            self._state = "failed"
            self.problem = str(problem)
        self._is_live = (
            self._state == "string"
            and self._quote == '"'
            and not (self._escape or self._is_key)
            and self._capture is None
        )
        out = "".join(self._out)
        self._out.clear()
        return out

    def close(self) -> bool:
        """The text ended; whether it was one whole object. Otherwise `problem` says why not."""
        if self._state == "done":
            return True
        if self._state != "failed":
            self._state = "failed"
            self.problem = "the arguments end before they are closed"
        return False

    def _note(self, code: str, done: str) -> None:
        path = "".join(f".{container.key}" if container.kind == "{" else "[]" for container in self._stack)
        self.codes.append((code, f"arguments{path}"[:120], done))

    def _put(self, text: str) -> None:
        (self._out if self._capture is None else self._capture).append(text)

    # ------------------------------------------------------------ tokens

    def _read(self, text: str) -> None:
        position, end = 0, len(text)
        while position < end:
            state = self._state
            if state == "string":
                position = self._read_string(text, position)
            elif state == "word":
                position = self._read_word(text, position)
            elif state == "quote":
                position = self._read_after_quote(text, position)
            elif state == "look":
                position = self._read_look(text, position)
            elif state == "done":
                self.rest += text[position:]
                return
            else:
                position = self._read_mark(text, position)

    def _read_mark(self, text: str, position: int) -> int:
        mark = text[position]
        if mark in " \t\r\n":
            found = _SPACE.match(text, position)
            assert found is not None
            if self._state != "start":
                self._gap += found.group()
            return found.end()
        match self._state:
            case "start":
                if mark != "{":
                    raise _Unreadable("expected the arguments to begin with a brace")
                self._open("{", self._schema.root())
            case "key-or-end" | "key":
                return self._read_key_start(text, position)
            case "colon":
                if mark != ":":
                    raise _Unreadable("expected a colon after a key")
                self._gap += ":"
                self._state = "value"
            case "value" | "value-or-end":
                return self._read_value_start(text, position)
            case _:
                return self._read_after(text, position)
        return position + 1

    def _read_key_start(self, text: str, position: int) -> int:
        mark = text[position]
        if mark == "}":
            self._close_container("}")
        elif mark == "," and self._state == "key":
            self._note("repaired-arguments", "doubled comma")
        elif mark in "\"'":
            self._begin_string(mark, is_key=True)
        elif _WORD.match(text, position):
            self._is_key = True
            self._state = "word"
            return position
        else:
            raise _Unreadable("expected a key or the end of the object")
        return position + 1

    def _read_value_start(self, text: str, position: int) -> int:
        mark = text[position]
        container = self._container
        assert container is not None
        if mark == "]" and container.kind == "[":
            self._close_container("]")
            return position + 1
        shape = self._shape_of_value(container)
        if mark in "\"'":
            self._put_gap()
            if not shape.takes_live("string"):
                self._begin_capture(shape)
            self._begin_string(mark, is_key=False)
        elif mark in "{[":
            self._put_gap()
            if not shape.takes_live("object" if mark == "{" else "array"):
                self._begin_capture(shape)
            self._open("{" if mark == "{" else "[", shape)
        elif _WORD.match(text, position):
            self._put_gap()
            self._is_key = False
            self._state = "word"
            return position
        else:
            raise _Unreadable("expected a value")
        return position + 1

    def _shape_of_value(self, container: _Container) -> Shape:
        if self._capture is not None:
            return _ANYTHING
        if container.kind == "{":
            return self._schema.member(container.shape, container.key)
        return self._schema.item(container.shape)

    def _read_after(self, text: str, position: int) -> int:
        container = self._container
        assert container is not None
        mark = text[position]
        if mark == ",":
            if self._leaps and container.kind == "[" and (end := self._end_of_items(text, position)) > position:
                self._put_gap()
                self._put(text[position:end])
                return end
            self._gap += ","
            self._state = "key" if container.kind == "{" else "value-or-end"
        elif mark in "}]":
            self._close_container(mark)
        elif container.kind == "[" or mark in "\"'" or _BARE_KEY.match(text, position):
            self._note("repaired-arguments", "missing comma")
            self._gap = "," + self._gap
            self._state = "key" if container.kind == "{" else "value-or-end"
            return position
        else:
            raise _Unreadable("expected a comma or the end of the container")
        return position + 1

    def _end_of_items(self, text: str, position: int) -> int:
        """Where the last whole item of the open list ends, if nothing from `position` (a comma) up to there is to be
        repaired or coerced, as the JSON reader tells at once; else `position`."""
        assert self._container is not None
        self._leaps -= 1
        fits = self._schema.fitting_items(self._shape_of_value(self._container))
        end = len(text)
        for _ in range(_LEAPS if fits is not None else 0):
            end = text.rfind("},", position, end)
            if end - position < _LEAP:
                break
            if fits is not None and fits(text[position + 1 : end + 1]):
                return end + 1
        return position

    # ------------------------------------------------------------ containers

    def _open(self, kind: Literal["{", "["], shape: Shape) -> None:
        if len(self._stack) >= _DEEPEST:
            raise _Unreadable(f"the arguments are nested deeper than {_DEEPEST} levels")
        self._container = _Container(kind, shape)
        self._stack.append(self._container)
        if len(self._stack) == 1:
            self._gap = "{"
        else:
            self._put(kind)
        self._state = "key-or-end" if kind == "{" else "value-or-end"

    def _close_container(self, mark: str) -> None:
        container = self._container
        assert container is not None
        if mark != ("}" if container.kind == "{" else "]"):
            raise _Unreadable(f"expected the end of {'an object' if container.kind == '{' else 'a list'}, got {mark}")
        if self._state == "key" or "," in self._gap:
            self._note("repaired-arguments", "trailing comma")
            self._gap = self._gap.replace(",", "")
        self._put_gap()
        self._put(mark)
        if self._capture is None:
            self._check_members(container)
        self._stack.pop()
        self._container = self._stack[-1] if self._stack else None
        if self._container is None:
            self._state = "done"
        else:
            self._end_value()

    def _check_members(self, container: _Container) -> None:
        required = container.shape.schema.get("required") if container.kind == "{" else None
        missing = [key for key in required if key not in container.keys] if isinstance(required, list) else []
        if missing:
            self._note("arguments-misfit", f"missing: {', '.join(map(str, missing))}"[:120])

    def _put_gap(self) -> None:
        if self._gap:
            self._put(self._gap)
            self._gap = ""

    def _end_value(self) -> None:
        """A value is whole: what was captured is judged."""
        self._state = "after"
        if self._capture is None or len(self._stack) != self._capture_depth:
            return
        text, shape = "".join(self._capture), self._capture_shape
        self._capture = None
        assert shape is not None
        self._put(self._coerced(text, shape))

    def _begin_capture(self, shape: Shape) -> None:
        if self._capture is None:
            self._capture = []
            self._capture_depth = len(self._stack)
            self._capture_shape = shape

    def _coerced(self, text: str, shape: Shape) -> str:
        value = _json.decode_exact(text)
        if isinstance(value, Malformed):
            raise _Unreadable(f"a value is not JSON: {value.problem}")
        changed = self._schema.coerced(value, shape.schema)
        if not self._schema.fits(changed, shape.schema):
            self._note("arguments-misfit", f"{_kind(value)} where {_wanted(shape)} is wanted")
        if changed is value or _json.encode_exact(changed) == _json.encode_exact(value):
            return text
        self._note("coerced-arguments", f"{_kind(value)} to {_kind(changed)}")
        return _json.encode_exact(changed)

    # ------------------------------------------------------------ numbers and literals

    def _read_word(self, text: str, position: int) -> int:
        found = _WORD.match(text, position)
        if found is not None:
            self._word += found.group()
            if found.end() == len(text):
                return found.end()
            position = found.end()
        word, self._word = self._word, ""
        if self._is_key:
            self._end_bare_key(word)
        else:
            self._end_word(word)
        return position

    def _end_bare_key(self, word: str) -> None:
        if not _BARE_KEY.fullmatch(word):
            raise _Unreadable("expected a key in quotes")
        self._note("repaired-arguments", "key without quotes")
        self._end_key(word, f'"{word}"')

    def _end_word(self, word: str) -> None:
        literal = _LITERALS.get(word)
        if literal is None and word in _PYTHON_LITERALS:
            literal = _PYTHON_LITERALS[word]
            self._note("repaired-arguments", "literal of another language")
        if literal is None:
            literal = self._number(word)
        container = self._container
        assert container is not None
        shape = self._shape_of_value(container)
        is_sure = shape.takes_live("number" if literal[0] not in "tfn" else "null" if literal[0] == "n" else "boolean")
        self._put(literal if is_sure else self._coerced(literal, shape))
        self._end_value()

    def _number(self, word: str) -> str:
        if _json.read_number(word) is not None:
            return word
        mended = word.removeprefix("+")
        if mended[:1] == ".":
            mended = "0" + mended
        elif mended[:2] == "-.":
            mended = "-0" + mended[1:]
        if mended[-1:] == ".":
            mended += "0"
        if _json.read_number(mended) is None:
            raise _Unreadable("expected a number, true, false or null, or a string in quotes")
        self._note("repaired-arguments", "form of a number")
        return mended

    # ------------------------------------------------------------ strings

    def _begin_string(self, quote: str, *, is_key: bool) -> None:
        self._quote = quote
        self._is_key = is_key
        self._state = "string"
        if quote == "'":
            self._note("repaired-arguments", "single quotes")
        if is_key:
            self._pieces.clear()
        else:
            self._put('"')

    def _put_in_string(self, text: str) -> None:
        if self._is_key:
            self._pieces.append(text)
        else:
            self._put(text)

    def _read_string(self, text: str, position: int) -> int:
        if self._escape:
            return self._read_escape(text, position)
        found = (_PLAIN if self._quote == '"' else _PLAIN_SINGLE).match(text, position)
        if found is not None and found.end() > position:
            self._put_in_string(found.group())
            position = found.end()
            if position == len(text):
                return position
        mark = text[position]
        if mark == "\\":
            self._escape = "\\"
        elif mark == self._quote:
            self._look = ""
            following = text[position + 1 : position + 2]
            if following == ":" and self._is_key:
                raw = "".join(self._pieces)
                self._end_key(_unescaped(raw), f'"{raw}"')
            elif (
                following and not self._is_key and self._container is not None and following in self._container.closers
            ):
                self._end_string()
            else:
                self._state = "quote"
        elif mark == '"':
            self._put_in_string('\\"')
        elif "\ud800" <= mark <= "\udfff":
            self._put_in_string("\ufffd")
        else:
            self._put_control(mark)
        return position + 1

    def _put_control(self, mark: str) -> None:
        self._note_once("control character in a string")
        self._put_in_string(_CONTROLS.get(mark) or f"\\u{ord(mark):04x}")

    def _note_once(self, done: str) -> None:
        if not any(noted == done for _, _, noted in self.codes):
            self._note("repaired-arguments", done)

    def _read_escape(self, text: str, position: int) -> int:
        """An escape leaves whole. `_escape` holds what of it (and of a pair of surrogates) has come."""
        mark = text[position]
        escape = self._escape + mark
        if len(escape) % 6 == 2:  # the letter after the backslash
            return self._read_escape_letter(escape, mark, position)
        if len(escape) == 7 and mark != "\\":
            return self._drop_lone_surrogate(position)
        if len(escape) % 6 in (0, 3, 4, 5) and mark not in "0123456789abcdefABCDEF":
            return self._drop_escape(escape[:-1], position)
        self._escape = escape
        if len(escape) in (6, 12):
            self._end_unicode(escape)
        return position + 1

    def _read_escape_letter(self, escape: str, mark: str, position: int) -> int:
        if len(escape) == 8:
            if mark != "u":
                self._escape = "\\"
                self._note_once("half of a surrogate pair")
                self._put_in_string("\ufffd")
                return position
            self._escape = escape
        elif mark == "u":
            self._escape = escape
        else:
            self._escape = ""
            if mark in _ESCAPABLE:
                self._put_in_string(escape)
            elif mark == "'":
                self._put_in_string("'")
                if self._quote == '"':
                    self._note_once("bad escape")
            elif mark < " ":
                self._put_control(mark)  # a line that goes on, as in a shell
            else:
                self._note_once("bad escape")
                self._put_in_string("\\\\" + mark)
        return position + 1

    def _end_unicode(self, escape: str) -> None:
        unit = int(escape[-4:], 16)
        if len(escape) == 6:
            if 0xD800 <= unit <= 0xDBFF:
                return  # waits for its partner
            self._escape = ""
            if 0xDC00 <= unit <= 0xDFFF:
                self._note_once("half of a surrogate pair")
                escape = "\ufffd"
            self._put_in_string(escape)
        elif 0xDC00 <= unit <= 0xDFFF:
            self._escape = ""
            self._put_in_string(escape)
        else:
            self._note_once("half of a surrogate pair")
            self._put_in_string("\ufffd")
            self._escape = escape[6:]
            self._end_unicode(self._escape)

    def _drop_escape(self, escape: str, position: int) -> int:
        """`\\u` without four digits is a backslash that should have been doubled (a path)."""
        self._note_once("bad escape")
        if len(escape) > 6:
            self._put_in_string("\ufffd")
        self._put_in_string("\\\\" + escape[-(len(escape) % 6) + 1 :])
        self._escape = ""
        return position

    def _drop_lone_surrogate(self, position: int) -> int:
        self._note_once("half of a surrogate pair")
        self._put_in_string("\ufffd")
        self._escape = ""
        return position

    # ------------------------------------------------------------ where a string ends

    def _read_after_quote(self, text: str, position: int) -> int:
        """A quote was seen; `_look` is the white space after it. What follows tells whether it closes the string."""
        found = _SPACE.match(text, position)
        assert found is not None
        self._look += found.group()
        position = found.end()
        if position == len(text):
            return position
        mark = text[position]
        container = self._container
        assert container is not None
        if self._is_key:
            if mark == ":":
                raw = "".join(self._pieces)
                self._end_key(_unescaped(raw), f'"{raw}"')
                self._gap = self._look
                return position
            raise _Unreadable("expected a colon after a key")  # no name of an argument has a quote in it
        elif mark in container.closers:
            self._end_string()
        elif mark == '"' and container.kind == "{" and self._quote == '"':
            self._state = "look"
            self._pieces = [self._look]
            self._look = ""
        elif mark in "\"'" and container.kind == "[" and self._look.strip() == "" and self._look:
            self._note("repaired-arguments", "missing comma")
            self._end_string()
            self._gap = "," + self._gap
            self._state = "value-or-end"
        else:
            self._reopen()
        return position

    def _read_look(self, text: str, position: int) -> int:
        """After a closing quote another quote: the next key without its comma, or a quote inside the string."""
        self._look += text[position]
        position += 1
        found = _KEY_AHEAD.fullmatch(self._look)
        if found is not None and self._is_member(found[1]):
            self._note("repaired-arguments", "missing comma")
            self._state, gap = "quote", self._pieces[0]
            self._look = gap
            self._end_string()
            self._gap = "," + self._gap
            self._end_key(found[1], f'"{found[1]}"')
            self._gap = ":"
            self._state = "value"
        elif _KEY_BEGUN.fullmatch(self._look) is None:
            look, gap = self._look, self._pieces[0]
            self._look = gap
            self._reopen()
            self._read(look)
        return position

    def _is_member(self, key: str) -> bool:
        container = self._container
        assert container is not None
        properties = container.shape.schema.get("properties")
        return isinstance(properties, dict) and key in properties

    def _reopen(self) -> None:
        """The quote stands inside the string."""
        self._note_once("quote inside a string")
        self._put_in_string('\\"' if self._quote == '"' else "'")
        for mark in self._look:
            self._put_in_string(_CONTROLS.get(mark, mark))
        self._look = ""
        self._state = "string"

    def _end_string(self) -> None:
        self._put('"')
        self._end_value()
        self._gap = self._look
        self._look = ""

    def _end_key(self, key: str, text: str) -> None:
        container = self._container
        assert container is not None
        container.key = key
        container.keys.add(key)
        if self._capture is None and self._schema.is_unknown_member(container.shape, key):
            self._note("arguments-misfit", "a key that the schema does not have")
        self._put_gap()
        self._put(text)
        self._state = "colon"


def _unescaped(raw: str) -> str:
    decoded = _json.decode(f'"{raw}"') if "\\" in raw else raw
    return decoded if isinstance(decoded, str) else raw


_ANYTHING: Final = Shape({}, None, False)


def _kind(value: object) -> str:
    if isinstance(value, _json.Number):
        return "number"
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def _wanted(shape: Shape) -> str:
    if shape.types:
        return " or ".join(sorted(shape.types))
    return "one of the schema's values"
