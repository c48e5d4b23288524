"""`/v1/models` as OpenAI's clients ask it, and as Codex does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dragoman import _json
from dragoman.protocol.model_lists import openai_list, openai_pages
from dragoman.protocol.model_pages import ModelPage, ModelQuestion, Precedence


def _is_codex(headers: Mapping[str, str], query: str) -> bool:
    return "&client_version=" in f"&{query}"


def _codex(asked: ModelQuestion) -> bytes:
    """Return the list with an empty catalogue for Codex, which then keeps its own.

    An entry of it must contain the instructions of the agent, and replaces Codex' own ones (0.169.0, tried on
    2026-11-23). What Codex cannot read is an error in its log.
    """
    return _json.encode({**openai_list(asked), "models": []})


MODEL_PAGES: Final = (
    ModelPage("/v1/models", _codex, applies=_is_codex, precedence=Precedence.MARKED),
    *openai_pages(),
)
