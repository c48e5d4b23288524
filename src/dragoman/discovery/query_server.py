"""Ask servers about their models: which there are, how long a context, whether they take tools."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, final, get_args

import msgspec

from dragoman import _json
from dragoman.codec.errors.error_body import read_problem
from dragoman.config import Config
from dragoman.events import Failure
from dragoman.gathered import Gathered
from dragoman.http.timeouts import Timeouts
from dragoman.http.transport import Transport, TransportFailed
from dragoman.protocol import HttpRequest
from dragoman.protocols import PROTOCOLS
from dragoman.providers.catalog import Modality, Model, Provider
from dragoman.providers.endpoint import endpoint
from dragoman.secret import Secret

LOCAL_SECONDS: Final = 3.0
FAR_SECONDS: Final = 10.0
_BODY_LIMIT: Final = 8 * 1024 * 1024  # bytes
_DETAILED: Final = 50  # models of one server that are asked about one by one

#: How lists of claims name tools.
_TOOL_WORDS: Final = frozenset({"tools", "tool_use", "tool-calling", "tool_calling", "function_calling"})


@final
class Found(msgspec.Struct, frozen=True):
    """One server's answer: its models, or why there are none."""

    provider: Provider
    models: tuple[Model, ...] = ()
    failure: Failure | None = None


def make_transport(*, seconds: float, proxy: Secret | None = None, ca_file: str | None = None) -> Transport:
    """Return a transport with short timeouts."""
    return Transport(
        timeouts=Timeouts(connect=seconds), proxy=proxy.reveal() if proxy is not None else None, ca_file=ca_file
    )


async def ask(
    transport: Transport, provider: Provider, path: str, *, key: Secret | None, seconds: float, body: object = None
) -> Any | Failure:
    """Send one small request to a provider: GET, or POST with a body.

    Returns:
        The answer as JSON values, or why there is none (no connection, a status that is not 2xx, no JSON).
    """
    there = msgspec.structs.replace(provider, path="", query={}, body={})
    request = HttpRequest(path, b"" if body is None else _json.encode(body), method="GET" if body is None else "POST")
    outgoing = endpoint(there, request, model="", key=key.reveal() if key is not None else None)
    try:
        async with asyncio.timeout(seconds):
            response = await transport.open(outgoing)
            try:
                kept = Gathered()
                while (chunk := await response.read()) and kept.size < _BODY_LIMIT:
                    kept.add(chunk)
            finally:
                response.close()
    except TimeoutError:
        return Failure("timeout", f"no answer from {provider.base_url} in {seconds:g} s")
    except TransportFailed as problem:
        return problem.failure
    if not 200 <= response.status < 300:
        refused = read_problem(kept.take(), status=response.status, headers=response.headers)
        if refused.kind in ("auth", "permission"):  # it is about the key, not about the path
            return refused
        return msgspec.structs.replace(refused, message=f"{refused.message} ({path} answered {response.status})")
    value = _json.decode(kept.take())
    if isinstance(value, _json.Malformed):
        return Failure("wire", f"{provider.base_url}{path} does not answer in JSON", status=response.status)
    return value


async def look_at_all(
    config: Config, providers: Iterable[Provider], *, far_seconds: float = FAR_SECONDS
) -> list[Found]:
    """Ask providers for their models, all at once. Those elsewhere are asked through the proxy of the configuration."""
    ca_file = str(config.http.ca_file) if config.http.ca_file is not None else None
    near = make_transport(seconds=LOCAL_SECONDS, ca_file=ca_file)
    far = make_transport(seconds=far_seconds, proxy=config.http.proxy, ca_file=ca_file)
    try:
        return await asyncio.gather(
            *(
                look(near, one, key=config.keys.get(one.name))
                if one.local
                else look(far, one, key=config.keys.get(one.name), seconds=far_seconds)
                for one in providers
            )
        )
    finally:
        await near.close()
        await far.close()


async def look(transport: Transport, provider: Provider, *, key: Secret | None, seconds: float | None = None) -> Found:
    """Return a server's models, with what it says of each. The catalogue is not asked."""
    seconds = seconds or (LOCAL_SECONDS if provider.local else FAR_SECONDS)
    until = asyncio.get_running_loop().time() + seconds
    listing = await ask(transport, provider, PROTOCOLS[provider.protocol].models_path, key=key, seconds=seconds)
    if isinstance(listing, Failure):
        return Found(provider, failure=listing)
    models = [_read_row(provider.name, row) for row in _rows(listing)]
    if provider.local:
        models = await _detail(transport, provider, models, key=key, until=until)
    return Found(provider, tuple(model for model in models if model.id))


