"""`Repairer`: repair and coerce argument text while it streams.

Only final text leaves, so what left is always a prefix of the final text. The rules:

1. Nothing leaves before the first key is complete; an object's brace leaves with its first key. 2. A string leaves live
only if the schema takes a string and nothing else decides its value. 3. Its closing quote waits until what follows
shows that it closes: `,` or the container's end. 4. An escape leaves whole; a high surrogate waits for its partner; a
raw control character becomes an escape. 5. A number or literal ends only at white space, `,`, `}` or `]`. 6. Values
that the schema may change are captured, already repaired, and coerced when they close. 7. A value that needs no repair
and fits keeps its own text, white space included. 8. A comma leaves with what follows it, so a trailing comma never
shows. 9. From the first defect outside of a string's inside on, everything waits for the end of the text: then it is
read as a
   whole (`dragoman.stages.argument_repair.near_json`), and it has one reading or none. So nothing leaves that the wire
   did not say.
"""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

from dragoman import _json
from dragoman._json import Json
from dragoman.gathered import GatheredText
from dragoman.stages.argument_repair.argument_writer import ArgumentWriter
from dragoman.stages.argument_repair.near_json import MISSING_COMMA, NOT_CLOSED, NearJson, read_inner
from dragoman.stages.argument_repair.near_json import State as WholeState
from dragoman.stages.argument_repair.string_text import PLAIN, StringText, Unreadable, unescaped
from dragoman.stages.json_schema import ToolSchema

State: TypeAlias = Literal[
    "start", "key-or-end", "key", "colon", "value", "value-or-end", "after",
    "key-string", "key-quote", "string", "quote", "word", "held", "done", "failed",
]  # fmt: skip

#: States outside of a token.
_BETWEEN: Final = frozenset[State]({"start", "key-or-end", "key", "colon", "value", "value-or-end", "after"})
_SPACE: Final = re.compile(r"[ \t\r\n]*+")
_WORD: Final = re.compile(r"[^\s,:{}\[\]\"']++")
_SHORT_ESCAPES: Final = frozenset('"\\/bfnrt')
_LITERALS: Final = frozenset({"true", "false", "null"})
#: A whole key without escapes, and its colon.
_KEY: Final = re.compile(r'("([^"\\\x00-\x1f\ud800-\udfff]*+)")([ \t\r\n]*+:)')
#: All text in front of the string that is open at its end.
_BEFORE_STRING: Final = re.compile(r'[^"]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"]*+)*+"', re.DOTALL)
_LONGEST_WORD: Final = 4_300
_LEAP: Final = 64  # characters that are worth a look ahead
_LEAPS: Final = 3


