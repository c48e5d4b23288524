"""Say the form of an answer in words of the prompt, for providers that take no schema."""

from __future__ import annotations

from typing import Final

from dragoman import _json
from dragoman._json import Raw

_WORDS: Final = "Answer with one JSON {} only, and nothing around it."


def answer_words(schema: Raw | None) -> str:
    """Return the words that ask for an answer of a schema; None: for any JSON object."""
    if schema is None:
        return _WORDS.format("object")
    return f"{_WORDS.format('value')} It must fit this JSON schema:\n{_json.raw_text(schema)}"
