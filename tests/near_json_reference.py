"""A slow reader of almost JSON that lists every reading. It shares no code with dragoman, and is there to judge it.

A reading is what a text means when some of these are allowed, each wherever it may stand: comments, other quotes, bare
keys, Python's literals, sets and tuples, other forms of numbers, missing, doubled and trailing commas, and quotes
inside a string, which may end at any of its quotes. A string that grew over what could be a member, or whose own
quotations are left open, is none. Time is exponential at worst: texts are short.
"""

from __future__ import annotations

import functools
import json
import re
from typing import Any

SPACE = re.compile(r"(?:[\s\ufeff]|//[^\n]*\n|#[^\n]*\n|/\*.*?\*/)*", re.DOTALL)
CLOSERS = {'"': '"', "'": "'", "“": "”", "‘": "’", "„": "“”", "«": "»", "”": "”"}
NAME = re.compile(r"[A-Za-z_$][\w$.-]*")
NUMBER = re.compile(r"[^\s,:{}\[\]()\"'#/]+")
WORDS = {
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
    "null": None,
    "None": None,
}
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"', "'": "'"}


def number(word: str) -> int | float | None:
    if re.fullmatch(r"[-+]?0[xX][0-9a-fA-F]{1,64}", word):
        return int(word, 16)
    if re.fullmatch(r"[-+]?\d+", word) and not (word[0] == "+" and word[1] == "0" and len(word) > 2):
        return int(word)
    if re.fullmatch(r"[-+]?(0|[1-9]\d*)?(\.\d*)?([eE][-+]?\d+)?", word) and re.search(r"\d", word):
        return float(word)
    return None


def inside(text: str) -> str:
    """What the inside of a string means."""
    out, place = "", 0
    while place < len(text):
        if text[place] != "\\" or place + 1 == len(text):
            out += text[place]
            place += 1
            continue
        letter = text[place + 1]
        found = re.match(r"\\u([0-9a-fA-F]{4})", text[place:])
        if found:
            unit = int(found[1], 16)
            pair = re.match(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})", text[place + 6 :])
            if 0xD800 <= unit < 0xDC00 and pair:
                out += chr(0x10000 + ((unit - 0xD800) << 10) + int(pair[1], 16) - 0xDC00)
                place += 12
                continue
            out += "\ufffd" if 0xD800 <= unit < 0xE000 else chr(unit)
            place += 6
        else:
            out += ESCAPES.get(letter, "\\" + letter)
            place += 2
    return out


def meanings(content: str, quote: str) -> list[str]:
    """What the inside of a string may mean: where one backslash stands for itself, all of a path may."""
    escapes = re.findall(r"\\(u[0-9a-fA-F]{4}|.)", content, re.DOTALL)
    is_literal = any(escape[0] not in "bfnrt\"'\\/" and len(escape) == 1 for escape in escapes)
    is_mixed = is_literal and any(
        escape != "u" and (escape[0] in "bfnrtu" or (escape == "'" and quote == '"')) for escape in escapes
    )
    return [inside(content), content] if is_mixed else [inside(content)]


def grows(content: str, mark: str, names: frozenset[str], *, in_list: bool) -> bool:
    """Whether a string with quotes (`mark`) inside it goes on over what could be a member or an item."""
    keys = re.findall(rf"{mark}([^{mark}]*){mark}\s*:", content)
    if any(key.strip() in names for key in keys):
        return True
    if re.search(rf"{mark}[^{mark}]*{mark}[^{mark}]*{mark}\s*:", content):
        return True
    if re.search(rf"{mark}\s*[,;]\s*[\"'“]?[A-Za-z_$][\w$.-]*[\"'”]?\s*:", content):
        return True
    if in_list and re.search(rf"{mark}\s*,\s*(?:[\"'“\d{{\[]|$)", content):
        return True
    bare = re.findall(r"[,;{\n]\s*([A-Za-z_$][\w$.-]*)\s*:", content.partition(mark)[2])
    if names.intersection(bare):
        return True
    other = re.search(rf"{mark}.*?[\"'“]([^\"'“”]*)[\"'”]\s*:", content, re.DOTALL)
    return other is not None and other[1].strip() in names


