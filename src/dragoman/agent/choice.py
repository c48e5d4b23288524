"""Which model: what there is, what it says of itself, what has been shown of it, and which one to begin with."""

from __future__ import annotations

import asyncio
import importlib.util
import socket
from collections.abc import Iterable
from typing import Final, final
from urllib.parse import urlsplit

import msgspec

from dragoman.client.probing import LOCAL_SECONDS, Found, look, make_transport
from dragoman.config import Config
from dragoman.embedded import SMOLLM2
from dragoman.errors import UsageError
from dragoman.providers import Model, Provider, nearest, split_target

#: The model that dragoman can start itself. It shows the plumbing, not intelligence.
EMBEDDED: Final = Model("embedded", SMOLLM2.name, 2048, 1024, ("text",), tools=True, thinking=False)
_KNOCK_SECONDS: Final = 0.3
#: Servers on this machine that are looked at for a model to begin with, in this order.
_FIRST: Final = ("ollama",)


@final
class Choice(msgspec.Struct, frozen=True):
    """A model to begin with, and why it."""

    target: str
    why: str


async def choose_target(config: Config) -> Choice:
    """The model when nobody named one: the user's own choice, else one that runs here and takes tools, else our own.

    Raises:
        UsageError: there is none; says what to do.
    """
    if config.agent.target is not None:
        return Choice(config.agent.target, "agent.target of the configuration")
    for name in _FIRST:
        provider = config.catalog.providers.get(name)
        if provider is None or not await asyncio.to_thread(_answers, provider):
            continue
        [found] = await ask_servers([provider], config)
        fit = [model for model in found.models if model.tools]
        if fit:
            return Choice(fit[0].target, f"{name} runs here, and this model takes tools")
    if importlib.util.find_spec("xllamacpp") is not None:
        return Choice(EMBEDDED.target, "no model was named and none runs here")
    raise UsageError(
        "expected a model: dragoman chat provider/model (dragoman models lists them), agent.target in dragoman.toml, "
        'or the small model of pip install "dragoman[embedded]"'
    )


async def known_model(target: str, config: Config) -> Model:
    """What is known of a target's model: its own server's word where that is on this machine, else the catalogue's."""
    if "/" not in target:
        route = config.routes.get(target) or config.routes.get("*")
        if route is None:
            raise UsageError(f"expected provider/model or the name of a route, got {target[:80]!r}")
        target = route.targets[0]
    provider_name, model_id = split_target(target)
    provider = config.catalog.provider(provider_name)
    if target == EMBEDDED.target:
        return EMBEDDED
    if provider.local and provider.base_url:
        [found] = await ask_servers([provider], config)
        mine = next((model for model in found.models if model.id in (model_id, f"{model_id}:latest")), None)
        if mine is not None:
            return mine
    return config.catalog.model(target)


async def check_model(target: str, config: Config) -> Model:
    """The model of a target, which must be there and take tools, as far as can be known.

    Raises:
        UsageError: it is not, or does not; names others that do.
    """
    model = await known_model(target, config)
    provider = config.catalog.provider(model.provider)
    if model.target == EMBEDDED.target:
        if importlib.util.find_spec("xllamacpp") is None:
            raise UsageError('the embedded model needs: pip install "dragoman[embedded]"')
        return model
    if provider.local and provider.base_url:
        [found] = await ask_servers([provider], config)
        if found.failure is not None:
            raise UsageError(f"{provider.name} does not answer: {found.failure.message}")
        listed: tuple[Model, ...] = found.models
    else:
        listed = config.catalog.models(provider.name)
    is_there = any(one.id in (model.id, f"{model.id}:latest") for one in listed)
    fit = [one for one in listed if one.tools]
    if listed and not is_there and provider.local:
        raise UsageError(f"{provider.name} has no model {model.id!r}{_others(model.id, fit or listed)}")
    if model.tools is False:
        raise UsageError(f"{model.target} takes no tools{_others(model.id, fit)}")
    return model


async def list_models(config: Config, *, provider: str | None = None) -> list[Model]:
    """The models that can be asked: of servers that answer here, of providers whose key is set, and our own."""
    wanted = [config.catalog.provider(provider)] if provider else list(config.catalog.providers.values())
    local = [one for one in wanted if one.local and one.base_url]
    answering = await asyncio.gather(*(asyncio.to_thread(_answers, one) for one in local))
    found = await ask_servers([one for one, answers in zip(local, answering, strict=True) if answers], config)
    models = [model for one in found for model in one.models]
    for one in wanted:
        if not one.local and (one.name in config.keys or provider):
            models += config.catalog.models(one.name)
    has_own = importlib.util.find_spec("xllamacpp") is not None and EMBEDDED.provider in {one.name for one in wanted}
    return [*models, *([EMBEDDED] if has_own else [])]


async def ask_servers(providers: Iterable[Provider], config: Config) -> list[Found]:
    """What servers answer about their models."""
    transport = make_transport(seconds=LOCAL_SECONDS)
    try:
        return list(await asyncio.gather(*(look(transport, one, key=config.keys.get(one.name)) for one in providers)))
    finally:
        await transport.close()


def _answers(provider: Provider) -> bool:
    """Whether anything listens there: one knock costs nothing, a client's libraries do."""
    address = urlsplit(provider.base_url)
    try:
        with socket.create_connection((address.hostname or "", address.port or 80), timeout=_KNOCK_SECONDS):
            return True
    except OSError:
        return False


def _others(wanted: str, models: Iterable[Model]) -> str:
    ids = [model.id for model in models]
    near = nearest(wanted, ids)
    return near or (f"; there are: {', '.join(ids[:8])}" if ids else "")
