"""Markers in quotation marks: what they cover is text."""

from __future__ import annotations

import re
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


class Cover:
    """A quoted marker and what it covers: itself when the quotation mark closes at once, else all up to its closing
    marker, never past a blank line.

    Attributes:
        still_open: what closes the quotation, where the covered text ended inside of it.
    """

    __slots__ = ("_end", "_is_fresh", "_longest", "_quote", "_tail", "still_open")

    def __init__(self, opener: str, quote: str) -> None:
        closing = closing_of(opener)
        self._end = re.compile(f"{re.escape(closing)}|{_PARAGRAPH_END}" if closing else _PARAGRAPH_END)
        self._longest = max(len(closing), 80)
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
