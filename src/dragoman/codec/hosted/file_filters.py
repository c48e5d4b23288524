"""Translate file search filters by attributes: OpenAI's `filters` and Gemini's `metadataFilter`.

Such a filter may define access rights. So only filters of equal meaning for every file are translated, and all others
are refused: `ne` and `nin` differ for files without the attribute; texts have no common order, and Gemini's files no
booleans; `*` in a text is a wildcard there, and no escape for a quote is defined; a dot in a key goes into an object.

Specifications: https://platform.openai.com/docs/guides/retrieval (attribute filtering), https://google.aip.dev/160,
https://ai.google.dev/gemini-api/docs/file-search (read 2026-11-25).
"""

from __future__ import annotations

import re
from typing import Final

from dragoman._json import Json

_SIGNS: Final = {"eq": "=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_TYPES: Final = {sign: type for type, sign in _SIGNS.items()}
_JOINING: Final = {"and": " AND ", "or": " OR "}
_WORDS: Final = frozenset({"AND", "OR", "NOT"})
_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_TEXT: Final = re.compile(r'[^"\'\\*\x00-\x1f\x7f]{0,512}')
_NUMBER: Final = re.compile(r"(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,15})?")
#: A whole number that both sides hold exactly.
_EXACT: Final = 1 << 53
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<mark>[()])|(?P<sign>>=|<=|=|>|<)|(?P<text>\"[^\"]*\"|'[^']*')|(?P<word>[A-Za-z0-9_.]+))"
)
_DEEPEST: Final = 16
_MOST: Final = 256  # comparisons
_LONGEST: Final = 64 * 1024


def filter_text(wanted: Json) -> str | None:
    """Return OpenAI's filter as Gemini's text, or None if that cannot express the same."""
    text = _text_of(wanted, _Budget(), 0)
    return text if text is not None and len(text) <= _LONGEST else None


def read_filter(text: Json) -> dict[str, Json] | None:
    """Return Gemini's text as OpenAI's filter, or None if that cannot express the same."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        return None
    tokens = _tokens(text)
    if tokens is None:
        return None
    reader = _Reader(tokens)
    found = reader.expression(0)
    return found if reader.is_over else None


class _Budget:
    """The number of comparisons still allowed."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = _MOST

    def take(self) -> bool:
        self.left -= 1
        return self.left >= 0


def _text_of(wanted: Json, budget: _Budget, depth: int) -> str | None:
    if not isinstance(wanted, dict) or depth > _DEEPEST or not budget.take():
        return None
    kind = wanted.get("type")
    if not isinstance(kind, str):
        return None
    if kind in _JOINING:
        inner = wanted.get("filters")
        if wanted.keys() != {"type", "filters"} or not isinstance(inner, list) or not inner:
            return None
        return _joined(kind, [_text_of(each, budget, depth + 1) for each in inner])
    key, value = wanted.get("key"), wanted.get("value")
    if wanted.keys() != {"type", "key", "value"} or not isinstance(key, str):
        return None
    if not _KEY.fullmatch(key) or key.upper() in _WORDS:
        return None
    if kind == "in":
        if not isinstance(value, list) or not value:
            return None
        return _joined("or", [_comparison(key, "eq", each) if budget.take() else None for each in value])
    return _comparison(key, kind, value)


def _joined(kind: str, texts: list[str | None]) -> str | None:
    """Join texts in parentheses: `OR` binds tighter than `AND` there."""
    known = [text for text in texts if text is not None]
    if len(known) < len(texts):
        return None
    return known[0] if len(known) == 1 else f"({_JOINING[kind].join(known)})"


def _comparison(key: str, kind: str, value: Json) -> str | None:
    if kind not in _SIGNS:
        return None
    if isinstance(value, str):
        return f'{key} = "{value}"' if kind == "eq" and _TEXT.fullmatch(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _EXACT:
        return None
    number = repr(value)
    return f"{key} {_SIGNS[kind]} {number}" if _NUMBER.fullmatch(number) else None


def _tokens(text: str) -> list[tuple[str, str]] | None:
    """Return the tokens of the text: marks, signs, texts, words; None if there is anything else."""
    found: list[tuple[str, str]] = []
    place, end = 0, len(text.rstrip())
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None or match.lastgroup is None:
            return None
        found.append((match.lastgroup, match[match.lastgroup]))
        place = match.end()
    return found


class _Reader:
    """Parses tokens: `a AND b`, `a OR b` with the latter first, parentheses, comparisons."""

    __slots__ = ("_budget", "_place", "_tokens")

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = tokens
        self._place = 0
        self._budget = _Budget()

    @property
    def is_over(self) -> bool:
        return self._place == len(self._tokens)

    def expression(self, depth: int) -> dict[str, Json] | None:
        """Parse factors with AND between them."""
        factors = [self._factor(depth)]
        while self._take("word", "AND"):
            factors.append(self._factor(depth))
        return _compound("and", factors)

    def _factor(self, depth: int) -> dict[str, Json] | None:
        terms = [self._term(depth)]
        while self._take("word", "OR"):
            terms.append(self._term(depth))
        return _compound("or", terms)

    def _term(self, depth: int) -> dict[str, Json] | None:
        if depth > _DEEPEST or not self._budget.take():
            return None
        if self._take("mark", "("):
            inner = self.expression(depth + 1)
            return inner if self._take("mark", ")") else None
        key, sign, value = self._next("word"), self._next("sign"), self._value()
        if value is None or not _KEY.fullmatch(key) or key.upper() in _WORDS:
            return None
        made: dict[str, Json] = {"type": _TYPES.get(sign, ""), "key": key, "value": value}
        return made if _comparison(key, _TYPES.get(sign, ""), value) is not None else None

    def _value(self) -> str | int | float | None:
        if text := self._next("text"):
            return text[1:-1]
        word = self._next("word")
        if not _NUMBER.fullmatch(word):
            return None
        return float(word) if "." in word else int(word)

    def _next(self, kind: str) -> str:
        """Return the next token if it is of a kind, else ""."""
        if self.is_over or self._tokens[self._place][0] != kind:
            return ""
        self._place += 1
        return self._tokens[self._place - 1][1]

    def _take(self, kind: str, text: str) -> bool:
        if self.is_over or self._tokens[self._place] != (kind, text):
            return False
        self._place += 1
        return True


def _compound(kind: str, found: list[dict[str, Json] | None]) -> dict[str, Json] | None:
    known: list[Json] = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    if len(known) > 1:
        return {"type": kind, "filters": known}
    return found[0]
