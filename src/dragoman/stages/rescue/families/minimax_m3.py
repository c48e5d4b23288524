"""MiniMax M3: `]<]minimax[>[` stands before each tag, and each argument has a tag of its own name:
`]<]minimax[>[<tool_call>]<]minimax[>[<invoke name="NAME">]<]minimax[>[<KEY>value]<]minimax[>[</KEY>…`. An object's
tags stand inside its tag. A list has `<item>` tags, or repeats its tag."""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Final

from dragoman import _json
from dragoman.stages.json_schema import Shape, ToolSchema
from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.argument_tags import named_head
from dragoman.stages.rescue.cursor import Action, Close, Cursor, Family, NotACall, Open, Parser, Piece
from dragoman.stages.rescue.heads import plain_until, words_before
from dragoman.stages.rescue.typed_tags import refused, refused_head, refused_to_the_end
from dragoman.stages.rescue.xml_values import is_nullable, leaf, live_string, member, null_until

_MARK: Final = "]<]minimax[>["
#: A part of it before a closing tag: the mark was there, and is broken.
_BROKEN_MARK: Final = re.compile(r"\]<\]|\[>\[|\[>?\"?\Z")
#: No tag: a call begins in a value.
_NESTED: Final = "<"
#: No key: a tag with an attribute, which may be an argument.
_UNREAD: Final = "="
_CALLS: Final = ("tool_call", "invoke name=")
_ENDS: Final = ("/invoke", "/tool_call")
_END_TAGS: Final = tuple(f"{_MARK}<{end}>" for end in _ENDS)
#: What begins none, though it begins as they do.
_NO_ARGUMENTS: Final = tuple(f"{_MARK}<{tag}" for tag in ("/", *_CALLS))


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    """Parse one call; the next one has its own marker."""
    if opener.endswith("<tool_call>"):
        yield from cursor.space()
        yield from cursor.expect(f"{_MARK}<invoke name=", "<invoke name=")
    yield from _call(cursor, tools)
    yield from cursor.closing(f"{_MARK}</tool_call>")


def _call(cursor: Cursor, tools: Tools) -> Parser:
    """Parse one call from behind its `name=` on."""
    name, is_head_read, _ = yield from named_head(cursor, tools)
    tag = yield from _next_tag(cursor)
    schema = tools.schema(name)
    if not tag and (yield from cursor.peek()):
        if not (yield from words_before(cursor, (f"{_MARK}<",), (">",), _NO_ARGUMENTS)):
            raise NotACall
        is_head_read = False
    if not is_head_read:
        return (yield from refused_head(cursor, name, () if tag in _ENDS else _END_TAGS))
    yield Open(name, in_tags=True)
    keys: list[str] = []
    while tag and not tag.startswith(("/", _NESTED, _UNREAD, *_CALLS)) and tag not in keys:
        yield member(tag, keys)
        tag = yield from _value(cursor, schema, schema.argument(tag), tag)
    if tag == _NESTED:
        yield from refused_to_the_end(cursor)
        return
    if tag not in _ENDS:
        yield from refused(cursor, _END_TAGS)
        return
    yield Piece("}" if keys else "{}")
    yield Close(cursor.marker)


def _next_tag(cursor: Cursor) -> Generator[Action, None, str]:
    """Return the next tag without its brackets."""
    return (yield from _tag(cursor)) if (yield from cursor.closing(_MARK)) else ""


def _tag(cursor: Cursor) -> Generator[Action, None, str]:
    """Return the tag behind the mark."""
    yield from cursor.space()
    if not (yield from cursor.take("<")):
        return ""
    tag = yield from plain_until(cursor, ">")
    return _UNREAD if "=" in tag and not tag.startswith(_CALLS) else tag


