"""Pick the model: a default if the user named none, and a check before the session changes to another one."""

from __future__ import annotations

import asyncio
import importlib.util
import socket
from typing import TYPE_CHECKING, Final, final
from urllib.parse import urlsplit

import msgspec

from dragoman.errors import UsageError
from dragoman.providers.catalog import Provider, nearest, split_target

if TYPE_CHECKING:  # the client and its libraries are loaded when a model is asked
    from dragoman.client import AsyncClient
    from dragoman.config import Config
    from dragoman.discovery.model_facts import ModelFacts

#: The model that dragoman can start itself. It shows the plumbing, not intelligence.
EMBEDDED: Final = "embedded/smollm2"
_KNOCK_SECONDS: Final = 0.3


@final
class Choice(msgspec.Struct, frozen=True):
    """A model to begin with, and why it was chosen; "" if it was named."""

    target: str
    why: str = ""


async def choose_target(config: Config) -> Choice:
    """Choose a model: the user's configured one, else one that runs here and takes tools, else the embedded one.

    Raises:
        UsageError: there is none; the message says what to do.
    """
    if config.agent.target is not None:
        return Choice(config.agent.target, "agent.target of the configuration")
    for name, provider in config.catalog.providers.items():
        if provider.found_first and await asyncio.to_thread(_answers, provider):
            from dragoman.client import AsyncClient
            from dragoman.discovery.model_facts import pick_default

            async with AsyncClient(config) as client:
                found = pick_default(await client.requester.models(name))
            if found is not None:
                return Choice(found.target, f"{name} runs here, and this model takes tools")
    if importlib.util.find_spec("xllamacpp") is not None:
        return Choice(EMBEDDED, "no model was named and none runs here")
    raise UsageError(
        "expected a model: dragoman chat provider/model (dragoman models lists them), agent.target in dragoman.toml, "
        'or the small model of pip install "dragoman[embedded]"'
    )


def first_target(name: str, config: Config) -> str:
    """Return the `provider/model` of a name: itself, or the first target of the route.

    Raises:
        UsageError: no such route.
    """
    if "/" in name:
        return name
    from dragoman.routing.resolve import resolve

    return resolve(name, config).name


async def full_name(client: AsyncClient, name: str) -> str:
    """Return the full name that a person means: a route, `provider/model`, or a bare name that one provider has.

    The route `*` answers to any name, so a mistyped one would lead to it unseen: it is meant only by its own name.

    Raises:
        UsageError: no provider has that model, or several have.
    """
    config = client.config
    is_route = name in config.routes or name in config.aliases
    if is_route or config.only_provider or ("/" in name and name.partition("/")[0] in config.catalog.providers):
        return name
    facts = await client.requester.models()
    having = [one.target for one in facts if split_target(one.target)[1] in (name, f"{name}:latest")]
    exact = [target for target in having if split_target(target)[1] == name] or having
    if len(exact) == 1:
        return exact[0]
    if exact:
        raise UsageError(f"several providers have {name[:80]!r}: say {' or '.join(exact)}")
    if "/" in name:
        config.catalog.provider(name.partition("/")[0])
    known = (*config.routes, *config.catalog.providers, *(split_target(one.target)[1] for one in facts))
    raise UsageError(
        f"no provider that you can ask has the model {name[:80]!r}{nearest(name, known)}; /models lists them"
    )


async def known_facts(client: AsyncClient, name: str) -> ModelFacts | None:
    """Return what is known of a model, or None. Its server is asked if no catalogue lists it."""
    from dragoman.discovery.model_facts import find

    target = first_target(name, client.config)
    return find(await client.requester.models(split_target(target)[0]), target)


async def check_target(client: AsyncClient, name: str) -> ModelFacts | None:
    """Return what is known of the model that is to continue.

    Raises:
        UsageError: it is not there or takes no tools; names others that do.
    """
    from dragoman.discovery.model_facts import check_model, find

    target = first_target(name, client.config)
    facts = await client.requester.models(split_target(target)[0])
    problem = check_model(facts, target)
    if problem:
        raise UsageError(problem)
    return find(facts, target)


def _answers(provider: Provider) -> bool:
    """Return whether anything listens there. One connection costs nothing; a client's libraries do."""
    address = urlsplit(provider.base_url)
    try:
        with socket.create_connection((address.hostname or "", address.port or 80), timeout=_KNOCK_SECONDS):
            return True
    except OSError:
        return False
