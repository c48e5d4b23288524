"""One content block of an answer."""

from __future__ import annotations

from typing import Final, Literal

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.bounds import AnswerBounds
from dragoman.codec.framing.entries import check_entries
from dragoman.codec.parts.open_parts import OpenCall, OpenPart
from dragoman.protocols.anthropic.wire import read

#: Kind of a block → type of the deltas that grow it.
TAKES: Final = {"text": "text_delta", "thinking": "thinking_delta"}
_SHORT: Final = 24  # characters of a start that its deltas may say again by chance


class Block:
    """An opened content block.

    Attributes:
        takes: the type of the deltas that grow it and need no further check, or "".
        told: whole arguments of its start.
        has_input: the start had arguments, `{}` included.
        fields, gains: of an opaque block: its start's fields, and what its deltas said.
        citations: of a text block.
        sealed: a signature of the start.
        rivals: calls that had its index and no end, so that its deltas may be theirs.
        rival: the arguments of the start of another such call.
        opening: the text of the start, until more comes.
        again: how many of its characters deltas have repeated.
        unread: what may be a text that is not read, if its own is missing.
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

    def cite(self, citation: Raw, bounds: AnswerBounds) -> None:
        """Add a citation of the text. Each takes more memory than its bytes."""
        self.citations.append(citation)
        check_entries(self.citations, bounds)

    def beyond_opening(self, text: str) -> tuple[str, bool]:
        """Return the new part of a delta beyond the start's text, and whether deltas have repeated all of it.

        While they may, they wait, and `opening` stays.
        """
        opening, at = self.opening, self.again
        self.again = min(at + len(text), len(opening))
        if len(opening) <= _SHORT or not opening.startswith(text[: self.again - at], at):
            self.opening = ""
            return opening[:at] + text, False
        if self.again < len(opening):
            return "", False
        self.opening = ""
        return text[len(opening) - at :], True

    def joined(self) -> dict[str, Raw]:
        """Return what the deltas said joined to the start: strings grow, lists gain, the rest is set."""
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
