"""Find what can be served without a configuration: servers on this machine, keys in the environment."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, TypeAlias

from dragoman.cli.terminal import first_of
from dragoman.config import Config, key_variable
from dragoman.errors import DragomanError
from dragoman.providers.catalog import Model, Provider
from dragoman.secret import Secret

Look: TypeAlias = Callable[[Provider, Secret | None], Awaitable[Iterable[Model]]]

_SHOWN: Final = 5
HOW_TO_BEGIN: Final = (
    "found no model server on this machine ({names})\n"
    "and no provider's key in the environment; to begin:\n"
    "  ollama pull granite4         then start this again\n"
    "  export ANTHROPIC_API_KEY=…   or another provider's: dragoman doctor names them\n"
    "  dragoman config init         for servers elsewhere\n"
    "  dragoman serve --provider NAME --model NAME --api-key-env VAR\n"
    "  dragoman serve --provider embedded --model smollm2   a tiny model, no key\n"
)


async def find_all(config: Config, look: Look) -> tuple[dict[str, list[Model]], list[str]]:
    """Return the models of the servers that answer, here or configured, and the providers whose key is set."""
    asked = [
        provider
        for provider in config.catalog.providers.values()
        if provider.base_url and config.only_server_knows(provider)
    ]

    async def ask(provider: Provider) -> list[Model]:
        try:
            return list(await look(provider, config.keys.get(provider.name)))
        except DragomanError:  # an address that is not complete
            return []

    models = await asyncio.gather(*(ask(provider) for provider in asked))
    found = {provider.name: own for provider, own in zip(asked, models, strict=True) if own}
    return found, [name for name in config.keys if name not in found and not config.catalog.provider(name).local]


def render_found(
    found: Mapping[str, list[Model]], keyed: Iterable[str], config: Config, environ: Mapping[str, str]
) -> str:
    """Describe what was found and how to ask for it, or how to begin if nothing was."""
    lines, keyed = [], list(keyed)
    for name, models in found.items():
        names, more = first_of([f"{name}/{model.id}" for model in models], _SHOWN)
        lines.append(f"found {name} at {config.catalog.provider(name).base_url}: {names}{more}\n")
    for name in keyed:
        variable = key_variable(config.catalog.provider(name), environ)
        lines.append(f"found a key for {name}{f' in {variable}' if variable else ''}: clients ask for {name}/MODEL\n")
    for name in config.providers:
        provider = config.catalog.provider(name)
        if name not in found and name not in keyed:
            problem = config.missing_key(provider) or f"{name} at {provider.base_url} gives no list of its models"
            lines.append(f"configured: {problem}; clients ask for {name}/MODEL\n")
    if not lines:
        local = [provider for provider in config.catalog.providers.values() if provider.local and provider.base_url]
        return HOW_TO_BEGIN.format(names=", ".join(provider.name for provider in local))
    if found:
        name, models = next(iter(found.items()))
        lines.append(f"one model for every name: dragoman serve --provider {name} --model {models[0].id}\n")
    return "".join(lines)
