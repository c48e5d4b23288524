"""Errors of any form become one Failure."""

from __future__ import annotations

from typing import Any

from dragoman.codec.errors.error_body import MESSAGE_LIMIT, holds_error, read_problem
from for_each import for_each

FORMS: dict[str, tuple[Any, int | None, str, str]] = {
    # form: (value, status, kind, message)
    "object": (
        {"error": {"message": "no such tool", "type": "invalid_request_error"}},
        400,
        "bad_request",
        "no such tool",
    ),
    "text": ({"error": "model 'x' not found"}, 404, "not_found", "model 'x' not found"),
    "message": ({"message": "who are you", "code": 1}, 401, "auth", "who are you"),
    "detail": ({"detail": "Not authenticated"}, 403, "permission", "Not authenticated"),
    "details": (
        {"detail": [{"loc": ["body", "model"], "msg": "required"}]},
        422,
        "bad_request",
        "required (body.model)",
    ),
    "errors": ({"errors": [{"message": "first"}, {"message": "second"}]}, 400, "bad_request", "first; second"),
    "typed": (
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        None,
        "overloaded",
        "Overloaded",
    ),
    "bare": ({"code": "rate_limit_exceeded", "message": "slower", "type": "error"}, None, "rate", "slower"),
    "list": (
        [{"error": {"code": 400, "message": "bad payload", "status": "INVALID_ARGUMENT"}}],
        400,
        "bad_request",
        "bad payload",
    ),
    "odd key": (
        {"error parsing tool call": "unexpected end"},
        None,
        "internal",
        "error parsing tool call: unexpected end",
    ),
    "nested text": ({"error": {"message": '{"error":{"message":"inner"}}'}}, 500, "internal", "inner"),
    "gateway": (
        {"error": {"message": "Provider returned error", "metadata": {"raw": '{"message":"too busy"}'}}},
        503,
        "overloaded",
        "Provider returned error; too busy",
    ),
    "byte order mark": (b"\xef\xbb\xbf" + b'{"error":{"message":"busy"}}', 503, "overloaded", "busy"),
    "html": (b"<!doctype html><title>Bad Gateway</title><h1>x</h1>", 502, "overloaded", "Bad Gateway"),
    "html heading": (
        b"<html><body><h2>Access  denied &amp; logged</h2></body></html>",
        403,
        "permission",
        "Access denied & logged",
    ),
    "words": (b"upstream connect error", 503, "overloaded", "upstream connect error"),
    "nothing": (b"", 503, "overloaded", "HTTP 503 with nothing that says why"),
    "nothing in band": ({}, None, "internal", "an error that says nothing"),
    "stream form": (b'event: error\ndata: {"error":{"message":"boo"}}\n\n', 500, "internal", "boo"),
    "context code": ({"error": {"message": "no", "code": "context_length_exceeded"}}, 400, "context", "no"),
    "context words": (
        {"error": {"message": "prompt is too long: 9 tokens > 8 maximum"}},
        400,
        "context",
        "prompt is too long: 9 tokens > 8 maximum",
    ),
    "context of llama.cpp": (
        {
            "error": {
                "code": 400,
                "message": "request (6021 tokens) exceeds the available context size",
                "type": "exceed_context_size_error",
            }
        },
        400,
        "context",
        "request (6021 tokens) exceeds the available context size",
    ),
    "rate limit in tokens": (
        {"error": {"message": "Rate limit reached: 8000 tokens per minute for this context length"}},
        429,
        "rate",
        "Rate limit reached: 8000 tokens per minute for this context length",
    ),
    "quota": ({"error": {"message": "pay", "code": "insufficient_quota"}}, 429, "quota", "pay"),
    "payment": ({"error": "pay"}, 402, "quota", "pay"),
    "key of Google": (
        {"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}},
        400,
        "auth",
        "API key not valid.",
    ),
    "code as text": ({"error": {"message": "busy", "code": "503"}}, None, "overloaded", "busy"),
    "timeout in words": ("upstream timed out", None, "timeout", "upstream timed out"),
    "vague type": ({"error": {"message": "no", "type": "invalid_request_error"}}, None, "bad_request", "no"),
}


@for_each("form", FORMS)
def test_form(form: str) -> None:
    value, status, kind, message = FORMS[form]
    failure = read_problem(value, status=status)
    assert (failure.kind, failure.message) == (kind, message)
    if status is not None:
        assert failure.status == status


def test_a_status_in_the_body_counts_when_http_said_well() -> None:
    failure = read_problem({"error": {"code": 502, "message": "gone"}}, status=200)
    assert (failure.status, failure.kind) == (502, "overloaded")


@for_each(
    ("headers", "value", "seconds"),
    [
        ({"Retry-After": "7"}, b"", 7.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, b"", 1.5),
        ({"retry-after": "Sat, 21 Nov 2026 23:00:30 GMT", "date": "Sat, 21 Nov 2026 23:00:00 GMT"}, b"", 30.0),
        ({"retry-after": "Sat, 21 Nov 2026 22:00:30 GMT", "date": "Sat, 21 Nov 2026 23:00:00 GMT"}, b"", 0.0),
        ({"retry-after": "Sat, 99 Nov 2026 22:00:30 GMT", "date": "Sat, 21 Nov 2026 23:00:00 GMT"}, b"", None),
        ({"retry-after": "Sat, 21 Nov 2026 23:00:30 GMT"}, b"", None),
        ({"retry-after": "soon"}, b"", None),
        ({}, {"error": {"message": "Please try again in 6m11.5s."}}, 371.5),
        ({}, {"error": {"message": "Please try again in 20ms."}}, 0.02),
        ({}, {"error": {"message": "Please try again in a moment."}}, None),
        ({}, {"error": {"message": "x", "details": [{"@type": "RetryInfo", "retryDelay": "34.07s"}]}}, 34.07),
        ({}, {"error": "x", "retry_after": 3}, 3.0),
    ],
)
def test_when_to_try_again(headers: dict[str, str], value: Any, seconds: float | None) -> None:
    assert read_problem(value, status=429, headers=headers).retry_after == seconds


def test_a_spent_quota_with_a_time_to_wait_is_a_rate_limit() -> None:
    value = {"error": {"code": 429, "message": "You exceeded your current quota", "status": "RESOURCE_EXHAUSTED"}}
    assert read_problem(value, status=429).kind == "quota"
    assert read_problem(value, status=429, headers={"retry-after": "3"}).kind == "rate"


@for_each(
    "secret",
    ["sk-abcdefgh12345", "AIzaSyA1234567890abcdef", "eyJhbGciOiJIUzI1NiJ9.abc.def", "gsk_abcdefgh123456"],
)
def test_keys_are_scrubbed(secret: str) -> None:
    for message in (f"Incorrect API key provided: {secret}", f"GET /v1?key={secret} failed", f"Bearer {secret}"):
        failure = read_problem({"error": {"message": message, "code": secret}}, status=401)
        assert secret not in failure.message
        assert secret not in (failure.code or "")
        assert "***" in failure.message


def test_the_text_of_a_call_is_not_repeated() -> None:
    value = {"error": 'error parsing tool call: raw=\'{"path":"it\'s secret"}\', err=unexpected end'}
    message = read_problem(value, status=500).message
    assert "secret" not in message
    assert message.startswith("error parsing tool call: raw=(")
    assert message.endswith("err=unexpected end")


def test_messages_are_clipped_and_depth_is_bounded() -> None:
    assert len(read_problem("x" * 100_000, status=500).message) == MESSAGE_LIMIT
    deep: Any = "bottom"
    for _ in range(500):
        deep = {"error": deep}
    assert read_problem(deep, status=500).message == "HTTP 500 with nothing that says why"
    hostile = b"<h1>" * 50_000
    assert read_problem(hostile, status=500).kind == "internal"


@for_each("value", [None, False, 0, "", "  ", {}, [], {"message": "", "code": None}])
def test_an_error_that_holds_nothing(value: Any) -> None:
    assert not holds_error(value)


@for_each("value", [True, "x", {"message": "x"}, ["x"], {"error": {"code": 5}}])
def test_an_error_that_holds_something(value: Any) -> None:
    assert holds_error(value)
