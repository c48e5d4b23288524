"""Lists of models in OpenAI's form, which clients of several protocols read at `/v1/models`.

https://platform.openai.com/docs/api-reference/models (read 2026-11-21).
"""

from __future__ import annotations

from dragoman import _json
from dragoman._json import Json
from dragoman.protocol.model_pages import ListedModel, ModelPage, ModelQuestion, Precedence


def openai_pages(precedence: int = Precedence.USUAL) -> tuple[ModelPage, ...]:
    """Return the pages of a protocol whose clients read OpenAI's form."""
    return (
        ModelPage("/v1/models", _every, precedence=precedence),
        ModelPage("/v1/models/{model}", _one, precedence=precedence),
    )


def openai_list(asked: ModelQuestion) -> dict[str, Json]:
    """Return the models that the client sees, in OpenAI's form."""
    return {"object": "list", "data": [_model(listed, asked.since) for listed in asked.listed()]}


def _every(asked: ModelQuestion) -> bytes:
    return _json.encode(openai_list(asked))


def _one(asked: ModelQuestion) -> bytes:
    return _json.encode(_model(asked.find(asked.name), asked.since))


def _model(listed: ListedModel, since: int) -> Json:
    return {"id": listed.name, "object": "model", "created": since, "owned_by": listed.model.provider}
