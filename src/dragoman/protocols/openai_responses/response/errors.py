"""Failures in the form of OpenAI Responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dragoman import _json
from dragoman.codec.errors.error_body import read_problem
from dragoman.errors import STATUS
from dragoman.events import Failure, FailureKind

_NO_HEADERS: Final[Mapping[str, str]] = {}
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


def parse_error(status: int, body: bytes, *, headers: Mapping[str, str] = _NO_HEADERS) -> Failure:
    """Parse the body of a response with an error status."""
    return read_problem(body, status=status, headers=headers)
