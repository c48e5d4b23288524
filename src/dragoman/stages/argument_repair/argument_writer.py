"""`ArgumentWriter`: write argument text token by token, and coerce each complete value to the tool's schema.

White space and commas wait in `gap` for the next token, and so does the brace of an object: until its first key has
come it may be a set. A value that the schema may change is captured, and judged when it closes.
"""

from __future__ import annotations

import math
from itertools import islice
from typing import Final, Literal

from dragoman import _json
from dragoman._json import Malformed
from dragoman.gathered import GatheredText
from dragoman.stages.argument_repair.string_text import Unreadable
from dragoman.stages.json_schema import Judge, ReadInner, Shape, ToolSchema

_DEEPEST: Final = 512
_MOST_NOTES: Final = 200  # of one call
_MOST_NAMED: Final = 60
_DEEPEST_JUDGED: Final = 100  # levels below which a captured value keeps its own text, judged or not
_ANYTHING: Final = Shape({}, None, False)
_CLOSERS: Final = {"{": "}", "[": "]", "(": ")"}


class Container:
    """An open object or list. `closer`: its closing bracket, a brace for a set, a parenthesis for a tuple."""

    __slots__ = ("closer", "closers", "key", "keys", "kind", "shape")

    def __init__(self, kind: Literal["{", "["], shape: Shape, closer: str) -> None:
        self.kind = kind
        self.closer = closer
        self.closers = "," + closer  # what may follow a string that ends
        self.shape = shape
        self.key = ""
        self.keys: set[str] = set()


