"""`/v1/models` as OpenAI's clients ask it."""

from __future__ import annotations

from typing import Final

from dragoman.protocol.model_lists import openai_pages

MODEL_PAGES: Final = openai_pages()
