"""One output item of a response: what it is, and what its events have said of it."""

from __future__ import annotations

from collections import deque
from typing import Final, TypeAlias

from dragoman._json import Raw
from dragoman.codec.parts.open_parts import OpenCall, OpenPart
from dragoman.gathered import GatheredText
from dragoman.protocols.openai_responses.response.told_apart import ToldApart
from dragoman.protocols.openai_responses.wire import ItemKind

#: A place in an item: a group ("text", "refusal", "summary", "reasoning") and an index in it.
Key: TypeAlias = tuple[str, int]

THINKING_GROUPS: Final = ("summary", "reasoning")
NOWHERE: Final[Key] = ("", -1)


class Echo:
    """The thinking of one item, as its deltas come: servers that are asked for a summary send the same text as that and
    as reasoning. What may be said again is held while it is, in time linear in the text."""

    __slots__ = ("_at", "_done", "_first", "_group", "_held", "_is_over", "_offset", "_waiting")

    def __init__(self) -> None:
        self._group = ""  # the one that came first
        self._first: list[str] = []
        self._at = self._offset = 0  # how far that was said again: a piece of it, and characters of that
        self._held: list[tuple[Key, str]] = []
        self._waiting: deque[str] = deque()  # what is held and was not compared, but for the `_done` characters of it
        self._done = 0
        self._is_over = False  # the other group says something of its own

    def take(self, key: Key, text: str) -> list[tuple[Key, str]]:
        """What can be told now that a text came."""
        self._group = self._group or key[0]
        told = [(key, text)]
        if self._is_over:
            return told
        if key[0] == self._group:
            self._first.append(text)
        else:
            self._held.append((key, text))
            self._waiting.append(text)
            told = []
        if self._held and not self._is_same():
            self._is_over = True
            told = [*self._held, *told]
            self._forget()
        return told

    def said(self, key: Key) -> str:
        """What a text has said that is held."""
        return "".join(text for at, text in self._held if at == key)

    def end(self) -> tuple[list[tuple[Key, str]], bool]:
        """No more comes: what was held and not said before, and whether something was said twice."""
        rest = "".join(self._waiting)[self._done :]
        is_twice, last = bool(self._held), self._held[-1][0] if self._held else ("", -1)
        self._is_over = True
        self._forget()
        return [(last, rest)] if rest else [], is_twice

    def _forget(self) -> None:
        self._held = []
        self._waiting.clear()
        self._done = 0

    def _is_same(self) -> bool:
        """Compare as far as both groups have come."""
        while self._waiting and self._at < len(self._first):
            again, first = self._waiting[0], self._first[self._at]
            size = min(len(again) - self._done, len(first) - self._offset)
            if again[self._done : self._done + size] != first[self._offset : self._offset + size]:
                return False
            self._offset, self._done = self._offset + size, self._done + size
            if self._offset == len(first):
                self._at, self._offset = self._at + 1, 0
            if self._done == len(again):
                self._waiting.popleft()
                self._done = 0
        return True


class Item:
    """One output item.

    Attributes:
        key: what its open part is; `NOWHERE` when none is open.
        text_index: the content index of its open part when that is plain text, else -1.
        said: the text of each of its parts so far, in pieces.
        pieces: those of its open part.
        extras: native fields of its open part that came after the part's start.
        told: what events of their own told of its texts, for their ends.
        echo: thinking that may say again what other thinking of it said; None until there is any.
        prefill: whole arguments that came when the item opened; they count when nothing else comes.
        call_id: the id of its call as the wire told it first.
        is_named: an event named it by its id, so that another id is not its own.
        is_doubtful: arguments came that may be its own, so that only a final event can tell them.
        is_final: its arguments were told whole.
        done: its end was seen.
        repeated: the final list of output has named it.
    """

    __slots__ = (
        "call", "call_id", "done", "echo", "extras", "id", "index", "is_doubtful", "is_final", "is_named", "key",
        "kind", "native", "part", "pieces", "prefill", "repeated", "said", "text_index", "told", "type",
    )  # fmt: skip

    def __init__(self, kind: ItemKind, index: int, *, id: str, type: str, native: dict[str, Raw]) -> None:
        self.kind: ItemKind = kind
        self.index = index
        self.id = id
        self.type = type
        self.native = native
        self.call: OpenCall | None = None
        self.part: OpenPart | None = None
        self.key = NOWHERE
        self.text_index = -1
        self.said: dict[Key, GatheredText] = {}
        self.pieces = GatheredText()
        self.extras: dict[str, Raw] = {}
        self.told: ToldApart | None = None
        self.echo: Echo | None = None
        self.prefill = ""
        self.call_id = ""
        self.is_named = self.is_doubtful = False
        self.is_final = self.done = False
        self.repeated = False

    def text(self) -> str:
        """All that its parts said."""
        return "".join([said.text() for said in self.said.values()])
