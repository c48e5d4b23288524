"""Settings of a chat request without which its answer would look odd."""

from __future__ import annotations

from dragoman.codec.json_fields import Fields, read, read_count
from dragoman.protocol import NOTHING_EXPECTED, Expectation
from dragoman.types import Request

#: "When a function is forced, the finish reason is stop": https://platform.openai.com/docs/guides/function-calling.
_FORCED = frozenset({("stop-reason", "stop reason")})
_ONE_FORCED = Expectation(_FORCED)
_SEVERAL = frozenset({("extra-choice", ""), ("ignored-call", "")})
#: The old form of a call, which has no id.
_LEGACY = frozenset({("legacy-function-call", ""), ("missing-id", "")})


def expect(fields: Fields) -> Expectation:
    """As `ExpectAnswer`, for the fields of a body."""
    usual: frozenset[tuple[str, str]] = frozenset()
    if (read_count(fields.get("n")) or 1) > 1:
        usual |= _SEVERAL
    if "functions" in fields:
        usual |= _LEGACY
    choice = read(fields.get("tool_choice", fields.get("function_call")))
    if choice not in (None, "auto", "none"):
        usual |= _FORCED
    return Expectation(usual)


def expect_of(request: Request) -> Expectation:
    """As `expect` for a request that is sent in this protocol: one answer, no old form."""
    return _ONE_FORCED if request.tools and request.tool_choice not in ("auto", "none") else NOTHING_EXPECTED