class ArgumentWriter:
    """The output of the readers of one call's arguments.

    Attributes:
        capture: text of a value that is judged whole; None outside of one, where text leaves at once.
        codes: what was repaired or coerced: deviation code, place, change; never a value. The first ones.
        container: the innermost open one.
        gap: text that waits for the next token.
        missing: what the schema requires and did not come, outside of captured values.
        out: text that may leave.
        stack: all open containers.
    """

    __slots__ = (
        "_capture_depth", "_capture_shape", "_deepest", "_is_unjudged", "_judge", "_noted", "_read_inner", "capture",
        "codes", "container", "gap", "missing", "out", "schema", "stack",
    )  # fmt: skip

    def __init__(self, schema: ToolSchema, read_inner: ReadInner) -> None:
        self.codes: list[tuple[str, str, str]] = []
        self.container: Container | None = None
        self.gap: list[str] = []
        self.missing = ""
        self._noted: set[str] = set()
        self.out: list[str] = []
        self.schema = schema
        self.stack: list[Container] = []
        self._judge = Judge(schema)
        self._is_unjudged = False  # and that was told
        self._read_inner = read_inner
        self.capture: GatheredText | None = None
        self._capture_depth = 0
        self._capture_shape = _ANYTHING
        self._deepest = 0  # levels of the captured value

    # ------------------------------------------------------------ notes

    def note(self, code: str, done: str) -> None:
        """Note a change at this place."""
        if len(self.codes) >= _MOST_NOTES:
            return
        path = "".join(f".{container.key}" if container.kind == "{" else "[]" for container in self.stack[:32])
        self.codes.append((code, f"arguments{path}"[:120], done))

    def note_once(self, done: str) -> None:
        """Note a repair if it is the first of its kind."""
        if done not in self._noted:
            self._noted.add(done)
            self.note("repaired-arguments", done)

    # ------------------------------------------------------------ text

    def put(self, text: str) -> None:
        """Write the text of a token."""
        if self.capture is None:
            self.out.append(text)
        else:
            self.capture.add(text)

    def put_gap(self) -> None:
        """Write the waiting text."""
        gap = self.gap
        if gap:
            self.put("".join(gap))
            gap.clear()

    def captured(self) -> str | None:
        """Return the captured text so far; None outside of such a value."""
        return None if self.capture is None else self.capture.text()

    # ------------------------------------------------------------ containers

    def open_root(self, opener: str) -> None:
        """Begin the whole value."""
        self._open(opener, self.schema.root())

    def open(self, opener: str) -> None:
        """Begin an object, a list or a tuple, which becomes a list, as a value."""
        shape = self._begin_value("object" if opener == "{" else "array")
        self._open(opener, shape)

    def _open(self, opener: str, shape: Shape) -> None:
        if len(self.stack) >= _DEEPEST:
            raise Unreadable(f"the arguments are nested deeper than {_DEEPEST} levels")
        if opener == "(":
            if shape.types and "array" not in shape.types:
                raise Unreadable("expected no tuple here")
            self.note("repaired-arguments", "tuple")
        kind: Literal["{", "["] = "{" if opener == "{" else "["
        self.container = Container(kind, shape, _CLOSERS[opener])
        self.stack.append(self.container)
        self._deepest = max(self._deepest, len(self.stack))
        if kind == "{":
            self.gap.append(kind)
        else:
            self.put(kind)

    def make_set(self) -> None:
        """Turn the begun object into a set, which becomes a list."""
        shape = self.stack.pop().shape
        # Where anything may stand, braces around texts may be an object that lost a key or a colon.
        if "array" not in (shape.types or ()) and (self.stack or shape.types):
            raise Unreadable("expected no set here")
        self.gap[self.gap.index("{") :] = []
        if not shape.takes_live("array"):
            self._begin_capture(shape)
        self.container = Container("[", shape, "}")
        self.stack.append(self.container)
        self.put("[")
        self.note("repaired-arguments", "set")

    def close(self) -> None:
        """End the innermost container."""
        container = self.stack.pop()
        self.put_gap()
        self.put("}" if container.kind == "{" else "]")
        if self.capture is None:
            self._check_members(container)
        self.container = self.stack[-1] if self.stack else None
        if self.container is not None:
            self.end_value()

    def _check_members(self, container: Container) -> None:
        if container.kind == "[":
            return
        missing = list(islice((key for key in container.shape.required if key not in container.keys), _MOST_NAMED))
        if missing:
            self.missing = f"missing: {', '.join(missing)}"[:120]
            self.note("arguments-misfit", self.missing)

    def add_key(self, key: str, text: str) -> None:
        """Add a key. `text`: as JSON."""
        container = self.container
        assert container is not None
        if key in container.keys:
            raise Unreadable("a key stands twice in one object")
        container.key = key
        container.keys.add(key)
        if self.capture is None and self.schema.is_unknown_member(container.shape, key):
            self.note("arguments-misfit", "a key that the schema does not have")
        self.put_gap()
        self.put(text)

    # ------------------------------------------------------------ values

    def shape_of_value(self) -> Shape:
        """Return the shape of the next value."""
        container = self.container
        assert container is not None
        if self.capture is not None:
            return _ANYTHING
        if container.kind == "{":
            return self.schema.member(container.shape, container.key)
        return self.schema.item(container.shape)

    def _begin_value(self, kind: str) -> Shape:
        shape = self.shape_of_value()
        self.put_gap()
        if not shape.takes_live(kind):
            self._begin_capture(shape)
        return shape

    def _begin_capture(self, shape: Shape) -> None:
        if self.capture is None:
            self.capture = GatheredText()
            self._capture_depth = len(self.stack)
            self._capture_shape = shape
            self._deepest = 0

    def begin_string(self) -> None:
        """Begin a string as a value."""
        self._begin_value("string")
        self.put('"')

    def end_string(self) -> None:
        """End the string, and with it its value."""
        self.put('"')
        self.end_value()

    def put_literal(self, literal: str, *, written: str = "") -> None:
        """Write a number, true, false or null. `written`: the original, if JSON writes it differently."""
        shape = self.shape_of_value()
        self.put_gap()
        kind = "number" if literal[0] not in "tfn" else "null" if literal[0] == "n" else "boolean"
        if kind == "number" and is_endless(literal) and "string" not in (shape.types or ()):
            raise Unreadable("a number is out of range")
        if shape.takes_live(kind):
            self.put(literal)
        else:
            if written and kind == "number" and "string" in (shape.types or ()):
                raise Unreadable("expected a text in quotes, got a number that JSON writes otherwise")
            self.put(self._coerced(literal, shape))
        self.end_value()

    def end_value(self) -> None:
        """End a value: judge it if it was captured."""
        if self.capture is None or len(self.stack) != self._capture_depth:
            return
        text = self.capture.text()
        self.capture = None
        self.put(self._coerced(text, self._capture_shape))

    def _coerced(self, text: str, shape: Shape) -> str:
        if self._deepest - self._capture_depth > _DEEPEST_JUDGED:
            return text
        value = _json.decode_exact(text)
        if isinstance(value, Malformed):
            raise Unreadable(f"a value is not JSON: {value.problem}")
        self._judge.allow(len(text))
        changed = self._judge.coerced(value, shape.schema, read_inner=self._read_inner)
        does_fit = self._judge.fits(changed, shape.schema)
        if self._judge.is_spent:
            if not self._is_unjudged:
                self._is_unjudged = True
                self.note("arguments-unjudged", "the schema asks for more looks than their length is worth")
        elif not does_fit:
            self.note("arguments-misfit", f"{_kind(value)} where {_wanted(shape)} is wanted")
        if changed is value:
            return text
        try:
            written = _json.encode_exact(changed)
            if written == _json.encode_exact(value):
                return text
        except RecursionError:  # a list in a string may be of any depth
            raise Unreadable("a value is nested too deeply") from None
        self.note("coerced-arguments", f"{_kind(value)} to {_kind(changed)}")
        return written


def is_endless(number: str) -> bool:
    """Return whether a JSON number is so large that readers take it for infinity."""
    return len(number) > 4 and math.isinf(float(number)) and not number.lstrip("-").isdecimal()


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
