"""Failures in the form of OpenAI Responses."""

from __future__ import annotations

from typing import Final

from dragoman import _json
from dragoman.errors import STATUS
from dragoman.events import Failure, FailureKind

#: Kind of a failure → `code`.
CODES: Final[dict[FailureKind, str]] = {
    "auth": "invalid_api_key", "quota": "insufficient_quota", "bad_request": "invalid_prompt",
    "too_large": "invalid_prompt", "not_found": "model_not_found", "context": "context_length_exceeded",
    "rate": "rate_limit_exceeded", "overloaded": "server_is_overloaded",
}  # fmt: skip
_TYPES: Final[dict[FailureKind, str]] = {
    "auth": "authentication_error", "permission": "permission_error", "quota": "insufficient_quota",
    "rate": "rate_limit_error", "bad_request": "invalid_request_error", "too_large": "invalid_request_error",
    "not_found": "invalid_request_error", "context": "invalid_request_error",
}  # fmt: skip


def render_error(failure: Failure) -> tuple[int, bytes]:
    """Render a failure before the first byte: status and body."""
    error = {
        "message": failure.message,
        "type": _TYPES.get(failure.kind, "server_error"),
        "param": None,
        "code": failure.code or CODES.get(failure.kind),
    }
    status = failure.status if failure.status is not None and failure.status >= 400 else STATUS[failure.kind]
    if failure.kind == "quota" and failure.status is None:
        status = 429  # OpenAI's own word for it, where no provider gave another
    return status, _json.encode({"error": error})