async def _detail(
    transport: Transport, provider: Provider, models: list[Model], *, key: Secret | None, until: float
) -> list[Model]:
    """Add what the usual local servers say under further paths. A server without such a path adds nothing.

    `until`: when to stop asking, by the loop's clock.
    """

    async def more(path: str, body: object = None, *, root: bool = False) -> Mapping[str, Any]:
        base_url = provider.base_url.removesuffix("/v1") if root else provider.base_url
        there = msgspec.structs.replace(provider, base_url=base_url)
        left = until - asyncio.get_running_loop().time()
        answer = await ask(transport, there, path, key=key, seconds=left, body=body)
        return answer if isinstance(answer, dict) else {}

    if provider.base_url.endswith("/v1"):
        properties, rows = await asyncio.gather(more("/props", root=True), more("/api/v0/models", root=True))
        models = [_with_properties(model, properties) for model in models]
        told = {model.id: model for model in (_read_row(provider.name, row) for row in _rows(rows))}
        return [told.get(model.id, model) for model in models]
    shown = await asyncio.gather(*(more("/api/show", {"model": model.id}) for model in models[:_DETAILED]))
    return [_with_details(model, details) for model, details in zip(models, shown, strict=False)] + models[_DETAILED:]


# ---------------------------------------------------------------- reading


def _rows(listing: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(listing, dict):
        listing = listing.get("data") or listing.get("models")
    for row in listing if isinstance(listing, list) else ():
        if isinstance(row, dict):
            yield row


def _read_row(provider: str, row: Mapping[str, Any]) -> Model:
    """Read a row of a model list, in any of the forms that servers have: each has its own extensions."""
    name = row.get("id") or row.get("model") or row.get("name")
    meta = row.get("meta")
    best = row.get("top_provider")
    context = _first_count(
        row.get("loaded_context_length"), row.get("max_model_len"), row.get("max_context_length"),
        row.get("context_length"), row.get("context_window"), row.get("inputTokenLimit"),
        meta.get("n_ctx") if isinstance(meta, dict) else None,
    )  # fmt: skip
    most = _first_count(
        row.get("max_completion_tokens"), row.get("max_output_tokens"), row.get("outputTokenLimit"),
        best.get("max_completion_tokens") if isinstance(best, dict) else None,
    )  # fmt: skip
    model_id = name.removeprefix("models/") if isinstance(name, str) else ""
    digest = _read_digest(row, meta)
    return Model(provider, model_id, context, most, _read_modalities(row), _read_tools(row), digest=digest)


def _read_tools(row: Mapping[str, Any]) -> bool | None:
    """Return what a row claims of tools. Of the lists, only that of parameters is complete enough to deny."""
    parameters, claims = row.get("supported_parameters"), row.get("capabilities")  # OpenRouter; LM Studio, GitHub
    if isinstance(parameters, list) and parameters:
        return "tools" in parameters
    if isinstance(claims, dict):  # Mistral
        claimed = claims.get("function_calling")
        return claimed if isinstance(claimed, bool) else None
    for words in (claims, row.get("features")):  # Cohere
        if isinstance(words, list) and not _TOOL_WORDS.isdisjoint(word for word in words if isinstance(word, str)):
            return True
    claimed = row.get("supports_tools")  # Fireworks
    return claimed if isinstance(claimed, bool) else None


def _read_modalities(row: Mapping[str, Any]) -> tuple[Modality, ...] | None:
    """Return OpenRouter's `architecture.input_modalities`, or None."""
    architecture = row.get("architecture")
    words = architecture.get("input_modalities") if isinstance(architecture, dict) else None
    if not isinstance(words, list):
        return None
    known = {"file": "document", **{word: word for word in get_args(Modality)}}
    return tuple(dict.fromkeys(known[word] for word in words if isinstance(word, str) and word in known))


def _read_digest(row: Mapping[str, Any], meta: Any) -> str | None:
    """Return what identifies the weights: Ollama's digest, or llama.cpp's description of its file."""
    digest = row.get("digest")
    if isinstance(digest, str) and digest:
        return digest
    if not isinstance(meta, dict) or not all(type(meta.get(key)) is int for key in ("n_params", "size")):
        return None
    return f"{meta['n_params']} parameters, {meta['size']} bytes"


def _with_properties(model: Model, properties: Mapping[str, Any]) -> Model:
    """Add llama.cpp's `/props` (tools/server/README.md, read 2026-11-21): the loaded model's context and template."""
    caps, settings = properties.get("chat_template_caps"), properties.get("default_generation_settings")
    tools = caps.get("supports_tool_calls") if isinstance(caps, dict) else None
    context = _first_count(settings.get("n_ctx") if isinstance(settings, dict) else None, model.context)
    return msgspec.structs.replace(model, context=context, tools=tools if isinstance(tools, bool) else model.tools)


def _with_details(model: Model, details: Mapping[str, Any]) -> Model:
    """Add Ollama's `/api/show` (docs.ollama.com/api, read 2026-11-21)."""
    info, claims = details.get("model_info"), details.get("capabilities")
    if isinstance(info, dict):
        lengths = [value for key, value in info.items() if key.endswith(".context_length")]
        model = msgspec.structs.replace(model, context=_first_count(*lengths, model.context))
    if not isinstance(claims, list):
        return model
    return msgspec.structs.replace(
        model,
        tools="tools" in claims,
        thinking="thinking" in claims,
        input_modalities=("text", "image") if "vision" in claims else ("text",),
    )


def _first_count(*values: Any) -> int | None:
    return next((value for value in values if type(value) is int and value > 0), None)