class Repairer:
    """Reads the argument text of one call.

    Attributes:
        left: the text that has left.
        has_inner_quotes: a string was read over quotes, so that only residue may stand behind the object.
        problem: why the text has no certain reading; "" while it may have.
    """

    __slots__ = (
        "_held", "_is_live", "_leaps", "_look", "_resume", "_rest", "_state", "_string", "_word", "_writer",
        "has_inner_quotes", "left", "problem",
    )  # fmt: skip

    def __init__(self, schema: ToolSchema) -> None:
        self.left = GatheredText()
        self.problem = ""
        self.has_inner_quotes = False
        self._writer = ArgumentWriter(schema, read_inner)
        self._string = StringText(self._writer.note_once)
        self._state: State = "start"
        self._resume: WholeState = "start"  # where reading goes on with what is held
        self._is_live = False  # in a string that leaves as it comes
        self._look = GatheredText()  # white space behind a quote
        self._word = ""
        self._held = GatheredText()
        self._rest = GatheredText()
        self._leaps = 0  # over whole items, that may still be tried in this text

    @property
    def codes(self) -> list[tuple[str, str, str]]:
        """What was repaired or coerced: deviation code, place, change; never a value."""
        return self._writer.codes

    @property
    def rest(self) -> str:
        """The text behind the object's end."""
        return self._rest.text()

    def feed(self, text: str) -> str:
        """Take the next text. Return what may leave."""
        if self._is_live and PLAIN.fullmatch(text) is not None:
            if "\\" in text:
                self._string.see(text)
            self.left.add(text)
            return text
        if self._state == "held":
            self._held.add(text)
            return ""
        if self._state == "failed":
            return ""
        self._leaps = _LEAPS if len(text) > _LEAP else 0
        try:
            self._read(text)
        except Unreadable as problem:
            self._fail(str(problem))
        is_plain = not (self._string.escape or self._string.is_literal)
        self._is_live = self._state == "string" and is_plain and self._writer.capture is None
        return self._leave()

    def close(self) -> str | None:
        """End the text. Return what of the object has not left yet; None, and a `problem`, if there is no object."""
        if self._state == "held":
            try:
                self._read_held()
            except Unreadable as problem:
                self._fail(str(problem))
        if self._state == "done":
            return self._leave()
        if self._state != "failed":
            self._fail(NOT_CLOSED)
        return None

    def _leave(self) -> str:
        out = self._writer.out
        if not out:
            return ""
        text = "".join(out)
        out.clear()
        self.left.add(text)
        return text

    def _fail(self, problem: str) -> None:
        self._state = "failed"
        self.problem = problem

    # ------------------------------------------------------------ what is held

    def _read_held(self) -> None:
        state, before = self._resume, ""
        if state == "string":
            before = self._writer.captured() or self.left.text()
            found = _BEFORE_STRING.match(before)
            before = before[found.end() :] if found is not None else ""
        text = self._held.take()
        reader = NearJson(self._writer, self._string, text, self._writer.schema.names())
        place = reader.read(state, before=before)
        self.has_inner_quotes = reader.has_inner_quotes
        if self._writer.missing:
            raise Unreadable(f"{self._writer.missing} after the repair")
        self._rest.add(text[place:])
        self._state = "done"

    # ------------------------------------------------------------ tokens

    def _read(self, text: str) -> None:
        position, end = 0, len(text)
        while position < end:
            state = self._state
            if state in _BETWEEN:
                position = self._read_mark(text, position)
            elif state == "string" or state == "key-string":
                position = self._read_string(text, position)
            elif state == "word":
                position = self._read_word(text, position)
            elif state == "quote" or state == "key-quote":
                position = self._read_after_quote(text, position)
            elif state == "done":
                self._rest.add(text[position:])
                return
            else:  # held, or failed
                return

    def _wait(self, state: WholeState, *texts: str) -> int:
        """Hold everything from these texts on for the end, because of a defect. Return where to continue: none."""
        self._resume = state
        self._held.add("".join(texts))
        self._state = "held"
        return 0

    def _read_mark(self, text: str, position: int) -> int:
        mark = text[position]
        writer, state = self._writer, self._state
        if mark in " \t\r\n":
            found = _SPACE.match(text, position)
            assert found is not None
            if state != "start":
                writer.gap.append(found.group())
            return found.end()
        if state == "after":
            return self._read_after(text, position)
        if state == "value" or state == "value-or-end":
            return self._read_value_start(state, text, position)
        if state == "colon" and mark == ":":
            writer.gap.append(":")
            self._state = "value"
        elif state == "start" and mark == "{":
            writer.open_root("{")
            self._state = "key-or-end"
        elif state == "key-or-end" and mark == "}":
            self._close_container()
        elif (state == "key-or-end" or state == "key") and mark == '"':
            key = _KEY.match(text, position)
            if key is not None:
                writer.add_key(key[2], key[1])
                writer.gap.append(key[3])
                self._state = "value"
                return key.end()
            self._resume = state
            self._string.begin('"')
            self._state = "key-string"
        else:
            assert state == "start" or state == "key-or-end" or state == "key" or state == "colon"
            return self._wait(state, text[position:])
        return position + 1

    def _read_value_start(self, state: Literal["value", "value-or-end"], text: str, position: int) -> int:
        mark = text[position]
        writer = self._writer
        if mark == '"':
            writer.begin_string()
            self._string.begin('"')
            self._state = "string"
        elif mark == "{":
            writer.open("{")
            self._state = "key-or-end"
        elif mark == "[":
            writer.open("[")
            self._state = "value-or-end"
        elif mark == "]" and state == "value-or-end":
            self._close_container()
        elif mark in "-0123456789tfn":
            self._resume = state
            self._state = "word"
            return position
        else:
            return self._wait(state, text[position:])
        return position + 1

    def _read_after(self, text: str, position: int) -> int:
        writer = self._writer
        container = writer.container
        assert container is not None
        mark = text[position]
        if mark == ",":
            if self._leaps and container.kind == "[" and (end := self._end_of_items(text, position)) > position:
                writer.put_gap()
                writer.put(text[position:end])
                return end
            writer.gap.append(",")
            self._state = "key" if container.kind == "{" else "value"
        elif mark == container.closer:
            self._close_container()
        else:
            return self._wait("after", text[position:])
        return position + 1

    def _end_of_items(self, text: str, position: int) -> int:
        """Return the end of the last complete item of the open list, if nothing from `position` (a comma) on needs
        repair.

        The JSON reader checks them at once. Otherwise return `position`.
        """
        self._leaps -= 1
        fits = self._writer.schema.fitting_items(self._writer.shape_of_value())
        end = len(text)
        for _ in range(_LEAPS if fits is not None else 0):
            end = text.rfind("},", position, end)
            if end - position < _LEAP:
                break
            if fits is not None and fits(text[position + 1 : end + 1]):
                return end + 1
        return position

    def _close_container(self) -> None:
        self._writer.close()
        self._state = "after" if self._writer.container is not None else "done"

    def _read_word(self, text: str, position: int) -> int:
        found = _WORD.match(text, position)
        if found is not None:
            self._word += found.group()
            position = found.end()
            if position == len(text) and len(self._word) < _LONGEST_WORD:
                return position
        word, self._word = self._word, ""
        if word not in _LITERALS and _json.read_number(word) is None:
            return self._wait(self._resume, word, text[position:])
        self._writer.put_literal(word)
        self._state = "after"
        return position

    # ------------------------------------------------------------ strings

    def _read_string(self, text: str, position: int) -> int:
        string, end = self._string, len(text)
        is_key = self._state == "key-string"
        if not string.is_literal:
            put = string.pieces.add if is_key else self._writer.put
            if string.escape == "\\" and text[position] in _SHORT_ESCAPES:
                string.see("\\" + text[position])
                put("\\" + text[position])
                string.escape = ""
                position += 1
            if not string.escape:
                found = PLAIN.match(text, position)
                assert found is not None
                plain = found.group()
                if "\\" in plain:
                    string.see(plain)
                put(plain)
                position = found.end()
                if position < end and text[position] == "\\" and position + 1 == end:
                    string.escape = "\\"
                    return end
        if position < end and (string.escape or text[position] != '"'):
            position = string.read(text, position)
            if not is_key:
                self._writer.put(string.taken())
        if position == end:
            return position
        following = text[position + 1 : position + 2]
        if is_key:
            self._state = "key-quote"
        elif following and following in self._writer.container.closers:  # type: ignore[union-attr]  # one is open
            self._end_string()
        else:
            self._state = "quote"
        return position + 1

    def _read_after_quote(self, text: str, position: int) -> int:
        """Decide whether a quote ends the string, from what follows it and white space (`_look`)."""
        if text[position] in " \t\r\n":
            found = _SPACE.match(text, position)
            assert found is not None
            self._look.add(found.group())
            position = found.end()
            if position == len(text):
                return position
        mark = text[position]
        look = ""
        if self._look:
            look = self._look.take()
        if self._state == "key-quote":
            raw = self._string.taken()
            if mark != ":":
                return self._wait(self._resume, f'"{raw}"{look}', text[position:])
            self._writer.add_key(unescaped(raw), f'"{raw}"')
            self._state = "colon"
        elif mark in self._writer.container.closers:  # type: ignore[union-attr]  # one is open
            self._end_string()
        else:
            return self._wait("string", f'"{look}', text[position:])
        if look:
            self._writer.gap.append(look)
        return position

    def _end_string(self) -> None:
        self._writer.end_string()
        self._state = "after"


def read_object(schema: ToolSchema, arguments: str) -> tuple[dict[str, Json] | None, bool]:
    """Return whole argument text as a repaired and coerced value, and whether a comma was missing in it.

    The text may stand in a JSON string. The value is None if it is no object.
    """
    inner = _json.decode(arguments.strip()) if arguments.lstrip()[:1] == '"' else arguments
    repairer = Repairer(schema)
    text = repairer.feed(inner.strip() if isinstance(inner, str) else arguments.strip())
    end = repairer.close()
    value = _json.decode_exact(text + end) if end is not None and not repairer.rest.strip() else None
    return (value if isinstance(value, dict) else None), any(done == MISSING_COMMA for *_, done in repairer.codes)
