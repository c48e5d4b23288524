"""Separate events about a text: the pages that it cites, one each, and log probabilities.

Specification: https://platform.openai.com/docs/api-reference/responses-streaming (read 2026-11-23). The vendor repeats
them in the whole part; other servers do not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dragoman import _json
from dragoman._json import Raw
from dragoman.codec.framing.body import Deviate
from dragoman.codec.json_fields import read_items
from dragoman.codec.nan import kept
from dragoman.codec.patterns import rare_pattern

ANNOTATION: Final = "response.output_text.annotation.added"
#: A log probability, which the vendor rounds in the whole part alone.
_LOGPROB: Final = rare_pattern(rb'"logprob":[-+.0-9eE]+')


class ToldApart:
    """The lists of each text of one item; each is taken when its text ends."""

    __slots__ = ("_lists", "_where")

    def __init__(self, where: str) -> None:
        self._where = where
        self._lists: dict[int, dict[str, list[Raw]]] = {}  # content index → field → entries

    def add(self, index: int, name: str, values: list[Raw], *, is_whole: bool) -> None:
        """Add entries of a list of the text at a content index, or its whole list."""
        lists = self._lists.setdefault(index, {})
        if is_whole or name not in lists:
            lists[name] = values
        else:
            lists[name] += values

    def take(self, index: int, said: dict[str, Raw], deviate: Deviate) -> dict[str, Raw]:
        """Return the fields of a text that ends. `said`: those of its whole part, which win if they differ."""
        told = self._lists.pop(index, {})
        for name, values in told.items():
            if name in said and not _entries(values) <= _entries(read_items(said[name]) or ()):
                deviate("final-differs", f"{self._where}.content[{index}].{name}", "")
        return {name: kept(values) for name, values in told.items()} | said

    def close(self, deviate: Deviate) -> None:
        """End the item: what was said of a text that never came is lost."""
        for index, lists in self._lists.items():
            for name in lists:
                deviate("dropped", f"{self._where}.content[{index}].{name}", "of a text that did not come")
        self._lists.clear()


def _entries(values: Iterable[Raw]) -> set[bytes]:
    return {_LOGPROB.sub(b"", _json.encode(_json.decode(bytes(entry)))) for entry in values}