def is_whole(content: str, quote: str, names: frozenset[str], *, in_list: bool) -> bool:
    """Whether a string with quotes inside it holds no member, no item, and no quotation that is left open."""
    mark = re.escape(quote)
    stripped = re.sub(r"/\*.*?\*/|(?://|#)[^\n]*\n", " ", content, flags=re.DOTALL)
    if any(grows(plain, mark, names, in_list=in_list) for plain in (content, stripped)):
        return False
    if quote in "”’":
        if re.search(rf"{mark}\s*:", content) or content.find(quote) < content.find({"”": "“", "’": "‘"}[quote]):
            return False
        opener = {"”": "“", "’": "‘"}[quote]
        return content.count(opener) == content.count(quote) or opener not in content
    flat = re.sub(r"\\[nrt]", "  ", content)
    quotation = re.compile(rf"(?:^|(?<=[\s(\[{{<=:,;|&$`/{mark}])){mark}(?=\S)[^{mark}]*{mark}")
    loose = re.sub(rf"(?<=\w){mark}(?=\w)", "", quotation.sub("", flat)) if quote == "'" else quotation.sub("", flat)
    loose = re.sub(rf"(?<=\w){mark}(?=\w)|(?<=\d){mark}", "", loose)
    return quote not in loose


class Reference:
    """All readings of one text."""

    def __init__(self, text: str, names: frozenset[str]) -> None:
        self.text = text
        self.names = names
        self.value = functools.cache(self._value)  # type: ignore[method-assign]
        self.members = functools.cache(self._members)  # type: ignore[method-assign]
        self.items = functools.cache(self._items)  # type: ignore[method-assign]

    def objects(self) -> dict[str, Any]:
        """Each object that the whole text may be, by its canonical JSON."""
        start = self.space(0)
        found = self.members(start + 1, True) if self.text.startswith("{", start) else []
        return {json.dumps(value, sort_keys=True): value for value, end in found if self.space(end) == len(self.text)}

    def space(self, place: int) -> int:
        found = SPACE.match(self.text, place)
        assert found is not None
        return found.end()

    def strings(self, place: int, *, in_list: bool) -> list[tuple[str, int]]:
        opener = self.text[place : place + 1]
        if opener not in CLOSERS or not opener:
            return []
        found, inner, at = [], False, place + 1
        while at < len(self.text):
            if self.text[at] == "\\":
                at += 2
                continue
            if self.text[at] in CLOSERS[opener]:
                content = self.text[place + 1 : at]
                if not inner or is_whole(content, self.text[at], self.names, in_list=in_list):
                    found += [(meant, at + 1) for meant in meanings(content, self.text[at])]
                inner = True
            at += 1
        return found

    def _value(self, place: int, in_list: bool) -> list[tuple[Any, int]]:
        mark = self.text[place : place + 1]
        if mark == "{":
            found = self.members(place + 1, True)
            first = self.space(place + 1)
            items = self.items(first, "}") if self.text[first : first + 1] not in ("{", "[", "}") else []
            return [*found, *items]
        if mark == "[":
            return list(self.items(self.space(place + 1), "]"))
        if mark == "(":
            found = self.items(self.space(place + 1), ")")
            return [(items, end) for items, end in found if len(items) != 1 or self.text[: end - 1].rstrip()[-1] == ","]
        if mark in CLOSERS and mark:
            return list(self.strings(place, in_list=in_list))
        word = NUMBER.match(self.text, place)
        if word is None:
            return []
        if word.group() in WORDS:
            return [(WORDS[word.group()], word.end())]
        value = number(word.group())
        return [] if value is None else [(value, word.end())]

    def keys(self, place: int) -> list[tuple[str, int]]:
        name = NAME.match(self.text, place)
        found = [(name.group(), name.end())] if name else self.strings(place, in_list=False)[:1]
        ends = [(key, self.space(end)) for key, end in found]
        return [(key, end + 1) for key, end in ends if self.text.startswith(":", end)]

    def _members(self, place: int, is_first: bool) -> list[tuple[dict[str, Any], int]]:
        place = self.space(place)
        if self.text.startswith("}", place):
            return [({}, place + 1)]
        if not is_first and self.text.startswith(",", place):
            return self.members(place + 1, False)
        found = []
        for key, behind in self.keys(place):
            for value, end in self.value(self.space(behind), False):
                after = self.space(end)
                rest = self.members(after + 1 if self.text.startswith(",", after) else after, False)
                found += [({key: value, **others}, last) for others, last in rest]
        return found

    def _items(self, place: int, closer: str) -> list[tuple[list[Any], int]]:
        if self.text.startswith(closer, place):
            return [([], place + 1)]
        found = []
        for value, end in self.value(place, True):
            after = self.space(end)
            if self.text.startswith(",", after):
                rest = self.items(self.space(after + 1), closer)
            elif self.text.startswith(closer, after):
                rest = [([], after + 1)]
            elif after > end or self.text[after : after + 1] in ("{", "["):
                rest = self.items(after, closer)
            else:
                rest = []
            found += [([value, *others], last) for others, last in rest]
        return found
