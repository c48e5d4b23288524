"""`NearJson`: repair argument text that is almost JSON (commas, quotes, comments, literals) from its first defect on.

Beside JSON it reads, each in one way: comments, typographic and single quotes, keys without quotes, Python's literals,
sets and tuples, numbers of other forms, doubled, trailing and missing commas, unescaped quotes inside a string (see
`dragoman.stages.argument_repair.inner_quotes`). Everything else is unreadable, and so is a text with two readings left.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from dragoman import _json
from dragoman._json import Json, Malformed
from dragoman.codec.parts.argument_residue import is_residue
from dragoman.codec.parts.settled_arguments import REPEATED_KEY
from dragoman.codec.patterns import rare_pattern
from dragoman.codec.repeated_keys import repeats_key
from dragoman.stages.argument_repair.argument_writer import ArgumentWriter
from dragoman.stages.argument_repair.inner_quotes import is_sure
from dragoman.stages.argument_repair.string_text import StringText, Unreadable, unescaped
from dragoman.stages.json_schema import ToolSchema

State: TypeAlias = Literal["start", "key-or-end", "key", "colon", "value", "value-or-end", "after", "string"]

#: An opening quote → what closes its string.
_CLOSERS: Final = {'"': '"', "'": "'", "“": "”", "”": "”", "„": "“”", "‘": "’", "«": "»"}
_SPACE: Final = rare_pattern(r"[\s\ufeff]*+")
_JSON_SPACE: Final = rare_pattern(r"[ \t\r\n]*+")
_WORD: Final = rare_pattern("[^\\s,:{}\\[\\]()\"'“”„‘’«»/#]++")
_BARE_KEY: Final = rare_pattern(r"[A-Za-z_$][\w$.-]*+")
#: A key in quotes that stands in a string of these closers, read no further than the next of them.
_QUOTED_KEY: Final = {
    '"': rare_pattern(r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|\'[^\'"\\\n]*+\'|“[^”"\\\n]*+”'),
    "'": rare_pattern(r"'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'|\"[^'\"\\\n]*+\"|“[^”'\\\n]*+”"),
}
_OTHER_QUOTED_KEY: Final = rare_pattern(r"[“”„‘«][^“”’»\n]*+[“”’»]|\"[^“”’»\"\n]*+\"|'[^“”’»'\n]*+'")
_SET_ITEM: Final = rare_pattern(
    r"[\"'“„‘«]|[-+]?(?:\d|\.\d)[\w.+-]*+(?=[\s,}\]/#])|(?:true|false|null|True|False|None|TRUE|FALSE)\b"
)
_LAST_OF_TUPLE: Final = rare_pattern(r"[-+]?(?:\d|\.\d)[\w.+-]*+\)")
_LITERALS: Final = {"true": "true", "false": "false", "null": "null"}
_PYTHON_LITERALS: Final = {"True": "true", "False": "false", "None": "null", "TRUE": "true", "FALSE": "false"}
_HEXADECIMAL: Final = rare_pattern(r"([-+]?)0[xX]([0-9a-fA-F]{1,64})")
_PADDED: Final = rare_pattern(r"(-?)0++(?:([1-9][0-9]*+)|(?<=00))")
#: What ends a line, and so a comment, for some readers and not for others.
_OTHER_LINE_END: Final = rare_pattern("\r(?!\n)|[\v\f\x85\u2028\u2029]")
_ENDS: Final = rare_pattern(r"\s*+[,}\]]")
_MOST_OTHERS: Final = 9  # quotes in a comment behind a string, of which each may close it
_MOST_INNER: Final = 8_192  # quotes in one string that do not close it; each is looked at for what follows it
_MOST_COMMENTS: Final = 8_192  # of which it is remembered where each ends
_ANYTHING: Final = ToolSchema({})
#: A text each of whose quotation marks is escaped, and nothing else.
_ESCAPED: Final = rare_pattern(r'[^"\\]*+(?:\\"[^"\\]*+)++')
#: How it is told that one was written where none stood.
MISSING_COMMA: Final = "missing comma"
#: What is wrong with text that only ends too early.
NOT_CLOSED: Final = "the arguments end before they are closed"


class NearJson:
    """Reads a text into an `ArgumentWriter`. Time is linear in the text.

    Attributes:
        has_inner_quotes: a string was read over quotes, so that only residue may stand behind the object.
    """

    __slots__ = ("_behind", "_ends", "_last", "_names", "_string", "_text", "_writer", "has_inner_quotes")

    def __init__(self, writer: ArgumentWriter, string: StringText, text: str, names: frozenset[str]) -> None:
        """Create it. `string`: the reader of the open string. `names`: all members of the schema."""
        self._writer = writer
        self._string = string
        self._text = text
        self._names = names
        self._behind: dict[int, int] = {}  # where a comment begins → where what follows it does
        self._last = ""  # character of a text that was read right before
        self._ends: dict[str, int] = {}  # the place of the next end of a comment, as far as it is known
        self.has_inner_quotes = False

    def read(self, state: State, *, before: str = "") -> int:
        """Read up to the end of the outermost container. Return the place behind it.

        Args:
            state: what is expected first; "string" within one in double quotes.
            before: what was read of that string.

        Raises:
            Unreadable: there is no certain reading.
        """
        place = 0
        if state == "string":
            place = self._read_string(place, '"', before)
            state = "after"
        while self._writer.stack or state == "start":
            place = self._pass_space(place, state)
            if place >= len(self._text):
                raise Unreadable(NOT_CLOSED)
            state, place = self._read_token(state, place)
        return place

    def _read_token(self, state: State, place: int) -> tuple[State, int]:
        mark = self._text[place]
        match state:
            case "start":
                if mark not in "{[(":
                    raise Unreadable("expected the arguments to begin with a brace")
                self._writer.open_root(mark)
                return ("key-or-end" if mark == "{" else "value-or-end"), place + 1
            case "key" | "key-or-end":
                return self._read_key(state, place)
            case "colon":
                if mark != ":":
                    raise Unreadable("expected a colon after a key")
                self._writer.gap.append(":")
                return "value", place + 1
            case "value" | "value-or-end":
                return self._read_value(state, place)
            case _:
                return self._read_after(place)

    # ------------------------------------------------------------ white space and comments

    def _pass_space(self, place: int, state: State) -> int:
        end = self._skip(place)
        if end > place and state != "start":
            space, gap = self._text[place:end], self._writer.gap
            if _JSON_SPACE.fullmatch(space) is None:
                self._writer.note_once("comment" if space.strip("\ufeff").strip() else "white space")
                space = "" if gap and gap[-1].isspace() else " "
            gap.append(space)
        return end

    def _skip(self, place: int) -> int:
        """Return the place behind white space and comments; the end of the text if one does not end."""
        first = self._text[place : place + 1]
        if " " < first < "\x7f" and first not in "#/":
            return place
        passed: list[int] = []
        while True:
            place = _SPACE.match(self._text, place).end()  # type: ignore[union-attr]  # it matches nothing at least
            if place in self._behind:
                place = self._behind[place]
                break
            mark = self._text[place : place + 2]
            if mark[:1] != "#" and mark not in ("//", "/*"):
                break
            passed.append(place)
            if len(passed) + len(self._behind) > _MOST_COMMENTS:
                raise Unreadable(f"the arguments hold more than {_MOST_COMMENTS} comments")
            end = "*/" if mark == "/*" else "\n"
            found = self._next(end, place + len(end))
            behind = found + len(end) if found >= 0 else len(self._text)
            if end == "\n" and 0 <= self._next("", place) < behind:
                raise Unreadable("a comment holds a line end of another kind")
            place = behind
        for comment in passed:
            self._behind[comment] = place
        return place

    def _next(self, end: str, place: int) -> int:
        """Return the place of the next one of these, "" for another line end; -1: none. No text is searched twice."""
        known = self._ends.get(end, -2)
        if known == -1 or known >= place:
            return known
        if end:
            known = self._text.find(end, place)
        else:
            found = _OTHER_LINE_END.search(self._text, place)
            known = found.start() if found is not None else -1
        self._ends[end] = known
        return known

    # ------------------------------------------------------------ keys

    def _read_key(self, state: State, place: int) -> tuple[State, int]:
        text, writer = self._text, self._writer
        mark = text[place]
        if mark == "}":
            return self._close(place, is_behind_comma=state == "key")
        if mark == "," and state == "key":
            writer.note("repaired-arguments", "doubled comma")
            return state, place + 1
        if mark in _CLOSERS:
            self._string.begin(_CLOSERS[mark])
            end = self._string.read(text, place + 1)
            raw = self._string.taken()
            if text.startswith(":", self._skip(end + 1)):
                self._note_quotes(mark)
                writer.add_key(unescaped(raw), f'"{raw}"')
                return "colon", end + 1
        else:
            found = _BARE_KEY.match(text, place)
            if found is not None and text.startswith(":", self._skip(found.end())):
                writer.note("repaired-arguments", "key without quotes")
                writer.add_key(found.group(), f'"{found.group()}"')
                return "colon", found.end()
        if state == "key-or-end" and _SET_ITEM.match(text, place):
            writer.make_set()
            return self._read_value("value", place)
        raise Unreadable("expected a key or the end of the object")

    def _note_quotes(self, mark: str) -> None:
        if mark != '"':
            self._writer.note("repaired-arguments", "single quotes" if mark == "'" else "typographic quotes")

    # ------------------------------------------------------------ values

    def _read_value(self, state: State, place: int) -> tuple[State, int]:
        mark, self._last = self._text[place], ""
        container = self._writer.container
        assert container is not None
        if mark == container.closer and container.kind == "[":
            return self._close(place, is_behind_comma=state == "value")
        if mark in _CLOSERS:
            self._note_quotes(mark)
            self._writer.begin_string()
            return "after", self._read_string(place + 1, _CLOSERS[mark], "")
        if mark in "{[(":
            self._writer.open(mark)
            return ("key-or-end" if mark == "{" else "value-or-end"), place + 1
        found = _WORD.match(self._text, place)
        if found is None:
            raise Unreadable("expected a value")
        self._read_word(found.group())
        return "after", found.end()

    def _close(self, place: int, *, is_behind_comma: bool) -> tuple[State, int]:
        writer = self._writer
        if is_behind_comma:
            writer.note("repaired-arguments", "trailing comma")
            writer.gap[:] = [space for space in writer.gap if space != ","]
        writer.close()
        self._last = ""
        return "after", place + 1

    def _read_after(self, place: int) -> tuple[State, int]:
        container = self._writer.container
        assert container is not None
        mark = self._text[place]
        if mark == container.closer:
            if mark == ")" and not container.key:
                raise Unreadable("expected a comma behind the one item of a tuple")
            return self._close(place, is_behind_comma=False)
        goes_on: State = "key" if container.kind == "{" else "value"
        if mark == ",":
            self._writer.gap.append(",")
            container.key = container.key or ","
            return goes_on, place + 1
        if mark in "}])":
            raise Unreadable(f"expected the end of {'an object' if container.kind == '{' else 'a list'}, got {mark}")
        if container.kind == "[" and not (self._writer.gap or mark in "{["):
            raise Unreadable("expected a comma or the end of the list")
        if mark == "(" or container.closer == ")":  # Python calls what stands before it, or joins two texts
            raise Unreadable("a comma is missing in a tuple, or before it")
        if self._last == ",":
            raise Unreadable("a comma is missing behind a text that ends with one")
        self._writer.note("repaired-arguments", MISSING_COMMA)
        self._writer.gap.insert(0, ",")
        return goes_on, place

    # ------------------------------------------------------------ numbers and literals

    def _read_word(self, word: str) -> None:
        writer = self._writer
        if word in _LITERALS or _json.read_number(word) is not None:
            writer.put_literal(word)
        elif word in _PYTHON_LITERALS:
            writer.note("repaired-arguments", "literal of another language")
            writer.put_literal(_PYTHON_LITERALS[word])
        else:
            number = _number(word)
            if number is None or (word.isdigit() and len(word) == 3 and writer.gap == [","]):  # or 1,000?
                raise Unreadable("expected a number, true, false or null, or a string in quotes")
            writer.note("repaired-arguments", "form of a number")
            writer.put_literal(number, written=word)

    # ------------------------------------------------------------ strings

    def _read_string(self, place: int, closers: str, before: str) -> int:
        """Read a string up to its closing quote. Return the place behind it.

        Args:
            place: where its inside begins, or continues.
            before: its inside so far.
        """
        text, string, start = self._text, self._string, place
        string.begin(closers, goes_on=bool(before))
        inner: list[int] = []
        while True:
            place = string.read(text, place)
            if place == len(text):
                raise Unreadable("a text is not closed, or a quote inside it has two readings")
            if self._closes(place, closers, is_clean=not inner):
                break
            if len(inner) >= _MOST_INNER:
                raise Unreadable(f"a text holds more than {_MOST_INNER} quotes that are not escaped")
            string.put_quote(text[place])
            inner.append(place - start + len(before))
            place += 1
        if inner:
            self._writer.note_once("quote inside a string")
            self.has_inner_quotes = True
            is_in_tuple = any(container.closer == ")" for container in self._writer.stack)  # as in f("a")
            if is_in_tuple or not is_sure(before + text[start:place], inner, text[place], self._names):
                raise Unreadable("a quote inside a text has two readings")
        if self._ends_in_comment(start, place, before, inner):
            raise Unreadable("a quote before a comment has two readings")
        self._writer.put(string.taken())
        self._writer.end_string()
        self._last = text[place - 1] if place > start else before[-1:]
        return place + 1

    def _ends_in_comment(self, start: int, place: int, before: str, inner: list[int]) -> bool:
        """Return whether the string could as well end in the comments that seem to follow its closing quote."""
        text, quote = self._text, self._text[place]
        end = self._skip(place + 1)
        others = [place]
        while len(others) < _MOST_OTHERS and (other := text.find(quote, others[-1] + 1, end)) >= 0:
            within = [*inner, *(at - start + len(before) for at in others)]
            others.append(other)
            is_glued = text[place + 1] in "#/"  # no white space stands before it, as in a text that goes on
            if is_glued or (
                _ENDS.match(text, other + 1) and is_sure(before + text[start:other], within, quote, self._names)
            ):
                return True
        return len(others) == _MOST_OTHERS

    def _closes(self, place: int, closers: str, *, is_clean: bool) -> bool:
        """Return whether what follows a quote shows that it closes its string: the end, or the next member or item.

        `is_clean`: no quote stands in the string so far. Then a text may go on behind the end of its object.
        """
        text, stack = self._text, self._writer.stack
        level = len(stack) - 1
        at = self._skip(place + 1)
        while True:
            container, mark = stack[level], text[at : at + 1]
            if mark == ",":
                at = self._skip(at + 1)
                while text.startswith(",", at):
                    at = self._skip(at + 1)
                if not text.startswith(container.closer, at):
                    return self._is_key(at, closers) if container.kind == "{" else self._is_item(at, container.closer)
            elif mark == container.closer:
                level -= 1
                if level < 0:
                    return is_clean or is_residue(text, at + 1)
                at = self._skip(at + 1)
            elif container.kind == "{":
                return self._is_key(at, closers, is_named=True)
            elif level == len(stack) - 1:
                if mark == "{":
                    return self._is_key(self._skip(at + 1), closers)
                return mark == '"' == text[place] and text[at - 1].isspace()
            else:
                return mark in ("{", "[")

    def _is_key(self, place: int, closers: str, *, is_named: bool = False) -> bool:
        """Return whether a key and its colon stand here. `is_named`: without quotes only one of the schema."""
        found = _QUOTED_KEY.get(closers, _OTHER_QUOTED_KEY).match(self._text, place)
        if found is None:
            found = _BARE_KEY.match(self._text, place)
            if found is None or (is_named and found.group() not in self._names):
                return False
        return self._text.startswith(":", self._skip(found.end()))

    def _is_item(self, place: int, closer: str) -> bool:
        """Return whether an item begins here, of a list or a tuple with this closer."""
        while self._text.startswith("(", place):
            place, closer = self._skip(place + 1), ")"
        if closer == ")" and _LAST_OF_TUPLE.match(self._text, place):
            return True
        return self._text[place : place + 1] in ("{", "[") or _SET_ITEM.match(self._text, place) is not None


def _number(word: str) -> str | None:
    """Return a number as JSON writes it, or None."""
    found = _HEXADECIMAL.fullmatch(word)
    if found is not None:
        value = str(int(found[2], 16))
        return f"-{value}" if found[1] == "-" and value != "0" else value
    padded = _PADDED.fullmatch(word)
    if padded is not None:
        return f"{padded[1]}{padded[2]}" if padded[2] else "0"
    mended = word.removeprefix("+")
    if mended[:1] == ".":
        mended = "0" + mended
    elif mended[:2] == "-.":
        mended = "-0" + mended[1:]
    if mended[-1:] == ".":
        mended += "0"
    return mended if _json.read_number(mended) is not None else None


def read_inner(text: str, names: frozenset[str]) -> Json | Malformed:
    """Return the list or object that a string contains, read as leniently as arguments are.

    All its quotation marks may be escaped once more. With another backslash in it such a text has two readings.

    Args:
        names: all members of the schema.
    """
    if _ESCAPED.fullmatch(text) is not None:
        text = text.replace('\\"', '"')
    value = _json.decode_exact(text)
    if not isinstance(value, Malformed):
        return Malformed(REPEATED_KEY) if repeats_key(text.encode("utf-8", "replace")) else value
    writer = ArgumentWriter(_ANYTHING, read_inner)
    reader = NearJson(writer, StringText(writer.note_once), text, names)
    try:
        place = reader.read("start")
    except Unreadable as problem:
        return Malformed(str(problem))
    if text[place:].strip():
        return Malformed("something stands behind its end")
    return _json.decode_exact("".join(writer.out))
