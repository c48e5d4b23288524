"""What clients ask before they chat: versions, models, capabilities, the length of a prompt.

Answers come from the routes and the catalogue. What neither knows is left out, or claimed only if a client would
otherwise hide a working feature. Forms: https://github.com/ollama/ollama/blob/main/docs/api.md,
https://platform.openai.com/docs/api-reference/models, https://docs.anthropic.com/en/api/models-list,
https://ai.google.dev/api/models (read 2026-11-21).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, final

import msgspec

from dragoman import _json
from dragoman._json import Json
from dragoman.codec.timestamps import render_time
from dragoman.errors import WireError
from dragoman.gateway.messages import Answer, Head
from dragoman.gateway.model_names import Listed, ModelNames, UnknownModel
from dragoman.gateway.pages.start import render_start, wants_html
from dragoman.ledger.keys import VirtualKey
from dragoman.protocol import UNKNOWN_MODEL
from dragoman.protocols import PROTOCOLS
from dragoman.providers.catalog import Model
from dragoman.secret import name_alone
from dragoman.token_estimate import estimate_tokens
from dragoman.types import ProtocolName

_JSON: Final = "application/json; charset=utf-8"
#: A model's family and architecture as Ollama clients see them: they name the keys of `model_info`.
_FAMILY: Final = "dragoman"
_EMBEDS: Final = "embed"


@final
class Asked(msgspec.Struct, frozen=True):
    """A question.

    Attributes:
        name: the text of `{model}` in the path, or "".
        since: Unix seconds, for lists.
        protocols: what the gateway serves.
        key: the client's, which restricts what it sees; None: it sees everything.
    """

    __repr__ = name_alone

    head: Head
    body: bytes
    name: str
    names: ModelNames
    since: int
    protocols: tuple[ProtocolName, ...]
    key: VirtualKey | None = None

    def listed(self) -> Sequence[Listed]:
        """Return the names that the client sees."""
        found = self.names.listed()
        return found if self.key is None else [listed for listed in found if self.key.permits(listed.name)]

    def find(self, name: str) -> Listed:
        """Return the model that answers to a name.

        Raises:
            UnknownModel: none does, or none that the client's key may ask for.
        """
        if self.key is not None and not self.key.permits(name):
            raise UnknownModel(name, tuple(listed.name for listed in self.listed()))
        return self.names.find(name)


Respond: TypeAlias = Callable[[Asked], Answer]
Applies: TypeAlias = Callable[[Head], bool]


def _always(head: Head) -> bool:
    return True


@final
class Page(msgspec.Struct, frozen=True):
    """A path and its answer. `{model}` in the pattern stands for any text. `applies` selects the clients of a path that
    several protocols share.
    """

    protocol: ProtocolName
    methods: tuple[str, ...]
    pattern: str
    respond: Respond
    applies: Applies = _always


def _answer(value: Json) -> Answer:
    return Answer(200, _json.encode(value), _JSON)


# ---------------------------------------------------------------- Ollama


def _start(asked: Asked) -> Answer:
    """Return the page that a browser shows."""
    return render_start(asked.head, asked.protocols, asked.listed())


def _greet(asked: Asked) -> Answer:
    return Answer(200, b"Ollama is running", "text/plain; charset=utf-8")


def _version(asked: Asked) -> Answer:
    return _answer({"version": asked.names.ollama_version})


def _tags(asked: Asked) -> Answer:
    return _answer({"models": [_tag(listed, asked.since) for listed in asked.listed()]})


def _running(asked: Asked) -> Answer:
    """Return no loaded models: providers load theirs."""
    return _answer({"models": []})


def _tag(listed: Listed, since: int) -> dict[str, Json]:
    return {
        "name": listed.name,
        "model": listed.name,
        "modified_at": render_time(since),
        "size": 0,
        "digest": hashlib.sha256(listed.name.encode()).hexdigest(),
        "details": _details(listed.model),
        "capabilities": _capabilities(listed.model),
    }


def _details(model: Model) -> dict[str, Json]:
    return {
        "parent_model": "", "format": "gguf", "family": _FAMILY, "families": [_FAMILY],
        "parameter_size": "", "quantization_level": "", "context_length": _context(model),
    }  # fmt: skip


def _context(model: Model) -> int:
    return model.context or UNKNOWN_MODEL.num_ctx_cap


def _capabilities(model: Model) -> list[Json]:
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


def _show(asked: Asked) -> Answer:
    fields = _json.decode(asked.body)
    if not isinstance(fields, dict):
        raise WireError("expected a JSON object with the name of a model")
    name = fields.get("model") or fields.get("name")
    if not isinstance(name, str):
        raise WireError("expected the name of a model", path="model")
    listed = asked.find(name)
    return _answer(
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


def _unsupported(asked: Asked) -> Answer:
    """Refuse what would change the models of a machine."""
    return Answer(400, _json.encode({"error": f"{asked.head.path} is not served: models belong to their provider"}))


# ---------------------------------------------------------------- OpenAI


def _openai_models(asked: Asked) -> Answer:
    data: list[Json] = [_openai_model(listed, asked.since) for listed in asked.listed()]
    return _answer({"object": "list", "data": data})


def _is_codex(head: Head) -> bool:
    return f"&{head.query}".find("&client_version=") >= 0


def _codex_models(asked: Asked) -> Answer:
    """Return the list with an empty catalogue for Codex, which then keeps its own.

    An entry of it must contain the instructions of the agent, and replaces Codex' own ones (0.169.0, tried on
    2026-11-23). What Codex cannot read is an error in its log.
    """
    data: list[Json] = [_openai_model(listed, asked.since) for listed in asked.listed()]
    return _answer({"object": "list", "data": data, "models": []})


def _openai_one(asked: Asked) -> Answer:
    return _answer(_openai_model(asked.find(asked.name), asked.since))


def _openai_model(listed: Listed, since: int) -> Json:
    return {"id": listed.name, "object": "model", "created": since, "owned_by": listed.model.provider}


# ---------------------------------------------------------------- Anthropic


def _is_anthropic(head: Head) -> bool:
    return "anthropic-version" in head.headers


def _anthropic_models(asked: Asked) -> Answer:
    data: list[Json] = [_anthropic_model(listed, asked.since) for listed in asked.listed()]
    names = [listed.name for listed in asked.listed()]
    first, last = (names[0], names[-1]) if names else (None, None)
    return _answer({"data": data, "has_more": False, "first_id": first, "last_id": last})


def _anthropic_one(asked: Asked) -> Answer:
    return _answer(_anthropic_model(asked.find(asked.name), asked.since))


def _anthropic_model(listed: Listed, since: int) -> Json:
    return {"type": "model", "id": listed.name, "display_name": listed.name, "created_at": render_time(since)}


def _anthropic_count(asked: Asked) -> Answer:
    request = PROTOCOLS["anthropic-messages"].parse_request(asked.body).request
    asked.find(request.model)
    return _answer({"input_tokens": estimate_tokens(request)})


# ---------------------------------------------------------------- Gemini


def _is_gemini(head: Head) -> bool:
    headers = head.headers
    return "x-goog-api-key" in headers or "x-goog-api-client" in headers or f"&{head.query}".find("&key=") >= 0


def _gemini_models(asked: Asked) -> Answer:
    return _answer({"models": [_gemini_model(listed) for listed in asked.listed()]})


def _gemini_one(asked: Asked) -> Answer:
    return _answer(_gemini_model(asked.find(asked.name)))


def _gemini_model(listed: Listed) -> Json:
    model: dict[str, Json] = {
        "name": f"models/{listed.name}",
        "version": "1",
        "displayName": listed.name,
        "supportedGenerationMethods": ["generateContent", "streamGenerateContent", "countTokens"],
    }
    if listed.model.context is not None:
        model["inputTokenLimit"] = listed.model.context
    if listed.model.max_output is not None:
        model["outputTokenLimit"] = listed.model.max_output
    return model


def _gemini_count(asked: Asked) -> Answer:
    body = asked.body
    fields = _json.decode(body)
    if isinstance(fields, dict):
        inner = fields.get("generateContentRequest") or fields.get("generate_content_request")
        if isinstance(inner, dict):
            body = _json.encode(inner)
    path = asked.head.path.rpartition(":")[0] + ":generateContent"
    request = PROTOCOLS["gemini-generate"].parse_request(body, path=path).request
    asked.find(request.model)
    return _answer({"totalTokens": estimate_tokens(request)})


# ---------------------------------------------------------------- the table

_READ: Final = ("GET", "HEAD")


def _models_pages(prefix: str) -> tuple[Page, ...]:
    """Return the shared paths, the more specific clients first."""
    every, one = f"{prefix}/models", f"{prefix}/models/{{model}}"
    return (
        Page("gemini-generate", _READ, every, _gemini_models, _is_gemini),
        Page("gemini-generate", _READ, one, _gemini_one, _is_gemini),
        Page("anthropic-messages", _READ, every, _anthropic_models, _is_anthropic),
        Page("anthropic-messages", _READ, one, _anthropic_one, _is_anthropic),
        Page("openai-responses", _READ, every, _codex_models, _is_codex),
        Page("openai-chat", _READ, every, _openai_models),
        Page("openai-chat", _READ, one, _openai_one),
        Page("openai-responses", _READ, every, _openai_models),
        Page("openai-responses", _READ, one, _openai_one),
        # What serves Ollama serves its OpenAI side too, and asks it for its models.
        Page("ollama-chat", _READ, every, _openai_models),
        Page("ollama-chat", _READ, one, _openai_one),
        Page("anthropic-messages", _READ, every, _anthropic_models),
        Page("anthropic-messages", _READ, one, _anthropic_one),
        Page("gemini-generate", _READ, every, _gemini_models),
        Page("gemini-generate", _READ, one, _gemini_one),
    )


PAGES: Final[tuple[Page, ...]] = (
    *(Page(protocol.name, _READ, "/", _start, wants_html) for protocol in PROTOCOLS.values()),
    Page("ollama-chat", _READ, "/", _greet),
    Page("ollama-chat", _READ, "/api/version", _version),
    Page("ollama-chat", _READ, "/api/tags", _tags),
    Page("ollama-chat", _READ, "/api/ps", _running),
    Page("ollama-chat", ("POST",), "/api/show", _show),
    *(
        Page("ollama-chat", (method,), f"/api/{verb}", _unsupported)
        for method, verb in (("POST", "push"), ("POST", "create"), ("POST", "copy"), ("DELETE", "delete"))
    ),
    Page("anthropic-messages", ("POST",), "/v1/messages/count_tokens", _anthropic_count),
    *(
        Page("gemini-generate", ("POST",), f"/{version}/{kind}/{{model}}:countTokens", _gemini_count)
        for version in ("v1beta", "v1")
        for kind in ("models", "tunedModels")
    ),
    Page("gemini-generate", _READ, "/v1beta/models", _gemini_models),
    Page("gemini-generate", _READ, "/v1beta/models/{model}", _gemini_one),
    *_models_pages("/v1"),
)
