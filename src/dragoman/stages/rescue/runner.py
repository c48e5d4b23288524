"""One family reading one candidate: what it found, and whether each call was whole."""

from __future__ import annotations

from typing import Final, TypeAlias, final

import msgspec

from dragoman.gathered import GatheredRuns
from dragoman.stages.rescue.cursor import BODY, Close, Cursor, Family, NotACall, Open, Parser, Piece

#: What stands between calls; at the end of a text it belongs to them.
_BETWEEN: Final = " \t\r\n,;"


@final
class Prose(msgspec.Struct, frozen=True, gc=False):
    """Text that is no call. `tag`: one of values with which it ends."""

    text: str
    tag: str = ""


#: What a scanner finds, in order. Between an `Open` and its `Close` there are only `Piece`s.
Found: TypeAlias = Prose | Open | Piece | Close
#: Why a call is refused that stands behind tags of values of its family.
MOVED: Final = "an argument of it, or a part of one, stands before it"


class Runner:
    """One family reading one candidate."""

    __slots__ = (
        "cursor", "family", "found", "is_over", "is_spoilt", "is_torn", "opened", "parser", "_body", "_in_call",
        "_in_tags", "_is_moved",
    )  # fmt: skip

    def __init__(self, family: Family, parser: Parser, cursor: Cursor, *, is_moved: bool = False) -> None:
        """`is_moved`: tags of its values stand before the candidate."""
        self._is_moved = is_moved
        self.family = family
        self.parser = parser
        self.cursor = cursor
        self.found: GatheredRuns[Found] = GatheredRuns()
        self.opened = False
        self.is_over = False
        self.is_spoilt = False  # not all of it is calls that can be delivered
        self.is_torn = False  # nobody can tell where the last call ends: what follows may be the rest of a value
        self._in_call = self._in_tags = False
        self._body: Close | None = None  # the last call closed by its own brackets, until it is known what follows

    def is_in_call(self) -> bool:
        """Whether a call is open, or it is not known whether one is."""
        return self._in_call or not self.opened

    def run(self) -> bool:
        """Read what has come; False when it is no call of this family."""
        try:
            for action in self.parser:
                if isinstance(action, Open | Piece | Close):
                    self._take(action)
                else:
                    return True
        except NotACall:
            if not self.opened:
                return False
            if self._in_call:
                self._take(Close("", "" if self.cursor.ended else "its text is not of its format"))
            else:
                self.cursor.rewind()  # what follows the last call is none
                self.is_spoilt = True
                rest = self.cursor.rest()
                if self.cursor.ended and not rest.strip(_BETWEEN):
                    self.cursor.skip(len(rest))
        self.is_over = True
        self._settle_body(is_proven=self.cursor.is_sealed or bool(self.cursor.rest().strip()))
        return self.opened

    def _take(self, action: Open | Piece | Close) -> None:
        self._settle_body(is_proven=True)
        if isinstance(action, Close):
            self._close(action)
            return
        if isinstance(action, Open):
            self._in_tags = action.in_tags
            action = msgspec.structs.replace(action, family=self.family.name)
            self.opened = self._in_call = True
            self.cursor.unmark()
        self.found.add(action)

    def _close(self, end: Close) -> None:
        """A call ends; what its family says closed it must have been read."""
        cursor = self.cursor
        if end.by not in ("", BODY, cursor.marker):
            end = Close("", end.problem)
        self._in_call = False
        self.is_spoilt = self.is_spoilt or not end.is_whole()
        self.is_torn = self._in_tags and not end.is_whole()
        cursor.mark()
        cursor.is_sealed = False
        cursor.is_broken = not end.is_whole()
        if self._is_moved and end.is_whole():
            end = Close("", MOVED)
        if end.by == BODY and not end.problem:
            self._body = end
        else:
            self.found.add(end)

    def _settle_body(self, *, is_proven: bool) -> None:
        """A call that its own brackets closed is told when it is known whether something stands behind it."""
        if self._body is not None:
            self.found.add(Close(BODY, is_proven=is_proven))
            self._body = None
