"""How a response ends and what it counted (`ResponseEnd`), and whether another one began within it (`AnswerId`)."""

from __future__ import annotations

from typing import Final

import msgspec

from dragoman._json import whole_characters
from dragoman.events import Failure, FailureKind, Finish, UsageUpdate, settle_reason
from dragoman.money import bounded_usage
from dragoman.secret import name_alone
from dragoman.types import NO_USAGE, Cost, Native, StopReason, Usage

#: How an answer fails within which a second one begins, as where a proxy asked its server again.
SECOND: Final[tuple[FailureKind, str]] = ("wire", "expected one answer in the stream, but another one began within it")


class ResponseEnd(msgspec.Struct, eq=False):
    """Collects what counts at the end of one response.

    Attributes:
        reason: the stop reason so far; None while there is none.
        native_reason: the wire's word for it.
        native: fields that only the end of the response tells.
        unreadable: what no frame said, in words; "" when all were read.
        lost: the words for what looks like a call and nobody read. If no other call fails, one fails at the end so.
        echo: ids, names and arguments of the calls there. If they are all those of the answer, none is lost.
        is_torn: a frame could not be read before the stop reason, so calls may have begun in it.
        odd_frames: those with something that nobody knows, while nothing was said: the answer may be there.
        contradiction: why a call that has left may be another one.
    """

    reason: StopReason | None = None
    native_reason: str | None = None
    native: Native | None = None
    unreadable: str = ""
    lost: str = ""
    echo: list[tuple[str, str, str]] = []
    is_torn: bool = False
    odd_frames: list[bytes] = []
    contradiction: str = ""
    _usage: Usage = NO_USAGE
    _cost: Cost | None = None

    __repr__ = name_alone

    def count(self, usage: Usage, cost: Cost | None) -> UsageUpdate | None:
        """Take tokens so far; None when they say nothing new. What cannot be meant is not known."""
        usage = bounded_usage(usage)
        merged = usage if self._usage is NO_USAGE else self._usage.merged(usage)
        if merged == self._usage and (cost is None or cost == self._cost):
            return None
        self._usage, self._cost = merged, cost or self._cost
        return UsageUpdate(merged, self._cost)

    def take(self, native_reason: str | None, reason: StopReason, native: Native | None) -> bool:
        """Take a stop reason; whether another one came before. Of several the last wins, except that `stop` replaces no
        other."""
        is_another = self.reason is not None and (self.reason, self.native_reason) != (reason, native_reason)
        if not (is_another and reason == "stop" and self.reason != "other"):
            self.reason, self.native_reason = reason, whole_characters(native_reason or "") or None
            self.native = native
        return is_another

    def cut_short(self, empty: str, *, is_begun: bool) -> tuple[FailureKind, str]:
        """Why a response failed whose body ended before a stop reason. `empty`: what came in place of a response."""
        if not is_begun:
            return "wire", f"expected a response, got {self.unreadable or empty or 'an empty body'}"
        problem = self.unreadable and f" (unreadable: {self.unreadable})"
        return "connection", f"the stream ended before its terminal event{problem}"

    def failure(
        self, kind: FailureKind, message: str, status: int | None, retry_after: float | None, code: str | None
    ) -> Failure:
        """Return the failure of the response."""
        return Failure(kind, message, status, retry_after, self._usage, self._cost, code, self.native)

    def finish(self, *, usable_calls: int, failed_calls: int) -> Finish:
        """Return the end of the response, with these numbers of calls."""
        reason = settle_reason(self.reason, usable_calls=usable_calls, failed_calls=failed_calls)
        return Finish(reason, self.native_reason, self._usage, self._cost, self.native)

    def is_wrong(self, finish: Finish, *, names_tool_use: bool) -> bool:
        """Return whether the wire's reason, if the response ended for another, is wrong.

        Args:
            names_tool_use: the protocol has a reason for tool calls, so another one beside calls is wrong.
        """
        if self.reason is None:
            return False
        if finish.reason == "other" and self.reason == "tool_use":
            return False  # the wire is right: there were calls
        return names_tool_use or finish.reason != "tool_use"


class AnswerId(msgspec.Struct, eq=False):
    """The id of an answer, by which calls of a second one show. Servers that make an id for each frame are none."""

    id: str = ""
    _frame: bytes = b""
    _is_steady: bool = False  # it came in two frames
    _has_changed: bool = False  # another one came before the first call

    __repr__ = name_alone

    def is_again(self, id: object, frame: bytes) -> bool:
        """Take the id of a frame if it is the same as before."""
        if id != self.id or not id:
            return False
        self._is_steady = self._is_steady or frame is not self._frame
        return True

    def is_another(self, id: object, frame: bytes, *, begins_call: bool, is_called: bool, is_over: bool) -> bool:
        """Take the id of a frame. Return whether calls of a second answer begin in it.

        Args:
            is_called: calls began before this frame.
            is_over: the reason why the answer ends came.
        """
        if not isinstance(id, str) or not id or self.is_again(id, frame):
            return False
        if not begins_call and (self.id or (is_called and is_over)):
            return False
        is_over = self._is_steady or (is_over and not self._has_changed)
        self._has_changed = self._has_changed or bool(self.id and not is_called)
        self.id, self._frame, self._is_steady = id, frame, False
        return begins_call and is_over and is_called
