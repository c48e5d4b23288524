"""One content block of an answer."""

from __future__ import annotations

from typing import Final, Literal

from dragoman._json import Json, Raw
from dragoman.codec.parts.open_parts import OpenCall, OpenPart

#: Kind of a block → type of the deltas that grow it.
TAKES: Final = {"text": "text_delta", "thinking": "thinking_delta"}


class Block:
    """A content block that was opened.

    `takes`: the type of the deltas that grow it and need no more looking at; "" for none. `told` are whole arguments
    that its start held; `has_input` says that it held any, `{}` included. `fields` are an opaque block's and `gains`
    what its deltas said, `citations` a text block's, `sealed` a signature that the start held. `rivals` are calls
    that had its index and no end, so that its deltas may be theirs, and `rival` the arguments that the start of another
    such call held. `opening` is what the start of a text held, until more comes. `unread` is what may be a text that
    nobody reads, where its own is missing.
    """

    __slots__ = (
        "call", "citations", "fields", "gains", "has_input", "is_ended", "kind", "opening", "part", "rival", "rivals",
        "sealed", "takes", "told", "unread",
    )  # fmt: skip

    def __init__(self, kind: Literal["text", "thinking", "call", "opaque"]) -> None:
        self.kind = kind
        self.part: OpenPart | None = None
        self.call: OpenCall | None = None
        self.has_input = False
        self.told = self.opening = ""
        self.sealed = ""
        self.citations: list[Raw] = []
        self.fields: dict[str, Raw] = {}
        self.gains: dict[str, list[Json]] = {}
        self.rival = ""
        self.rivals: list[Block] = []
        self.takes = TAKES.get(kind, "")
        self.unread = ""
        self.is_ended = False
