"""Settings of a Gemini request without which its answer would look odd."""

from __future__ import annotations

from typing import Final

from dragoman._json import Raw
from dragoman.codec.json_fields import Fields, read_count, read_fields
from dragoman.protocol import NOTHING_EXPECTED, Expectation
from dragoman.protocols.gemini.wire import camel_fields

_SEVERAL: Final = Expectation(frozenset({("extra-choice", ""), ("ignored-call", "")}))


def asks_for_several(count: Raw | None) -> bool:
    """Return whether a `candidateCount` asks for more than one answer."""
    return (read_count(count) or 1) > 1


def expect(fields: Fields) -> Expectation:
    """As `ExpectAnswer`, for the fields of a body."""
    config = camel_fields(read_fields(camel_fields(fields).get("generationConfig")) or {})
    return _SEVERAL if asks_for_several(config.get("candidateCount")) else NOTHING_EXPECTED
