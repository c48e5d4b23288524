"""Rate limits of providers as golden rows."""

from __future__ import annotations

import pytest

from dragoman.gateway.telemetry.rate_limits import limit_headers, provider_request_id

NOW = 1_750_000_000.0


@pytest.mark.parametrize(
    ("said", "ours"),
    [
        (
            {"x-ratelimit-limit-requests": "60", "x-ratelimit-reset-requests": "1s"},
            {"limit-requests": "60", "reset-requests": "1"},
        ),
        ({"x-ratelimit-reset-tokens": "6m0s"}, {"reset-tokens": "360"}),
        ({"x-ratelimit-reset-tokens": "2m59.56s"}, {"reset-tokens": "180"}),
        ({"x-ratelimit-reset-requests": "20ms"}, {"reset-requests": "1"}),
        ({"x-ratelimit-reset-requests": "1h0m5s"}, {"reset-requests": "3605"}),
        (
            {"anthropic-ratelimit-tokens-remaining": "40", "anthropic-ratelimit-tokens-reset": "2025-06-15T15:07:20Z"},
            {"remaining-tokens": "40", "reset-tokens": "40"},
        ),
        ({"anthropic-ratelimit-requests-reset": "2020-01-01T00:00:00Z"}, {"reset-requests": "0"}),
        ({"x-ratelimit-limit": "20"}, {"limit-requests": "20"}),
        ({"x-ratelimit-reset": "1750000060000"}, {"reset-requests": "60"}),
        ({"x-ratelimit-reset": "1750000060"}, {"reset-requests": "60"}),
        ({"x-ratelimit-reset-requests": "soon"}, {}),
        ({"x-ratelimit-remaining-requests": "-1"}, {}),
        ({"x-ratelimit-reset-requests": "nan"}, {}),
        ({"retry-after-ms": "1500", "x-should-retry": "true", "anthropic-ratelimit-input-tokens-limit": "9"}, {}),
    ],
)  # fmt: skip
def test_a_providers_words_and_ours(said: dict[str, str], ours: dict[str, str]) -> None:
    found = limit_headers({**said, "server": "nginx", "set-cookie": "a=b"}, now=NOW)
    assert found == said | {f"x-dragoman-{name}": value for name, value in ours.items()}


@pytest.mark.parametrize("value", ["", "a\r\nset-cookie: x", "x" * 201, "\x00", "é"])
def test_what_no_header_may_hold_is_left_out(value: str) -> None:
    assert limit_headers({"x-ratelimit-limit-requests": value}, now=NOW) == {}
    assert provider_request_id({"x-request-id": value, "request-id": "req_1"}) == "req_1"


def test_odd_headers_of_a_provider_are_few_and_short() -> None:
    many = {f"x-ratelimit-odd-{number}": "1" for number in range(2_000)} | {"x-ratelimit-" + "y" * 500: "1"}
    passed = limit_headers({"retry-after": "3", **many}, now=0.0)
    assert len(passed) == 24 and passed["retry-after"] == "3"
    assert limit_headers({"x-ratelimit-" + "y" * 500: "1"}, now=0.0) == {}
