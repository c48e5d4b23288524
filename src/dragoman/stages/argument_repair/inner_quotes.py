"""`is_sure`: decide whether a string with unescaped quotes has one reading.

Such a quote is read as part of the string if nothing behind it shows that it closes it. That is a guess if it could as
well close the string before a slip (`"ls" -la, "next": …`), or if a quotation is left open. So a string is certain only
if it contains nothing that could be a member, no markup of calls, and its quotes come in pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dragoman.codec.patterns import rare_pattern

_MARKUP: Final = rare_pattern(
    r"<\|[^|<>]{1,40}+\|>|<｜|｜>|</?(?:tool_call|function|parameter|invoke|arg_key|arg_value|tool|call)\b|\[/?TOOL_CALLS?\]"
)
_COLON: Final = rare_pattern(r"\s*+:")
#: A key without its own quotes, right behind a quote and a comma; behind the quote alone, with its value.
_BARE_MEMBER: Final = rare_pattern(
    r"\s*+(?:[,;]\s*+['\"“]?[A-Za-z_$][\w$.-]*+['\"”]?\s*+:|[A-Za-z_$][\w$.-]*+\s*+:\s*+['\"“”„‘«])"
)
_WORD_AND_COLON: Final = rare_pattern(r"(?<![\w$.-])([A-Za-z_$][\w$.-]*+)['\"”]?\s*+:")
_LOOK_BACK: Final = 64
_PUNCTUATION: Final = ",;:{}[] \t\r\n"
_OPENS: Final = "([{<=:,;|&$`/"
_LINE_ENDS: Final = ("\\n", "\\r", "\\t")
_PAIRS: Final = {"”": "“", "“": "„", "’": "‘", "»": "«"}


def is_sure(content: str, inner: Sequence[int], closer: str, names: frozenset[str]) -> bool:
    """Return whether a string has one reading.

    Args:
        content: its inside as it was written.
        inner: the places of the unescaped quotes that are taken for a part of it.
        closer: the quote that closes it.
        names: all members of the schema, in whatever depth.
    """
    if _MARKUP.search(content) is not None or content[:2] == closer * 2:  # the quotes of Python's long texts
        return False
    if any(_BARE_MEMBER.match(content, place + 1) for place in inner):
        return False
    if _holds_key(content, closer, names) or _holds_bare_key(content, inner[0], names):
        return False
    if not content[inner[-1] + 1 :].strip(_PUNCTUATION):  # it may close the string, before a slip
        return False
    if closer in _PAIRS and _PAIRS[closer] in content:
        return _are_nested(content, _PAIRS[closer], closer)
    return _are_paired(content, inner)


def _holds_key(content: str, closer: str, names: frozenset[str]) -> bool:
    """Return whether a quoted text before a colon may be a key: one of the schema's, or any behind another quote."""
    last, number = -1, 0
    place = content.find(closer)
    while place >= 0:
        # The first of them, before a colon, closed a text that was meant as a key: its value follows.
        if _COLON.match(content, place + 1) is not None and (number != 1 or content[last + 1 : place].strip() in names):
            return True
        last, number = place, number + 1
        place = content.find(closer, place + 1)
    return False


def _holds_bare_key(content: str, start: int, names: frozenset[str]) -> bool:
    """Return whether one of the schema's keys stands where a member would begin, without quotes or in other quotes."""
    for found in _WORD_AND_COLON.finditer(content, start + 1):
        if found[1] in names:
            before = content[max(start + 1, found.start() - _LOOK_BACK) : found.start()]
            bare = before.rstrip("'\"“ \t\r")
            if not bare or bare[-1] in ",;{\n" or len(before) == _LOOK_BACK > len(bare):
                return True
    return False


def _are_nested(content: str, opener: str, closer: str) -> bool:
    depth = 0
    for mark in content:
        depth += (mark == opener) - (mark == closer)
        if depth < 0:
            return False
    return depth == 0


def _are_paired(content: str, inner: Sequence[int]) -> bool:
    """Return whether each opening quote has a closing one.

    One between letters, and one behind a digit (inches), may stand alone.
    """
    is_open = has_pairs = has_strays = False
    for place in inner:
        before, behind = content[max(place - 2, 0) : place], content[place + 1 : place + 3]
        before = " " if before in _LINE_ENDS else before[-1:]
        behind = " " if behind in _LINE_ENDS else behind[:1]
        is_inside_word = before.isalnum() and behind.isalnum()
        if is_open:
            is_open = is_inside_word and content[place] == "'"
        elif (not before or before.isspace() or before in _OPENS or before == content[place]) and behind.strip():
            is_open = has_pairs = True
        elif is_inside_word or before.isdigit():
            has_strays = has_strays or not is_inside_word
        else:
            return False
    return not is_open and not (has_pairs and has_strays)
