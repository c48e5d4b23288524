"""The exceptions that reach a user, and what a failure means over HTTP.

::

    DragomanError
    ├ UsageError    the caller broke the contract (a bad Request, an unknown target): fix the call
    ├ ConfigError   a configuration file is wrong: file, key path, what was expected
    ├ WireError     a client sent a body that is not its protocol: answered 4xx in that protocol
    ├ CallFailed    the response failed; raised by `.reply()` and `.run()`, never while iterating events
    │ └ OutputInvalid   the answer is not of the `output_type` that was asked for
    └ StepLimit     `.run()` made as many steps as it may, and the model still calls tools

Any other exception out of the core is a bug. Messages say what was expected, what was seen (clipped), and where.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dragoman.events import Failure, FailureKind, Finish, Reply, ToolCallFailed
from dragoman.misuse import DragomanError as DragomanError
from dragoman.misuse import UsageError as UsageError
from dragoman.types import NO_USAGE, Message, Usage


class MissingExtra(DragomanError):
    """A part of dragoman that is not installed is needed; the message has the command that installs it."""


class ConfigError(DragomanError):
    """A configuration is wrong."""


class WireError(DragomanError):
    """A client's body is not its protocol.

    Attributes:
        status: the HTTP status to answer with.
        path: where in the body, as a JSON path; "" when the whole of it.
        code: as of a `Failure`.
    """

    def __init__(self, message: str, *, status: int = 400, path: str = "", code: str | None = None) -> None:
        super().__init__(f"{message} at {path}" if path else message)
        self.code = code
        self.status = status
        self.path = path


class CallFailed(DragomanError):
    """The response failed. Run none of its calls.

    Attributes:
        failure: a `Failure`, or the first `ToolCallFailed` if the answer came and its only calls cannot be used; both
            have `kind` and `message`.
        reply: what came before the failure.
        status: the HTTP status, or None.
        retry_after: seconds after which the provider accepts another try, or None.
    """

    def __init__(self, failure: Failure | ToolCallFailed, reply: Reply) -> None:
        super().__init__(f"{failure.kind}: {failure.message}")
        self.failure = failure
        self.reply = reply
        self.status: int | None = failure.status if isinstance(failure, Failure) else None
        self.retry_after: float | None = failure.retry_after if isinstance(failure, Failure) else None


class OutputInvalid(CallFailed):
    """The answer is not of the requested `output_type`; `reply` contains it. The message contains none of its
    values.
    """

    def __init__(self, message: str, reply: Reply) -> None:
        super().__init__(Failure("wire", message, usage=reply.usage, cost=reply.cost, code="output_invalid"), reply)


class StepLimit(DragomanError):
    """`.run()` stopped at its step limit; `messages` is the conversation so far."""

    def __init__(self, message: str, messages: tuple[Message, ...]) -> None:
        super().__init__(message)
        self.messages = messages


class McpFailed(DragomanError):
    """A server of `mcp` cannot be used: it cannot be started or reached, or it lists no tools."""


#: The status that a failure has when no provider named one.
STATUS: Final[dict[FailureKind, int]] = {
    "auth": 401, "permission": 403, "quota": 402, "bad_request": 400, "too_large": 413, "not_found": 404,
    "context": 400, "rate": 429, "overloaded": 503, "timeout": 504, "connection": 502, "wire": 502,
    "answer_too_large": 502, "internal": 500,
}  # fmt: skip

#: Failures that another try, or another target, may mend. An answer beyond a bound is none: it would be paid again.
RETRYABLE: Final[frozenset[FailureKind]] = frozenset(
    {"rate", "overloaded", "timeout", "connection", "wire", "internal"}
)

_KIND_OF_STATUS: Final[dict[int, FailureKind]] = {
    400: "bad_request", 401: "auth", 402: "quota", 403: "permission", 404: "not_found", 405: "not_found",
    408: "timeout", 409: "bad_request", 413: "too_large", 415: "bad_request", 422: "bad_request",
    425: "overloaded", 429: "rate", 498: "auth", 499: "connection", 500: "internal", 502: "overloaded",
    503: "overloaded", 504: "timeout", 507: "overloaded", 520: "connection", 521: "connection", 522: "timeout",
    523: "connection", 524: "timeout", 529: "overloaded",
}  # fmt: skip


#: The code of a failure that is a deviation, which `strict` refuses.
DEVIATION_REFUSED: Final = "deviation_refused"
#: The code of a failure that is a call's: the answer came, and a call in it cannot be delivered.
CALL_FAILED: Final = "tool_call_failed"
#: The code of a failure for a request that goes on with a conversation which no target stores.
NOT_STORED: Final = "conversation_not_stored"
#: Stop reasons that stand although a call was cut: they say why.
_STANDING: Final = ("length", "content_filter")
_CUT: Final = "cut"


def call_failure(failed: Sequence[ToolCallFailed], usage: Usage = NO_USAGE) -> Failure:
    """Return the failure that reports undeliverable calls, in the protocol's own place for errors."""
    return Failure("wire", "; ".join([call.message for call in failed]), usage=usage, code=CALL_FAILED)


def failure_of(reply: Reply) -> Failure | None:
    """Return the failure that a whole answer reports beside its good calls, or None."""
    return call_failure(reply.failed_calls, reply.usage) if reply.failed_calls else None


def is_unusable(reply: Reply) -> bool:
    """Return whether calls failed, none is good, and nothing else says why, so that the answer is an error."""
    is_told = reply.stop_reason in _STANDING and all(failed.kind == _CUT for failed in reply.failed_calls)
    return bool(reply.failed_calls) and not reply.tool_calls and not is_told


def is_explained(failed: ToolCallFailed, finish: Finish) -> bool:
    """Return whether an answer's stop reason itself explains a failed call: the limit, or the filter, cut it.

    Any other failure is reported beside these reasons too: clients that ignore them would run the calls.
    """
    return failed.kind == _CUT and finish.reason in _STANDING


class FailedCalls:
    """The failed calls of a streamed answer, reported at its end.

    Attributes:
        has_left: a part of one was sent, so that the client's connection must not end well.
    """

    __slots__ = ("_failed", "has_left")

    def __init__(self) -> None:
        self._failed: list[ToolCallFailed] = []
        self.has_left = False

    def add(self, failed: ToolCallFailed, *, has_left: bool = False) -> None:
        """Add a failed call. `has_left`: the client has a part of it."""
        self._failed.append(failed)
        self.has_left = self.has_left or has_left

    def failure(self, finish: Finish) -> Failure | None:
        """Return the end to report in place of this one, or None if it stands."""
        if not self.has_left and all(is_explained(failed, finish) for failed in self._failed):
            return None
        return call_failure(self._failed, finish.usage)


def failure_kind(status: int) -> FailureKind:
    """Return the kind of failure for an HTTP status alone."""
    known = _KIND_OF_STATUS.get(status)
    if known is not None:
        return known
    if 200 <= status < 400:
        return "wire"
    return "bad_request" if status < 500 else "internal"


def status_of(failure: Failure) -> int:
    """Return the HTTP status to answer a failure with: the provider's own, if it agrees with the kind."""
    status = failure.status
    if status is not None and status >= 400 and failure_kind(status) == failure.kind:
        return status
    return STATUS[failure.kind]
