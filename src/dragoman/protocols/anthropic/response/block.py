"""One content block of an answer."""

from __future__ import annotations

from typing import Final, Literal

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.codec.parts.open_parts import SHORT, OpenCall, OpenPart
from dragoman.protocols.anthropic.wire import read

#: Kind of a block → type of the deltas that grow it.
TAKES: Final = {"text": "text_delta", "thinking": "thinking_delta"}


class Block:
    """A content block that was opened.

    `takes`: the type of the deltas that grow it and need no more looking at; "" for none. `told` are whole arguments
    that its start held; `has_input` says that it held any, `{}` included. `fields` are an opaque block's and `gains`
    what its deltas said, `citations` a text block's, `sealed` a signature that the start held. `rivals` are calls
    that had its index and no end, so that its deltas may be theirs, and `rival` the arguments that the start of another
    such call held. `opening` is what the start of a text held, until more comes, and `again` how many of its characters
    deltas have said again. `unread` is what may be a text that nobody reads, where its own is missing.
    """

    __slots__ = (
        "again", "call", "citations", "fields", "gains", "has_input", "is_ended", "kind", "opening", "part", "rival",
        "rivals", "sealed", "takes", "told", "unread",
    )  # fmt: skip

    def __init__(self, kind: Literal["text", "thinking", "call", "opaque"]) -> None:
        self.kind = kind
        self.part: OpenPart | None = None
        self.call: OpenCall | None = None
        self.has_input = False
        self.again = 0
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

    def beyond_opening(self, text: str) -> tuple[str, bool]:
        """What deltas say that the start of their text did not, and whether they have said that again. They wait, and
        `opening` stays, while they may."""
        opening, at = self.opening, self.again
        self.again = min(at + len(text), len(opening))
        if len(opening) <= SHORT or not opening.startswith(text[: self.again - at], at):
            self.opening = ""
            return opening[:at] + text, False
        if self.again < len(opening):
            return "", False
        self.opening = ""
        return text[len(opening) - at :], True

    def joined(self) -> dict[str, Raw]:
        """What the deltas said, joined to what the start said: strings grow, lists gain, the rest is set."""
        for key, gains in self.gains.items():
            known = read(self.fields.get(key))
            if all(isinstance(gain, str) for gain in gains):
                text = "".join([known if isinstance(known, str) else "", *gains])
                is_json = key == "input" and not isinstance(_json.decode(text), Malformed)
                self.fields[key] = _json.embed(text) if is_json else _json.raw(text)
            elif all(isinstance(gain, list) for gain in gains):
                lists = [known, *gains] if isinstance(known, list) else gains
                self.fields[key] = _json.raw([item for gain in lists for item in gain])
            else:
                self.fields[key] = _json.raw(gains[-1])
        return self.fields
