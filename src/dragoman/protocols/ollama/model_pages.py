"""What Ollama's clients ask of a server before they chat. https://github.com/ollama/ollama/blob/main/docs/api.md (read
2026-11-21).

What is not known of a model is left out, or claimed only if a client would otherwise hide a working feature.
"""

from __future__ import annotations

import hashlib
from typing import Final

from dragoman import _json
from dragoman._json import Json
from dragoman.codec.timestamps import render_time
from dragoman.errors import WireError
from dragoman.protocol import UNKNOWN_MODEL
from dragoman.protocol.model_lists import openai_pages
from dragoman.protocol.model_pages import ListedModel, ModelFacts, ModelPage, ModelQuestion, Precedence

#: A model's family and architecture as clients see them: they name the keys of `model_info`.
_FAMILY: Final = "dragoman"
_EMBEDS: Final = "embed"


def _greet(asked: ModelQuestion) -> bytes:
    return b"Ollama is running"


def _version(asked: ModelQuestion) -> bytes:
    return _json.encode({"version": asked.server_version})


def _tags(asked: ModelQuestion) -> bytes:
    return _json.encode({"models": [_tag(listed, asked.since) for listed in asked.listed()]})


def _running(asked: ModelQuestion) -> bytes:
    """Return no loaded models: providers load theirs."""
    return _json.encode({"models": []})


def _tag(listed: ListedModel, since: int) -> dict[str, Json]:
    return {
        "name": listed.name,
        "model": listed.name,
        "modified_at": render_time(since),
        "size": 0,
        "digest": hashlib.sha256(listed.name.encode()).hexdigest(),
        "details": _details(listed.model),
        "capabilities": _capabilities(listed.model),
    }


def _details(model: ModelFacts) -> dict[str, Json]:
    return {
        "parent_model": "", "format": "gguf", "family": _FAMILY, "families": [_FAMILY],
        "parameter_size": "", "quantization_level": "", "context_length": _context(model),
    }  # fmt: skip


def _context(model: ModelFacts) -> int:
    return model.context or UNKNOWN_MODEL.num_ctx_cap


def _capabilities(model: ModelFacts) -> list[Json]:
    """Return a model's capabilities.

    Clients send no tools if this does not name them, so they are missing only for a model known to have none. Embedding
    models are known by their names alone.
    """
    if _EMBEDS in model.target.lower():
        return ["embedding"]
    found: list[Json] = ["completion"]
    if model.tools is not False:
        found.append("tools")
    if "image" in (model.input_modalities or ()):
        found.append("vision")
    if model.thinking:
        found.append("thinking")
    return found


def _show(asked: ModelQuestion) -> bytes:
    fields = _json.decode(asked.body)
    if not isinstance(fields, dict):
        raise WireError("expected a JSON object with the name of a model")
    name = fields.get("model") or fields.get("name")
    if not isinstance(name, str):
        raise WireError("expected the name of a model", path="model")
    listed = asked.find(name)
    return _json.encode(
        {
            "license": "",
            "modelfile": "",
            "parameters": "",
            "template": "{{ .Prompt }}",
            "details": _details(listed.model),
            "model_info": {
                "general.architecture": _FAMILY,
                "general.basename": name,
                f"{_FAMILY}.context_length": _context(listed.model),
            },
            "capabilities": _capabilities(listed.model),
            "modified_at": render_time(asked.since),
        }
    )


def _refuse(asked: ModelQuestion) -> bytes:
    """Refuse what would change the models of a machine."""
    raise WireError(f"{asked.path} is not served: models belong to their provider")


MODEL_PAGES: Final = (
    ModelPage("/", _greet, content_type="text/plain; charset=utf-8"),
    ModelPage("/api/version", _version),
    ModelPage("/api/tags", _tags),
    ModelPage("/api/ps", _running),
    ModelPage("/api/show", _show, ("POST",)),
    *(ModelPage(f"/api/{verb}", _refuse, ("POST",)) for verb in ("push", "create", "copy")),
    ModelPage("/api/delete", _refuse, ("DELETE",)),
    # What serves Ollama serves its OpenAI side too, and asks it for its models.
    *openai_pages(Precedence.BORROWED),
)
