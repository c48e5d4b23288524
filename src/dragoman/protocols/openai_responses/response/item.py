"""One output item of a response: its kind, and what its events have said of it."""

from __future__ import annotations

from collections import deque
from typing import Final, TypeAlias

import msgspec

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.bounds import AnswerBounds
from dragoman.codec.framing.body import Deviate
from dragoman.codec.parts.open_parts import OpenCall, OpenPart
from dragoman.gathered import GatheredText
from dragoman.protocols.openai_responses.response.told_apart import ToldApart
from dragoman.protocols.openai_responses.wire import ItemKind
from dragoman.secret import name_alone

#: A place in an item: a group ("text", "refusal", "summary", "reasoning") and an index in it.
Key: TypeAlias = tuple[str, int]

THINKING_GROUPS: Final = ("summary", "reasoning")
NOWHERE: Final[Key] = ("", -1)
ARGUMENTS: Final[Key] = ("arguments", 0)
_MOST_LOOKS: Final = 64  # for deltas out of their order


class Echo:
    """The thinking of one item as its deltas come.

    Servers that are asked for a summary send the same text as summary and as reasoning. What may be a repetition is
    held while it may, in time linear in the text.
    """

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
        """Take a text. Return what can be passed on now."""
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
        """Return the held part of a text."""
        return "".join(text for at, text in self._held if at == key)

    def end(self) -> tuple[list[tuple[Key, str]], bool]:
        """End it. Return what was held and not said before, and whether something was repeated."""
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
        """Compare both groups as far as they have come."""
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


class Late:
    """The text of an end that came before its deltas: later deltas repeat it, in whatever order."""

    __slots__ = ("_at", "_left", "_looks", "_said", "_told")

    def __init__(self, told: str, said: int) -> None:
        """Create it. `told`: a whole text, of which `said` characters were said."""
        self._told, self._said, self._left = told, said, len(told) - said
        self._at = said
        self._looks = _MOST_LOOKS

    def takes(self, text: str) -> bool:
        """Return whether a delta is one of these.

        It continues where the last one stopped, or stands elsewhere in the text while as much is left.
        """
        if len(text) > self._left:
            return False
        if self._told.startswith(text, self._at):
            self._at += len(text)
        elif self._looks and self._told.find(text, self._said) >= 0:
            self._looks -= 1
        else:
            return False
        self._left -= len(text)
        return True


class Item(msgspec.Struct, eq=False):
    """One output item.

    Attributes:
        key: of its open part; `NOWHERE` if none is open.
        text_index: the content index of its open part if that is plain text, else -1.
        said: the text of each of its parts so far, in pieces.
        pieces: those of its open part.
        extras: native fields of its open part that came after the part's start.
        told: what separate events said about its texts, for their ends.
        ends: the texts whose ends came.
        late: what an end said before its deltas came.
        echo: thinking that may repeat other thinking of it, or None.
        prefill: whole arguments that came when the item opened; they count if nothing else comes.
        call_id: the first id of its call on the wire.
        is_named: an event named it by its id, so that another id is not its own.
        is_doubtful: arguments came that may be its own, so that only a final event can decide.
        is_final: its whole arguments came.
        done: its end was seen.
        repeated: the final list of output has named it.
    """

    kind: ItemKind
    index: int
    id: str
    type: str
    native: dict[str, Raw]
    call: OpenCall | None = None
    part: OpenPart | None = None
    key: Key = NOWHERE
    text_index: int = -1
    said: dict[Key, GatheredText] = {}
    pieces: GatheredText = msgspec.field(default_factory=GatheredText)
    extras: dict[str, Raw] = {}
    told: ToldApart | None = None
    late: dict[Key, Late] = {}
    ends: set[Key] = set()
    echo: Echo | None = None
    prefill: str = ""
    call_id: str = ""
    is_named: bool = False
    is_doubtful: bool = False
    is_final: bool = False
    done: bool = False
    repeated: bool = False

    __repr__ = name_alone

    def end(self, key: Key, bounds: AnswerBounds) -> str:
        """Take a whole text: each delta behind it is checked. Return why there are too many, or ""."""
        if len(self.ends) >= bounds.parts and key not in self.ends:  # empty ones open no part
            return bounds.overrun(parts=len(self.ends) + 1, calls=0)
        self.ends.add(key)
        self.text_index = -1
        return ""

    def is_late(self, key: Key, text: str, deviate: Deviate) -> bool:
        """Return whether a delta repeats an earlier end, from where the last such delta stopped."""
        late = self.late.get(key)
        if text and late is not None and late.takes(text):
            deviate("after-end", f"output[{self.index}]", "a delta behind its end")
            return True
        if text and key in self.ends:
            self.late.pop(key, None)
            deviate("part-not-opened", f"output[{self.index}]", "it goes on behind its end")
        return False

    def tell(self, index: int, name: str, values: list[Json], deviate: Deviate, *, is_whole: bool = False) -> None:
        """Take entries of a list of a text, or all: citations, log probabilities."""
        if self.kind != "message" or self.done or (self.key != ("text", index) and ("text", index) in self.said):
            return deviate("after-end", f"output[{self.index}].content[{index}].{name}", "")
        self.told = self.told or ToldApart(f"output[{self.index}]")
        self.told.add(index, name, list(map(_json.raw, values)), is_whole=is_whole)

    def in_parts(self, group: str, text: str, deviate: Deviate) -> tuple[Key, str] | None:
        """Return the last part of a group, and its missing rest, if a whole text is that of all its parts."""
        keys = [key for key in self.said if key[0] == group]
        if len(keys) < 2 or not text.startswith(self.said[keys[0]].text()):
            return None
        said = "".join([self.said[key].text() for key in keys])
        if not text.startswith(said):
            return None
        deviate("final-differs", f"output[{self.index}]", "in other parts")
        return keys[-1], text[len(said) :]

    def is_same(self, id: str, fields: dict[str, Json]) -> bool:
        """Return whether a second start is of the same item: by its call, or without calls by its id."""
        call_id = fields.get("call_id")
        return self.call_id == call_id if self.call_id and call_id else self.id == id

    def is_told_by(self, fields: dict[str, Json]) -> bool:
        """Return whether a whole item repeats its call word for word."""
        call, get = self.call, fields.get
        if call is None or call.kind != "function" or call.arguments in ("", "{}") or "namespace" in fields:
            return False
        wanted = ("function_call", self.call_id, call.name, call.arguments)
        return (get("type"), get("call_id"), get("name"), get("arguments")) == wanted

    def text(self) -> str:
        """Return the text of all its parts."""
        return "".join([said.text() for said in self.said.values()])