def _value(cursor: Cursor, schema: ToolSchema, shape: Shape, key: str) -> Generator[Action, None, str]:
    """Read the value of an argument and its closing tag, which may lack its mark. Return the tag behind it.

    "": the value has no end or more than one reading; `_NESTED`: a call begins in it.
    """
    bare = f"</{key}>"
    if is_nullable(shape) and (yield from null_until(cursor, (f"{_MARK}{bare}",))):
        yield Piece("null")
        return (yield from _next_tag(cursor))
    if shape.is_text:
        stop, text = yield from _live(live_string(cursor, (f"{bare}{_MARK}", f"{bare}\n{_MARK}", _MARK), trim=False))
        tag = (yield from _tag(cursor)) if stop else ""
        if stop == _MARK:
            nested = _NESTED if tag.startswith(_CALLS) else ""
            return (yield from _next_tag(cursor)) if tag == f"/{key}" else nested
        return tag if tag != f"/{key}" and not _BROKEN_MARK.search(text) else ""
    text, stop = yield from cursor.until(_MARK)
    tag = (yield from _tag(cursor)) if stop else ""
    if tag == f"/{key}":
        yield Piece(leaf(text, shape, schema))
        return (yield from _next_tag(cursor))
    if tag and text.rstrip().endswith(bare) and not _BROKEN_MARK.search(text):
        yield Piece(leaf(text.rstrip().removesuffix(bare), shape, schema))
        return tag
    if tag and not text.strip() and not tag.startswith("/"):
        return (yield from _nested(cursor, schema, _Container(key, shape, tag), tag))
    return ""


def _live(values: Generator[Action, None, str]) -> Generator[Action, None, tuple[str, str]]:
    """Yield a value as it comes. Return what ended it, and the end of its text."""
    last = ""
    while True:
        try:
            action = next(values)
        except StopIteration as end:
            return end.value, last
        if isinstance(action, Piece):
            last = (last + action.text)[-2 * len(_MARK) :]
        yield action


class _Container:
    """An object or a list that is being read. Its parts go to a list of texts, so that no level is read twice."""

    __slots__ = ("_is_list", "_is_repeated", "_keys", "_last", "_place", "key", "shape")

    def __init__(self, key: str, shape: Shape, first: str) -> None:
        self.key = key
        self.shape = shape
        self._is_list = first == "item" and (shape.types is None or "array" in shape.types)
        self._keys: set[str] = set()
        self._last = ""
        self._place = 0  # where the value of the last key stands
        self._is_repeated = False

    def opening(self) -> str:
        """Return its opening bracket."""
        return "[" if self._is_list else "{"

    def closing(self) -> str:
        """Return its closing bracket."""
        return "]" if self._is_list else "]}" if self._is_repeated else "}"

    def begin(self, schema: ToolSchema, tag: str, out: list[str]) -> Shape | None:
        """Begin a value in it. Return the value's shape, or None if it has no place in it."""
        lead = ", " if self._keys else ""
        if self._is_list:
            self._keys.add(tag)
            out.append(lead)
            return schema.item(self.shape) if tag == "item" else None
        shape = schema.member(self.shape, tag)
        if tag == self._last:
            if not (shape.types is None or "array" in shape.types) or (
                not self._is_repeated and out[self._place + 1][:1] == "["
            ):
                return None  # no list, or a list told twice
            if not self._is_repeated:
                out[self._place] = "["
            self._is_repeated = True
            out.append(lead)
        elif tag in self._keys:
            return None
        else:
            out.append(f"{']' if self._is_repeated else ''}{lead}{_json.quoted(tag)}: ")
            self._keys.add(tag)
            self._last, self._place, self._is_repeated = tag, len(out), False
            out.append("")
        return shape


def _nested(cursor: Cursor, schema: ToolSchema, outermost: _Container, tag: str) -> Generator[Action, None, str]:
    """Read a value of tags from behind its first inner tag on. Return the tag behind it; "" if its tags do not close
    each other.
    """
    out = [outermost.opening()]
    stack = [outermost]
    while True:
        while tag == f"/{stack[-1].key}":
            out.append(stack.pop().closing())
            if not stack:
                yield Piece("".join(out))
            tag = yield from _next_tag(cursor)
            if not stack:
                return tag
        shape = stack[-1].begin(schema, tag, out) if tag and not tag.startswith("/") else None
        if shape is None:
            return ""
        text, stop = yield from cursor.until(_MARK)
        inner = (yield from _tag(cursor)) if stop else ""
        if inner == f"/{tag}":
            out.append(leaf(text, shape, schema))
            tag = yield from _next_tag(cursor)
        elif inner and not text.strip():
            stack.append(_Container(tag, shape, inner))
            out.append(stack[-1].opening())
            tag = inner
        else:
            return ""


FAMILY = Family(
    name="minimax-m3",
    openers=(f"{_MARK}<tool_call>", f"{_MARK}<invoke name="),
    parse=_parse,
    source="https://github.com/ml-explore/mlx-lm/issues/1416",
    # Its own tags, and the turn token of MiniMax's chat templates.
    residue=(f"{_MARK}</invoke>", f"{_MARK}</tool_call>", "[e~["),
    value_ends=(f"{_MARK}</",),
)
