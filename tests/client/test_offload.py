"""Which bodies are worked on in the event loop."""

from __future__ import annotations

import pytest

from dragoman.client.offload import LARGE, weight_of


@pytest.mark.parametrize(
    ("body", "is_light"),
    [
        (b"[]," * 5_000, True),  # 15 KB: whatever they are
        (b'"' + b"word " * 40_000 + b'"', True),
        (b'{"role":"user","content":"' + b"word " * 20 + b'"},', True),
        (b'{"type":"t"},' * 9_000, False),  # 117 KB of parts that nobody knows took 79 ms
        (b"[]," * 40_000, False),
    ],
)
def test_a_body_of_many_small_values_counts_as_a_large_one(body: bytes, *, is_light: bool) -> None:
    assert len(body) <= LARGE
    assert (weight_of(body) <= LARGE) is is_light
    assert weight_of(body) >= len(body)
