"""List the available models with all that is known of each: ask servers, look up catalogue and proofs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from dragoman.config import Config
from dragoman.discovery.model_facts import ModelFacts, gather
from dragoman.discovery.query_server import Found, look
from dragoman.embedded import EMBEDDED, has_embedded
from dragoman.http.transport import Transport
from dragoman.proofs import ProofStore, proof_of
from dragoman.providers.address import is_on_this_machine
from dragoman.providers.catalog import Provider


async def take_stock(
    transport: Transport,
    config: Config,
    proofs: ProofStore,
    *,
    provider: str | None = None,
    tell: Callable[[Found], None] | None = None,
) -> tuple[ModelFacts, ...]:
    """Return all available models: those of servers that answer, of providers whose key is set, and the embedded one.

    Args:
        transport: asks the servers.
        config: names them.
        proofs: what validation has shown.
        provider: only this one's; it is asked even if the catalogue lists its models.
        tell: called for each server that gave no list.

    Returns:
        Servers' models first, each server's in its own order; then the catalogue's.

    Raises:
        UsageError: no such provider.
    """
    provider = provider or config.only_provider or None
    if provider is not None:
        wanted = [config.catalog.provider(provider)]
        asked = [one for one in wanted if one.is_complete]
    else:
        wanted = [one for one in config.catalog.providers.values() if one.retired is None]
        asked = [one for one in wanted if one.is_complete and config.only_server_knows(one)]
    found = await asyncio.gather(*(look(transport, one, key=config.keys.get(one.name)) for one in asked))
    if tell is not None:
        for one in found:
            if one.failure is not None:
                tell(one)
    facts = [*_told(found, config, proofs), *_listed(wanted, found, config, proofs, is_named=provider is not None)]
    if EMBEDDED.provider in {one.name for one in wanted} and has_embedded():
        proof = proofs.get(EMBEDDED.target)
        facts.append(gather(EMBEDDED.target, told=EMBEDDED, listed=None, proof=proof, is_local=True))
    return tuple(facts)


def _told(found: Iterable[Found], config: Config, proofs: ProofStore) -> list[ModelFacts]:
    return [
        gather(
            model.target,
            told=model,
            listed=config.catalog.model(model.target),
            proof=proof_of(model, one.provider, proofs),
            is_local=is_on_this_machine(one.provider.base_url),
        )
        for one in found
        for model in one.models
    ]


def _listed(
    wanted: Iterable[Provider], found: Iterable[Found], config: Config, proofs: ProofStore, *, is_named: bool
) -> list[ModelFacts]:
    """Return the catalogue's models of providers that were not asked, or gave no list."""
    told = {one.provider.name for one in found if one.models}
    return [
        gather(
            model.target,
            told=None,
            listed=model,
            proof=proof_of(model, provider, proofs),
            is_local=is_on_this_machine(provider.base_url),
        )
        for provider in wanted
        if provider.name not in told and (is_named or provider.name in config.keys)
        for model in config.catalog.models(provider.name)
    ]
