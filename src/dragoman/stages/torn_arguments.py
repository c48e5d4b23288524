"""Detect damaged markup of a readable call by comparing its keys and values with its tool's schema.

An unknown key may have lost or gained a character; a value may contain a piece of its tag. Such a call has two
readings: what is written, and what was meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from dragoman._json import Json
from dragoman.codec.json_fields import parts_of
from dragoman.codec.patterns import rare_pattern
from dragoman.stages.json_schema import Shape, ToolSchema

#: Why a call is refused.
OTHER_KEY: Final = "a key of it is none of its tool's, and is like one that it has not, or holds markup"
JOINED: Final = "a comma is missing, and a key is none of its tool's: words behind it may be read as an argument"
HOLDS_COMMA: Final = "a comma is missing, and a value ends with one: a quotation mark may be lost"
MOVED_KEY: Final = "an argument of its tool stands inside of another one, which has none of that name"
TORN_VALUE: Final = "a value of it holds a piece of the tags around it"
HOLDS_NEXT: Final = "a value of it may hold the next argument: two readings"
NO_VALUE: Final = "a value of it is none of its type, and holds brackets, quotation marks or tags"

#: The end of a value in tags, one of its own name perhaps, and the beginning of the next one, with its key.
_NEXT: Final = rare_pattern(
    r"</[\w:.-]{1,64}+>\s*+<(?:arg_key>\s*+([\w.-]++)\s*+</arg_key|(?:antml:)?parameter(?:=| name=\"?)([\w.-]++)\"?)>"
)
#: What stands in markup, and in no key that a tool has not declared.
_MARKUP: Final = rare_pattern(r"[{}<>()|\"'\n,=;]|/\Z|\A\W*\Z")
_LETTERS: Final = rare_pattern(r"[\W_]+")
#: In a value that is no text: marks of values and tags.
_MARKS: Final = rare_pattern(r"[{}\[\]<>()|\"'/]")
#: What stands in no number and no word of JSON.
_NO_WORD: Final = rare_pattern(r"[^\w.+-]")
_WORD: Final = rare_pattern(r"-?\d+(?:\.\d+)?|true|false", re.IGNORECASE)
_WORDS: Final = ("true", "false", "null")
#: The rest of a tag with an attribute that says of what type a value is: those of other names begin texts of HTML.
_ATTRIBUTE: Final = rare_pattern(
    r"\s*(?:string=\"(?:true|false)\"|type=\"(?:string|number|integer|boolean|array|object|null)\")\s*>"
)
#: In what ends a value: of families that write such.
_TYPED: Final = ("ML｜", "ML|", "<|close|>")
#: Characters of a tag that is taken for a piece of another one, at least.
_PIECE: Final = 4
#: Characters of a key in which another one is no accident.
_LONG: Final = 4
#: Marks by which a damaged tag may differ, and a short one.
_MOST_DAMAGE: Final = 2
_SHORT: Final = 10
#: What a closing tag begins with, on a line of its own.
_HALVES: Final = ("\n<", "\n</")
_DEEPEST: Final = 32
#: Characters of a key that are looked for in a value.
_LONGEST_KEY: Final = 64


def key_problem(value: dict[str, Json], schema: ToolSchema, *, is_joined: bool = False, is_open: bool = False) -> str:
    """Return why the keys of arguments may not be the intended ones; "" if nothing shows that.

    Args:
        is_joined: a comma was missing, so that words behind them may be read as a member.
        is_open: a brace was missing behind them, which may be that of an object in them.
    """
    for part, shape in _objects(value, schema):
        known = _known_keys(shape, schema)
        if is_joined and known and not known.issuperset(part):
            return JOINED
        if is_joined and any(isinstance(item, str) and item.rstrip().endswith(",") for item in part.values()):
            return HOLDS_COMMA
        if is_open and part is not value and any(schema.has_member(key) and key not in value for key in part):
            return MOVED_KEY
        if not known or shape.schema.get("additionalProperties", False) is not False:
            continue
        others = part.keys() - known
        absent = known - part.keys()
        if others and any(key not in part and key in known for key in shape.required):
            return OTHER_KEY
        for key in others:
            if _MARKUP.search(key) or any(_is_like(key, one) for one in absent):
                return OTHER_KEY
            if part is not value and schema.has_member(key) and key not in value:
                return MOVED_KEY
    return ""


def _known_keys(shape: Shape, schema: ToolSchema) -> set[str]:
    """Return the keys that an object may have by its schema; none if a pattern defines them."""
    if "patternProperties" in shape.schema:
        return set()
    parts = [shape.schema, *(shape.schema[word] for word in ("then", "else") if word in shape.schema)]
    for word in ("anyOf", "oneOf", "allOf"):
        listed = shape.schema.get(word)
        parts += listed if isinstance(listed, list) else []
    told = (schema.shape(part).schema.get("properties") for part in parts)
    return {key for properties in told if isinstance(properties, Mapping) for key in properties}


def _objects(value: dict[str, Json], schema: ToolSchema) -> Iterator[tuple[dict[str, Json], Shape]]:
    """Yield the objects in arguments, each with its shape."""
    unread: list[tuple[Json, Shape, int]] = [(value, schema.root(), 0)]
    while unread:
        part, shape, depth = unread.pop()
        if depth > _DEEPEST:
            continue
        if isinstance(part, dict):
            yield part, shape
            unread += [(item, schema.member(shape, key), depth + 1) for key, item in part.items()]
        elif isinstance(part, list):
            unread += [(item, schema.item(shape), depth + 1) for item in part]


def _is_like(key: str, one: str) -> bool:
    """Return whether two keys differ in one character, case, or non-letters only, or one is the other many times."""
    bare, other = (_LETTERS.sub("", name).lower() for name in (key, one))
    if bare == other * max(len(bare) // (len(other) or 1), 1):
        return True
    if len(key) == len(one) and len(one) < _LONG:
        return sorted(key) == sorted(one)
    return _distance(bare, other, 1) <= 1


def value_problem(
    written: Mapping[str, Any], read: Mapping[str, Json], schema: ToolSchema, ends: tuple[str, ...]
) -> str:
    """Return why the values of arguments in tags may not be the intended ones.

    Args:
        written: as they stand there; `read`: as the schema wants them.
        ends: the tags that end such values.
    """
    is_typed = any(mark in end for end in ends for mark in _TYPED)
    for key, text in written.items():
        if not isinstance(text, str):
            continue
        if (
            (is_typed and _ATTRIBUTE.match(text))
            or (not text.rstrip().endswith(ends) and any(_is_torn(text, end) for end in ends))
            or _holds_key(key, text, schema)
        ):
            return TORN_VALUE
        shape = schema.member(schema.root(), key)
        if shape.types is not None and "string" not in shape.types and not shape.is_decided:
            value = read.get(key)
            is_item = isinstance(value, list) and value == [text] and _is_list(text)
            is_damaged = _MARKS.search(text) or _is_marked(text) or is_misspelt(text)
            if is_item or (isinstance(value, str) and is_damaged):
                return NO_VALUE
    return ""


def holds_next(value: Mapping[str, Json], schema: ToolSchema) -> bool:
    """Return whether a text in arguments holds the tags around an argument that the tool has and that is missing: its
    server read on past the end of the value.

    Anthropic's did behind `</content>` (https://github.com/anthropics/claude-code/issues/83088), llama.cpp's behind
    `</arg_value>` (https://github.com/ggml-org/llama.cpp/pull/26608; both read 2026-11-27).
    """
    found = (key for text in parts_of(value) if isinstance(text, str) for key in _NEXT.findall(text))
    return any(schema.has_member(key) and key not in value for pair in found for key in pair if key)


def _holds_key(key: str, text: str, schema: ToolSchema) -> bool:
    """Return whether a value begins with the rest of its key, and the end of the tag in which that stood."""
    if schema.has_member(key) or ">" not in text[:_LONGEST_KEY]:
        return False
    end = text.find(">")
    return any(one.startswith(key) and end <= len(one) - len(key) + 1 for one in schema.names())


def _is_marked(text: str) -> bool:
    """Return whether a text is a number or a word of JSON but for marks in it."""
    bare = _NO_WORD.sub("", text)
    return bare != text.strip() and _WORD.fullmatch(bare) is not None


def is_misspelt(text: str) -> bool:
    """Return whether a text is a word of JSON but for one letter, or for two that changed places."""
    bare = text.strip().lower()
    return bare.isalpha() and bare not in _WORDS and any(_distance(bare, word, 1) <= 1 for word in _WORDS)


def _is_list(text: str) -> bool:
    """Return whether the only item of a list may be the damaged list."""
    is_open = text.count("[") != text.count("]") or ('"' in text and "]" in text)
    return is_open or text.lstrip()[:1] in ('"', ",") or text.rstrip()[-1:] == ","


def _is_torn(text: str, end: str) -> bool:
    """Return whether a value ends with a damaged tag that ends values, or a piece of one, or begins with one that
    begins them.

    Tags that close each other are its own, and a whole one of another spelling is.
    """
    bare, size = text.strip(), len(end)
    begun = bare.rfind("<")
    piece = bare[begun:] if begun >= 0 else ""
    if len(piece) >= _PIECE and end.startswith(piece) and end != piece:
        return not _is_closed(bare)
    token, mark, rest = end.partition("|>")
    if (rest and token + mark in text) or bare.endswith(_HALVES):
        return True
    most = _MOST_DAMAGE if size >= _SHORT else 1
    for length in range(size - most, size + most + 1) if bare[-1:] == end[-1:] and size > _PIECE else ():
        tail = bare[-length:]
        if len(tail) == length and _distance(tail, end, most) <= most:
            return not _is_closed(bare)
    if "value" not in end:
        return False
    opening = end.replace("</", "<")
    head = bare[: bare.find(">", 0, size + most) + 1]
    if head[:1] == "<" and f"</{head[1:]}" in bare:
        return False
    return (len(head) >= _PIECE and opening.endswith(head)) or _distance(head, opening, most) <= most


def _is_closed(text: str) -> bool:
    """Return whether the last closing tag of a value closes one of the value's."""
    before, mark, last = text.rpartition("</")
    return bool(mark) and f"<{last.strip('> ')}" in before


def _distance(one: str, other: str, most: int) -> int:
    """Return how many insertions, deletions, replacements or swaps turn one text into another; `most + 1`: more."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, mark in enumerate(one, 1):
        last, before, row = before, row, [at]
        for place, wanted in enumerate(other, 1):
            cost = min(before[place] + 1, row[-1] + 1, before[place - 1] + (mark != wanted))
            if at > 1 and place > 1 and mark == other[place - 2] and one[at - 2] == wanted:
                cost = min(cost, last[place - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return row[-1]
