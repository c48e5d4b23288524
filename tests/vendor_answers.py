"""Every field of every answer type of the vendors' SDKs, each in the smallest answer that holds it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import anthropic.types.beta
import google.genai.types as google_types
import ollama
import openai.types.chat
import openai.types.responses

from vendor_types import Case, Json, Walk

_ROOTS: Final = {
    "openai-chat": openai.types.chat.ChatCompletion,
    "openai-responses": openai.types.responses.Response,
    "anthropic-messages": anthropic.types.beta.BetaMessage,
    "gemini-generate": google_types.GenerateContentResponse,
    "ollama-chat": ollama.ChatResponse,
}
_TEXT: Final = {"type": "output_text", "text": "hello", "annotations": []}
_MESSAGE: Final = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [_TEXT]}
#: Protocol → the least answer.
LEAST: Final[dict[str, dict[str, Json]]] = {
    "openai-chat": {
        "id": "c1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}],
    },
    "openai-responses": {
        "id": "r1", "object": "response", "created_at": 1, "model": "m", "status": "completed", "output": [_MESSAGE],
    },
    "anthropic-messages": {
        "id": "m1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "hello"}], "usage": {"input_tokens": 1, "output_tokens": 1},
    },
    "gemini-generate": {
        "candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [{"text": "hello"}]}}]
    },
    "ollama-chat": {
        "model": "m", "created_at": "2026-01-01T00:00:00Z", "done": True, "done_reason": "stop",
        "message": {"role": "assistant", "content": "hello"},
    },
}  # fmt: skip
#: Fields whose least object says too little to be an answer: what stands beside the field in it.
_BESIDE: Final = frozenset({"choices", "candidates", "message"})
#: What the types leave open: of answers, not of requests.
_WORDS: Final = {"role": "assistant", "finish_reason": "stop"}
#: Fields that say something beside another one only, and that.
_NEEDS: Final[dict[str, dict[str, Json]]] = {"incomplete_details": {"status": "incomplete"}}


def cases(protocol: str, *, words: bool = False) -> Iterator[Case]:
    """Every field of a protocol's answers with a marked value. `words`: those with words of an enumeration too."""
    walk, least = Walk(), LEAST[protocol]
    for name, (hint, _) in walk.fields(_ROOTS[protocol]).items():
        for found in walk.walk(hint, name):
            if not (found.is_marked or words):
                continue
            value, base = found.value, found.base
            if name in _BESIDE:
                value = _beside(value, least[name], name, found.key)
                base = None if base is None else _beside(base, least[name], name, "")
            beside = {**least, **_NEEDS.get(name, {})}
            without = beside if base is None else {**beside, name: base}
            yield Case(name + found.path, {**beside, name: value}, without, found.key, found.values, found.is_marked)


def _beside(value: Json, least: Json, name: str, told: str) -> Json:
    """A choice, candidate or message with the rest of it. `told`: the field that the value is about."""
    if isinstance(value, list):
        return [_beside(value[0], least[0], name, told)]
    filled = {**least, **value, **{key: word for key, word in _WORDS.items() if key in least and key != told}}
    for key, inner in least.items():
        if isinstance(inner, dict) and isinstance(value.get(key), dict):
            filled[key] = _beside(value[key], inner, key, told)
        elif value.get(key) in ("plain", 7):
            filled[key] = inner
    return filled
