"""Say the form of an answer in words of the prompt, for providers that take no schema."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dragoman import _json
from dragoman._json import Raw
from dragoman.types import Message, Text

_WORDS: Final = "Answer with one JSON {} only, and nothing around it."


def answer_words(schema: Raw | None) -> str:
    """Return the words that ask for an answer of a schema; None: for any JSON object."""
    if schema is None:
        return _WORDS.format("object")
    return f"{_WORDS.format('value')} It must fit this JSON schema:\n{_json.raw_text(schema)}"


def names_json(messages: Iterable[Message]) -> bool:
    """Return whether a text says "JSON", without which OpenAI and others refuse a request for any JSON object."""
    texts = (part.text for message in messages for part in message.parts if type(part) is Text)
    return any("json" in text.lower() for text in texts)
