"""Markers that begin no call, in quotation marks or of tools that were not offered: what they cover is text."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Final

_PARAGRAPH_END: Final = r"\n[ \t\r]*\n"
#: An element's name, of words perhaps, before an attribute: `<｜DSML｜ invoke name="`.
_TAG: Final = re.compile(r"<(?!\|)([^=>]+?)(?:\s+\w+(?==))?(?:[=>]|\Z)(?!.*<)")
#: What begins a call in Harmony's form, which ends with a token of its own.
_HARMONY: Final = ("<|start|>assistant", "<|channel|>")


def closing_of(opener: str) -> str:
    """How the closing marker of an opener begins; "" when it has none that tells it."""
    if opener.startswith(_HARMONY):
        return "<|call|>"
    for begin, end in (("begin", "end"), ("start", "end"), ("START", "END"), ("prefix", "suffix")):
        if begin in opener:
            return opener.replace(begin, end)
    if opener.startswith("<|open|>"):
        return re.sub(r"<\|open\|>(\w+).*", r"<|close|>\1", opener)
    if opener.startswith("<|"):
        name = opener.strip("<|>")
        return f"<|/{name}|>" if opener.endswith("|>") else f"<{name}|>"
    tag = _TAG.search(opener)
    if tag is not None:
        return f"</{tag[1]}"
    return f"[/{opener[1:]}" if opener[0] == "[" and opener[-1] == "]" else ""


#: Behind a whole tag or token a tool's name stands alone, behind other markers anything names one: that word tells a
#: call's kind.
_NAME: Final = re.compile(r"\s*+(?!function\b)[^\s<>{}\]]++(?:[<\n]|\Z)")
_HEAD: Final = re.compile(r"\s*+(?!function\b)[^\s<\]]")
_MOST_HEAD: Final = 256
_WORDS: Final = re.compile(r"[\w.-]+")


@functools.lru_cache(maxsize=256)
def _ends(opener: str, more: tuple[str, ...]) -> tuple[re.Pattern[str], int]:
    """What ends the text that a marker covers, and how long that may be."""
    closers = [end for end in (closing_of(opener), *more) if end]
    return re.compile("|".join((*map(re.escape, closers), _PARAGRAPH_END))), max((80, *map(len, closers)))


class Cover:
    """A quoted marker and what it covers: itself when the quotation mark closes at once, else all up to its closing
    marker, never past a blank line.

    Attributes:
        still_open: what closes the quotation, where the covered text ended inside of it.
    """

    __slots__ = ("_end", "_is_fresh", "_longest", "_quote", "_tail", "still_open")

    def __init__(self, opener: str, quote: str, ends: tuple[str, ...] = ()) -> None:
        """`ends`: what else closes it."""
        self._end, self._longest = _ends(opener, ends)
        self._quote = quote
        self._is_fresh = True
        self._tail = ""  # what came last: an end may begin in it
        self.still_open = ""

    def end(self, text: str) -> int:
        """Where in the next text the covered one ends; -1 when it goes on."""
        if not text:
            return -1
        if self._is_fresh and text[0] == self._quote:
            self.still_open = self._quote
            return 0
        self._is_fresh = False
        read = self._tail + text
        found = self._end.search(read)
        if found is None:
            self._tail = read[-self._longest :]
            return -1
        self.still_open = self._quote if found.group()[0] != "\n" else ""
        return max(found.end() - len(self._tail), 0)


class Foreign:
    """A marker that no family read on. Where it names a tool that was not offered, the values up to its end are that
    one's."""

    __slots__ = ("_cover", "_head", "_is_closed", "_is_element", "_is_offered", "_size")

    def __init__(self, opener: str, ends: tuple[str, ...], is_offered: Callable[[str], object]) -> None:
        """`ends`: closing tags of the families that it begins."""
        self._cover = Cover(opener, "", ends)
        self._is_offered = is_offered
        self._is_closed = opener[-1:] == ">" and opener != "<|channel|>"
        self._is_element = self._is_closed and opener[-2:] not in ("|>", "｜>")
        self._size = len(opener)
        self._head = ""

    def ends(self, text: str) -> bool:
        """Whether it ends in the next text; the first begins with the marker."""
        if len(self._head) < self._size + _MOST_HEAD:
            self._head += text
        return self._cover.end(text) >= 0

    def has(self, tag: str) -> bool:
        """Whether a tag of values is its own, so that a tool is named. Behind an element's tag tools are named where
        keys have tags of their own."""
        if self._is_element and "arg" not in tag:
            return False
        head = self._head[self._size :]
        if (_NAME if self._is_closed else _HEAD).match(head) is None:
            return False
        return not any(map(self._is_offered, _WORDS.findall(head.partition("<")[0])))
